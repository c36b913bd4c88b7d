//! Secrets: `stringData` is write-only and folds into `data` as base64, over `data`'s own keys.
//!
//! Source: core/v1 conversion, `Convert_v1_Secret_To_core_Secret`.

use super::lookup::Members;
use super::value::wrong_type;
use super::{Answer, Walk};
use crate::facts::Node;
use crate::trail::Trail;
use crate::{Kind, base64};
use alloc::borrow::Cow;
use trimtab_json::{Object, Value};

impl<'a> Walk<'a> {
    pub(super) fn secret(
        &mut self,
        wanted: &'a Object<'a>,
        live: &'a Object<'a>,
        root: &Node<'_>,
    ) -> Answer {
        const EMPTY: &Object<'_> = &Object::new();
        let node = root.field("data");
        let trail = Trail::ROOT.field("data");
        let data = object(wanted, "data")?;
        let plain = object(wanted, "stringData")?;
        let held = match live.get("data") {
            Some(Value::Object(held)) => held,
            _ => EMPTY,
        };
        let mut members = Members::new(held);
        for (name, value) in plain.iter().flat_map(|plain| plain.iter()) {
            let live = members.take(name);
            let text = match value {
                Value::Null => continue,
                Value::String(text) => text,
                other => {
                    let trail = Trail::ROOT.field("stringData");
                    return Err(wrong_type("a string", other, &trail.field(name)));
                }
            };
            let same = live
                .and_then(Value::as_str)
                .is_some_and(|live| base64::encodes(live, text.as_bytes()));
            if !same {
                let kind = if live.is_some() { Kind::Changed } else { Kind::Missing };
                let desired = Value::from(base64::encode(text.as_bytes()));
                self.report(kind, Some(Cow::Owned(desired)), live, &node, &trail.field(name));
            }
        }
        let mut overlay = plain.map(Members::new);
        for (name, value) in data.iter().flat_map(|data| data.iter()) {
            if overlay
                .as_mut()
                .and_then(|plain| plain.take(name))
                .is_some_and(|value| !value.is_null())
            {
                continue;
            }
            if !matches!(value, Value::String(_) | Value::Null) {
                return Err(wrong_type("a string", value, &trail.field(name)));
            }
            let live = members.take(name);
            self.member(value, live, &node, &node.field(name), &trail.field(name))?;
        }
        let stated = |object: Option<&Object<'_>>| object.is_some_and(|object| !object.is_empty());
        // The token controller fills Secrets of this type.
        let filled = wanted.get("type").and_then(Value::as_str)
            == Some("kubernetes.io/service-account-token");
        if (stated(data) || stated(plain)) && !filled {
            self.strict = true;
            for (name, value) in members.rest() {
                self.stray(name, value, held, &node.field(name), &trail.field(name));
            }
            self.strict = false;
        }
        Ok(())
    }
}

fn object<'a>(
    wanted: &'a Object<'a>,
    name: &str,
) -> Result<Option<&'a Object<'a>>, alloc::boxed::Box<crate::CompareError>> {
    match wanted.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(other) => Err(wrong_type("an object", other, &Trail::ROOT.field(name))),
    }
}
