//! Small edits of a JSON tree, by RFC 6901 pointer or by path.

use trimtab_json::{Object, Path, Step, Value};

/// Sets what stands at a path, making the objects that lead there. Whether it could be done: what
/// leads there may be of another type, or an element of a list that is not there.
pub fn set<'a>(root: &mut Value<'a>, path: &Path, value: Value<'a>) -> bool {
    let Some((last, way)) = path.steps().split_last() else { return false };
    let parent = way.iter().try_fold(root, |here, step| {
        let is_field = matches!(step, Step::Field(_) | Step::Index(_));
        open(here, step, || is_field.then(|| Object::new().into()))
    });
    match parent.and_then(|parent| open(parent, last, || Some(Value::Null))) {
        Some(place) => {
            *place = value;
            true
        }
        None => false,
    }
}

/// Sets at a path what another object has there, making what leads there as it is in that object:
/// elements of keyed lists with their keys. Where not `whole`, only that the place is there.
pub(crate) fn put<'a>(root: &mut Value<'a>, path: &Path, from: &Value<'a>, whole: bool) {
    let (mut here, mut there) = (root, from);
    let steps = path.steps();
    for (depth, step) in steps.iter().enumerate() {
        let Some(next) = step.resolve(there) else { return };
        let last = depth + 1 == steps.len();
        let may_make = last || !matches!((step, &*here), (Step::Index(_), Value::Array(_)));
        let made = || may_make.then(|| hollow(next, step));
        let Some(below) = open(here, step, made) else { return };
        (here, there) = (below, next);
    }
    if whole {
        *here = there.clone();
    }
}

/// An empty value of the same type; an element keeps what names it.
fn hollow<'a>(value: &Value<'a>, step: &Step) -> Value<'a> {
    match (value, step) {
        (Value::Object(object), Step::Keyed(keys)) => {
            let mut kept = object.clone();
            kept.retain(|name, _| keys.iter().any(|(key, _)| key == name));
            kept.into()
        }
        (Value::Object(_), _) => Object::new().into(),
        (Value::Array(_), _) => Value::Array(Vec::new()),
        _ => value.clone(),
    }
}

/// What is one step down, made if it is not there and `new` gives something.
fn open<'v, 'a>(
    here: &'v mut Value<'a>,
    step: &Step,
    new: impl FnOnce() -> Option<Value<'a>>,
) -> Option<&'v mut Value<'a>> {
    if here.is_null() {
        *here = match step {
            Step::Field(_) => Object::new().into(),
            _ => Value::Array(Vec::new()),
        };
    }
    match here {
        Value::Object(object) => {
            let name = match step {
                Step::Field(name) => name.clone(),
                Step::Index(index) => index.to_string(),
                Step::Keyed(_) | Step::Element(_) => return None,
            };
            if object.get(&name).is_none_or(Value::is_null) {
                object.insert(name.clone(), new()?);
            }
            object.get_mut(&name)
        }
        Value::Array(items) => {
            let index = match (step.position(items), step) {
                (Some(index), _) => index,
                (None, Step::Field(_)) => return None,
                (None, Step::Index(index)) if *index != items.len() => return None,
                (None, _) => {
                    items.push(new()?);
                    items.len() - 1
                }
            };
            items.get_mut(index)
        }
        _ => None,
    }
}

/// Takes the value at this pointer out, if it is there. The root stays.
pub fn remove(root: &mut Value<'_>, pointer: &str) {
    let all: Vec<String> = steps(pointer).collect();
    let Some((last, parents)) = all.split_last() else {
        return;
    };
    let parent = parents.iter().try_fold(root, |value, step| match value {
        Value::Object(object) => object.get_mut(step),
        Value::Array(items) => items.get_mut(step.parse::<usize>().ok()?),
        _ => None,
    });
    match parent {
        Some(Value::Object(object)) => {
            object.remove(last);
        }
        Some(Value::Array(items)) => {
            if let Some(index) = last.parse().ok().filter(|index| *index < items.len()) {
                items.remove(index);
            }
        }
        _ => {}
    }
}

/// A key that sorts pointers by position: indices as numbers, parents before children.
pub fn order(pointer: &str) -> Vec<(Option<usize>, String)> {
    steps(pointer).map(|step| (step.parse().ok(), step)).collect()
}

fn steps(pointer: &str) -> impl Iterator<Item = String> + '_ {
    pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(pointer: &str) -> String {
        let mut value = trimtab_json::parse(br#"{"a":{"b/c":1},"l":[1,2,3]}"#).unwrap();
        remove(&mut value, pointer);
        let mut out = vec![];
        trimtab_json::write(&value, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn removes_what_a_pointer_names_and_nothing_else() {
        assert_eq!(after("/a/b~1c"), r#"{"a":{},"l":[1,2,3]}"#);
        assert_eq!(after("/l/1"), r#"{"a":{"b/c":1},"l":[1,3]}"#);
        for nothing in ["", "/x", "/l/9", "/a/b~1c/d"] {
            assert_eq!(after(nothing), r#"{"a":{"b/c":1},"l":[1,2,3]}"#, "{nothing}");
        }
    }

    #[test]
    fn sets_what_a_path_names_and_makes_the_objects_that_lead_there() {
        let set = |path: &str| {
            let mut value =
                trimtab_json::parse(br#"{"a":{"b":1},"l":[{"n":"x"}],"z":null}"#).unwrap();
            let done = set(&mut value, &Path::parse(path).unwrap(), true.into());
            let mut out = vec![];
            trimtab_json::write(&value, &mut out);
            (done, String::from_utf8(out).unwrap())
        };
        let before = r#"{"a":{"b":1},"l":[{"n":"x"}],"z":null}"#;
        for (path, after) in [
            ("/a/b", r#"{"a":{"b":true},"l":[{"n":"x"}],"z":null}"#),
            ("/z/c/d", r#"{"a":{"b":1},"l":[{"n":"x"}],"z":{"c":{"d":true}}}"#),
            ("/l/[n=x]/m", r#"{"a":{"b":1},"l":[{"n":"x","m":true}],"z":null}"#),
            ("/l/[n=y]", r#"{"a":{"b":1},"l":[{"n":"x"},true],"z":null}"#),
        ] {
            assert_eq!(set(path), (true, after.to_owned()), "{path}");
        }
        for path in ["", "/a/b/c", "/l/[n=y]/m", "/l/7", "/a/[n=y]"] {
            assert_eq!(set(path), (false, before.to_owned()), "{path}");
        }
    }

    #[test]
    fn puts_what_another_object_has_with_the_keys_of_elements() {
        let from =
            trimtab_json::parse(br#"{"l":[{"n":"x","v":1},{"n":"y","v":2}],"s":["q"]}"#).unwrap();
        let mut to = trimtab_json::parse(br#"{"l":[{"n":"x"}]}"#).unwrap();
        for (path, whole) in
            [("/l/[n=x]/v", true), ("/l/[n=y]", false), ("/s/[=q]", true), ("/none", true)]
        {
            put(&mut to, &Path::parse(path).unwrap(), &from, whole);
        }
        let mut out = vec![];
        trimtab_json::write(&to, &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"l":[{"n":"x","v":1},{"n":"y"}],"s":["q"]}"#
        );
    }

    #[test]
    fn indices_sort_as_numbers() {
        assert!(order("/l/10") > order("/l/9"));
        assert!(order("/l/1/x") > order("/l/1"));
    }
}
