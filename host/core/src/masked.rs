//! What a plugin without a grant sees of a Secret: everything but its values.
//!
//! In place of each value stands its fingerprint, written where and as the value was: as text in
//! `stringData`, in base64 in `data`. Equal values stay equal, so that such a plugin still tells
//! whether live is what is declared, and has nothing to carry away.

use crate::object::{Desired, Live, LiveObject};
use crate::redact::Redactor;
use crate::snapshot::Snapshot;
use std::sync::Arc;
use trimtab_json::{Value, write};

/// How annotations begin that are words to us and to plugins, and no content.
const OURS: &str = "trimtab.dev/";

/// The snapshot of a Secret without its values.
///
/// # Errors
/// One of the objects cannot be read.
pub(crate) fn snapshot(seen: &Snapshot, redactor: &Redactor) -> Result<Snapshot, String> {
    let desired = (*seen.desired).clone();
    let json = object(&desired.json, redactor)?;
    let live = match &seen.live {
        Live::Present(live) => {
            Live::Present(LiveObject { json: object(&live.json, redactor)?, ..live.clone() })
        }
        other => other.clone(),
    };
    Ok(Snapshot { desired: Arc::new(Desired { json, ..desired }), live, ..seen.clone() })
}

/// The object with the values that it keeps secret masked.
///
/// # Errors
/// It is not JSON.
pub(crate) fn object(json: &[u8], redactor: &Redactor) -> Result<Arc<[u8]>, String> {
    let mut object = trimtab_json::parse(json).map_err(|error| error.to_string())?;
    let plain = |_: &str, value: &Value<'_>| fingerprint(redactor, &text(value));
    members(&mut object, &["stringData"], plain);
    members(&mut object, &["data"], |_, value| {
        let text = text(value);
        let content = std::str::from_utf8(&text).ok().and_then(trimtab_compare::decode_base64);
        let shown = fingerprint(redactor, &content.unwrap_or(text));
        trimtab_compare::encode_base64(shown.as_bytes())
    });
    members(&mut object, &["metadata", "annotations"], |name, value| {
        let word = value.as_str().filter(|_| name.starts_with(OURS));
        word.map_or_else(|| fingerprint(redactor, &text(value)), str::to_owned)
    });
    let mut masked = Vec::with_capacity(json.len());
    write(&object, &mut masked);
    Ok(masked.into())
}

/// Replaces the members of the object at this place. What is no object there is taken out: it is
/// no Secret that a server would keep.
fn members(object: &mut Value<'_>, place: &[&str], shown: impl Fn(&str, &Value<'_>) -> String) {
    let Some((last, before)) = place.split_last() else { return };
    let mut parent = object.as_object_mut();
    for name in before {
        parent = parent.and_then(|object| object.get_mut(name)).and_then(Value::as_object_mut);
    }
    let Some(parent) = parent else { return };
    match parent.get_mut(last) {
        Some(Value::Object(members)) => members.retain(|name, value| {
            *value = shown(name, value).into();
            true
        }),
        Some(_) => {
            parent.remove(last);
        }
        None => {}
    }
}

/// A text as it is, and anything else as JSON.
fn text(value: &Value<'_>) -> Vec<u8> {
    if let Some(text) = value.as_str() {
        return text.as_bytes().to_vec();
    }
    let mut json = Vec::new();
    write(value, &mut json);
    json
}

/// `fingerprint:` and digits, without the quotes of JSON.
fn fingerprint(redactor: &Redactor, value: &[u8]) -> String {
    String::from_utf8_lossy(&redactor.fingerprint(value)).trim_matches('"').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(json: &str) -> String {
        let object = object(json.as_bytes(), &Redactor::new([7; 32])).unwrap();
        String::from_utf8(object.to_vec()).unwrap()
    }

    #[test]
    fn a_value_is_the_same_fingerprint_in_data_and_in_string_data() {
        let (data, plain) =
            (r#"{"data":{"a":"aHVudGVyMg=="}}"#, r#"{"stringData":{"a":"hunter2"}}"#);
        let value = |json: &str, section: &str| {
            let object = trimtab_json::parse(json.as_bytes()).unwrap();
            object.str_at(&[section, "a"]).unwrap().to_owned()
        };
        let (data, plain) = (masked(data), masked(plain));
        assert!(!data.contains("aHVudGVyMg") && !plain.contains("hunter2"), "{data} {plain}");
        let decoded = trimtab_compare::decode_base64(&value(&data, "data")).unwrap();
        assert_eq!(String::from_utf8(decoded).unwrap(), value(&plain, "stringData"));
    }

    #[test]
    fn what_may_hold_a_secret_is_masked_and_the_rest_is_as_it_is() {
        let shown = masked(
            r#"{"kind":"Secret","metadata":{"name":"s","annotations":{"a":"hunter2","trimtab.dev/on-immutable":"recreate"}},"data":{"n":7,"bad":"%hunter2"},"type":"Opaque"}"#,
        );
        assert!(!shown.contains("hunter2") && !shown.contains(":7"), "{shown}");
        for kept in [r#""name":"s""#, r#""type":"Opaque""#, r#":"recreate""#] {
            assert!(shown.contains(kept), "{kept}: {shown}");
        }
        assert!(!masked(r#"{"data":"hunter2"}"#).contains("hunter2"));
    }
}
