//! The object's own metadata: labels, annotations, finalizers and owner references, as far as
//! desired states them. The rest is identity or the server's, and nothing that others add is stray.

use super::value::wrong_type;
use super::{Answer, EMPTY, Walk};
use crate::facts::Node;
use crate::trail::Trail;
use trimtab_json::Value;

impl<'a> Walk<'a> {
    pub(super) fn metadata(
        &mut self,
        desired: &'a Value<'a>,
        live: &'a Value<'a>,
        root: &Node<'_>,
    ) -> Answer {
        self.check_metadata(desired)?;
        let node = root.field("metadata");
        let trail = Trail::ROOT.field("metadata");
        self.quiet = true;
        let mut answer = Ok(());
        for name in ["labels", "annotations"] {
            if let Some(desired) = desired.get(name) {
                let trail = trail.field(name);
                let live = live.get(name).or(Some(EMPTY));
                answer = answer
                    .and_then(|()| self.member(desired, live, &node, &node.field(name), &trail));
            }
        }
        let items = |value: &'a Value<'a>, name: &str| {
            value.get(name).and_then(Value::as_array).unwrap_or_default()
        };
        answer = answer.and_then(|()| {
            let (wanted, held) = (items(desired, "finalizers"), items(live, "finalizers"));
            self.subset(wanted, held, &trail.field("finalizers"), |trail, value, _| {
                trail.element(value)
            })
        });
        answer = answer.and_then(|()| {
            let (wanted, held) =
                (items(desired, "ownerReferences"), items(live, "ownerReferences"));
            self.subset(wanted, held, &trail.field("ownerReferences"), |trail, _, index| {
                trail.index(index)
            })
        });
        self.quiet = false;
        answer
    }

    /// Labels and annotations are maps of strings, whatever the kind.
    pub(super) fn check_metadata(&mut self, desired: &'a Value<'a>) -> Answer {
        let trail = Trail::ROOT.field("metadata");
        if !matches!(desired, Value::Object(_) | Value::Null) {
            return Err(wrong_type("an object", desired, &trail));
        }
        for name in ["labels", "annotations"] {
            let trail = trail.field(name);
            match desired.get(name) {
                None | Some(Value::Null) => {}
                Some(Value::Object(map)) => {
                    for (key, value) in map.iter() {
                        if !matches!(value, Value::String(_) | Value::Null) {
                            return Err(wrong_type("a string", value, &trail.field(key)));
                        }
                    }
                }
                Some(other) => return Err(wrong_type("an object", other, &trail)),
            }
        }
        for name in ["finalizers", "ownerReferences"] {
            match desired.get(name) {
                None | Some(Value::Null | Value::Array(_)) => {}
                Some(other) => return Err(wrong_type("a list", other, &trail.field(name))),
            }
        }
        Ok(())
    }
}
