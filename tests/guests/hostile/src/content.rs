//! Content that a behaviour asks to have applied: desired, with something in it that nobody declared.

use trimtab_sdk::{Action, Decision, Object, Path, Snapshot, Value, Verdict};

/// Asks for each of these first, and then for what it may do.
pub(crate) fn and_apply(actions: impl IntoIterator<Item = Action>) -> Verdict {
    let decision = Decision { actions: actions.into_iter().collect(), ..Decision::new() };
    decision.apply_desired().into()
}

/// Desired with this JSON at these field names (with spaces between them), made where it is missing.
pub(crate) fn with(snapshot: &Snapshot<'_>, path: &str, json: &str) -> Action {
    with_all(snapshot, &[(path, json)])
}

/// The same with several.
pub(crate) fn with_all(snapshot: &Snapshot<'_>, all: &[(&str, &str)]) -> Action {
    let mut content = desired(snapshot);
    for (path, json) in all {
        let names: Vec<&str> = path.split(' ').collect();
        set(&mut content, &names, raw(json));
    }
    Action::ApplyContent(content)
}

/// Text of JSON as a value, whatever it says.
pub(crate) fn raw(json: &str) -> Value<'static> {
    Value::Number(json.to_owned().into())
}

/// Asks for this field of live to be removed.
pub(crate) fn removal(path: &str) -> Action {
    Action::RemoveFields(Path::parse(path).into_iter().collect())
}

pub(crate) fn desired(snapshot: &Snapshot<'_>) -> Value<'static> {
    snapshot.desired().cloned().map(Value::into_owned).unwrap_or_default()
}

fn set(value: &mut Value<'static>, names: &[&str], leaf: Value<'static>) {
    let Some((first, rest)) = names.split_first() else {
        *value = leaf;
        return;
    };
    if value.as_object().is_none() {
        *value = Object::new().into();
    }
    let Some(object) = value.as_object_mut() else { return };
    if object.get(first).is_none() {
        object.insert((*first).to_owned(), Value::Null);
    }
    if let Some(member) = object.get_mut(first) {
        set(member, rest, leaf);
    }
}
