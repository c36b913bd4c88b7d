//! Small edits of a JSON tree by RFC 6901 pointer.

use trimtab_json::Value;

/// Takes the value at this pointer out, if it is there. The root stays.
pub(crate) fn remove(root: &mut Value<'_>, pointer: &str) {
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
pub(crate) fn order(pointer: &str) -> Vec<(Option<usize>, String)> {
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
    fn indices_sort_as_numbers() {
        assert!(order("/l/10") > order("/l/9"));
        assert!(order("/l/1/x") > order("/l/1"));
    }
}
