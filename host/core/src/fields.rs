//! Which fields a grant lets a plugin change, held against what a write would change.
//!
//! Judged are the object before and after, so that what is removed, released or left out counts as
//! what is set. Paths are written as those of ignore rules.

use crate::edit;
use trimtab_compare::{Facts, Rule};
use trimtab_json::{Object, Path, Value};

/// The refusal's reason.
pub(crate) const REFUSED: &str = "FieldNotGranted";

/// What an API server writes into `metadata` with every write.
const SERVER_METADATA: [&str; 8] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
];

/// One path with wildcards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath {
    text: String,
    rule: Rule,
}

impl FieldPath {
    /// Reads a path as ignore rules have it: `/spec/replicas`, `/data/*`.
    ///
    /// # Errors
    /// A sentence that says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: String| format!("field path {text:?}: {why}");
        if !text.starts_with('/') || text.contains(char::is_whitespace) {
            return Err(wrong("write a path such as /spec/replicas or /data/*".into()));
        }
        let rule = Rule::path(text).map_err(|error| wrong(error.to_string()))?;
        Ok(Self { text: text.to_owned(), rule })
    }

    /// As it is written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a value at this path (as in a difference) lies at or beneath it, or may hold it. What
    /// cannot be read as a path may.
    pub(crate) fn touches(&self, path: &str) -> bool {
        Path::parse(path).map_or(true, |path| self.rule.touches(&path))
    }

    /// The values that it leads to.
    pub(crate) fn values<'v>(&self, object: &'v Value<'_>) -> Vec<&'v Value<'v>> {
        let places = self.rule.places(object, Facts::new(&[]));
        places.iter().filter_map(|place| place.path.resolve(object)).collect()
    }
}

/// Fields by path. Empty lists say nothing: every field may change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// Only what lies at or beneath these may change.
    pub allow: Vec<FieldPath>,
    /// What lies at or beneath these may not change, whatever `allow` says.
    pub deny: Vec<FieldPath>,
}

impl Fields {
    /// Whether every field may change.
    pub fn is_empty(&self) -> bool {
        self.allow.is_empty() && self.deny.is_empty()
    }

    /// The first place that would change and may not, and why; `None` is an absent object.
    pub(crate) fn outside(
        &self,
        before: Option<&Value<'_>>,
        after: Option<&Value<'_>>,
        facts: &[u8],
    ) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let kind = before.or(after).and_then(|object| object.str_at(&["kind"])).unwrap_or_default();
        let gone = after.is_none();
        let empty = Value::from(Object::new());
        let (before, after) = apart(before.unwrap_or(&empty), after.unwrap_or(&empty));
        let (before, after) = (bare(before, kind), bare(after, kind));
        for denied in &self.deny {
            let places = [&before, &after].map(|tree| denied.rule.places(tree, Facts::new(facts)));
            let moved = |path: &trimtab_json::Path| {
                path.resolve(&before).map(canonical) != path.resolve(&after).map(canonical)
            };
            if let Some(place) = places.iter().flatten().find(|place| moved(&place.path)) {
                return Some(format!(
                    "{} would change, and fields.deny has {}",
                    place.path, denied.text
                ));
            }
        }
        if self.allow.is_empty() {
            return None;
        }
        if gone {
            return Some("a deletion changes every field, and fields.allow names some".into());
        }
        let left = self.without_allowed(&before, &after, facts);
        let right = self.without_allowed(&after, &before, facts);
        let mut at = String::new();
        differs(Some(&left), Some(&right), &mut at)
            .then(|| format!("{at} would change, and fields.allow does not name it"))
    }

    /// The tree without all that may change. What is left empty by that goes too, where the other
    /// has nothing there.
    fn without_allowed<'a>(&self, tree: &Value<'a>, other: &Value<'_>, facts: &[u8]) -> Value<'a> {
        let places = self.allow.iter().flat_map(|path| path.rule.places(tree, Facts::new(facts)));
        let mut pointers: Vec<String> =
            places.filter_map(|place| place.path.pointer(tree)).collect();
        pointers.sort_by_cached_key(|pointer| std::cmp::Reverse(edit::order(pointer)));
        pointers.dedup();
        let mut left = tree.clone();
        for pointer in &pointers {
            edit::remove(&mut left, pointer);
            let mut around = pointer.as_str();
            while let Some((parent, _)) = around.rsplit_once('/').filter(|it| !it.0.is_empty()) {
                let empty = match at(&left, parent) {
                    Some(Value::Object(object)) => object.is_empty(),
                    Some(Value::Array(items)) => items.is_empty(),
                    _ => false,
                };
                if !empty || at(other, parent).is_some() {
                    break;
                }
                edit::remove(&mut left, parent);
                around = parent;
            }
        }
        left
    }
}

/// Both trees without the members that are the same in both: little is left of most changes, and
/// what is the same on both sides neither changes nor is looked for. Lists stay whole, since it
/// depends on all of their elements which is which.
fn apart<'a, 'b>(a: &Value<'a>, b: &Value<'b>) -> (Value<'a>, Value<'b>) {
    let (Value::Object(a), Value::Object(b)) = (a, b) else { return (a.clone(), b.clone()) };
    let (mut left, mut right) = (Object::new(), Object::new());
    for (name, value) in a.iter() {
        match b.get(name) {
            Some(other) if value == other => {}
            Some(other) => {
                let (value, other) = apart(value, other);
                left.insert(name.to_owned(), value);
                right.insert(name.to_owned(), other);
            }
            None => {
                left.insert(name.to_owned(), value.clone());
            }
        }
    }
    for (name, value) in b.iter().filter(|(name, _)| a.get(name).is_none()) {
        right.insert(name.to_owned(), value.clone());
    }
    (left.into(), right.into())
}

/// The object without what names it and what a server writes. The kind stays, since facts are found
/// by it.
fn bare<'a>(object: Value<'a>, kind: &str) -> Value<'a> {
    let mut object = match object {
        Value::Object(object) => object,
        _ => Object::new(),
    };
    object.remove("apiVersion");
    object.insert("kind", kind.to_owned());
    if object.get("metadata").is_none() {
        object.insert("metadata", Object::new());
    }
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        let named = ["name", "namespace"];
        metadata.retain(|name, _| !SERVER_METADATA.contains(&name) && !named.contains(&name));
    }
    object.into()
}

fn at<'v, 'a>(root: &'v Value<'a>, pointer: &str) -> Option<&'v Value<'a>> {
    trimtab_json::Path::parse(pointer).ok()?.resolve(root)
}

/// Whether two trees differ; leaves the way to the first place in `at`.
fn differs(left: Option<&Value<'_>>, right: Option<&Value<'_>>, at: &mut String) -> bool {
    let length = at.len();
    let step = |at: &mut String, name: &str| {
        at.push('/');
        at.push_str(&name.replace('~', "~0").replace('/', "~1"));
    };
    match (left, right) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let names = a.iter().chain(b.iter()).map(|(name, _)| name);
            for name in names {
                step(at, name);
                if differs(a.get(name), b.get(name), at) {
                    return true;
                }
                at.truncate(length);
            }
            false
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            for index in 0..a.len().max(b.len()) {
                step(at, &index.to_string());
                if differs(a.get(index), b.get(index), at) {
                    return true;
                }
                at.truncate(length);
            }
            false
        }
        (None, None) => false,
        (Some(a), Some(b)) => canonical(a) != canonical(b),
        _ => true,
    }
}

fn canonical(value: &Value<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    trimtab_json::canonical(value, &mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(allow: &[&str], deny: &[&str]) -> Fields {
        let read =
            |list: &[&str]| list.iter().map(|path| FieldPath::parse(path).unwrap()).collect();
        Fields { allow: read(allow), deny: read(deny) }
    }

    fn outside(fields: &Fields, before: &str, after: &str) -> Option<String> {
        let read = |text: &'static str| {
            (!text.is_empty()).then(|| trimtab_json::parse(text.as_bytes()).unwrap())
        };
        let leak = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
        let (before, after) = (read(leak(before)), read(leak(after)));
        fields.outside(before.as_ref(), after.as_ref(), &[])
    }

    const BEFORE: &str = r#"{"kind":"X","metadata":{"name":"c","resourceVersion":"1","labels":{"a":"1"}},"spec":{"replicas":1,"list":[{"name":"x","v":1},{"name":"y","v":2}]}}"#;

    #[test]
    fn only_allowed_paths_may_change_by_setting_or_by_leaving_out() {
        let fields = fields(&["/spec/replicas", "/metadata/labels/b"], &[]);
        let to = |from: &str, into: &str| outside(&fields, BEFORE, &BEFORE.replace(from, into));
        assert_eq!(to(r#""replicas":1"#, r#""replicas":9"#), None);
        assert_eq!(to(r#""replicas":1,"#, ""), None);
        assert_eq!(to(r#""resourceVersion":"1""#, r#""resourceVersion":"2""#), None);
        assert_eq!(to(r#""a":"1""#, r#""a":"1","b":"2""#), None);
        for (from, into, place) in [
            (r#""v":2"#, r#""v":3"#, "/spec/list"),
            (r#","list":[{"name":"x","v":1},{"name":"y","v":2}]"#, "", "/spec/list"),
            (r#","labels":{"a":"1"}"#, "", "/metadata/labels"),
            (r#""a":"1""#, r#""a":"1","c":"2""#, "/metadata/labels/c"),
        ] {
            let said = to(from, into).unwrap();
            assert!(said.starts_with(place), "{said}");
        }
    }

    #[test]
    fn a_denied_path_may_not_change_even_where_it_is_allowed() {
        let fields = fields(&["/spec/**"], &["/spec/list/[name=y]/v"]);
        let to = |from: &str, into: &str| outside(&fields, BEFORE, &BEFORE.replace(from, into));
        assert_eq!(to(r#""replicas":1"#, r#""replicas":2"#), None);
        assert_eq!(to(r#""v":1"#, r#""v":7"#), None);
        assert!(to(r#""v":2"#, r#""v":3"#).is_some());
        assert!(to(r#",{"name":"y","v":2}"#, "").is_some(), "by leaving it out");
        assert!(to(r#","list":[{"name":"x","v":1},{"name":"y","v":2}]"#, "").is_some());
    }

    #[test]
    fn a_creation_changes_all_that_it_states_and_a_deletion_all_that_was_there() {
        let narrow = fields(&["/spec/replicas"], &[]);
        assert!(outside(&narrow, "", BEFORE).is_some());
        assert!(outside(&narrow, BEFORE, "").is_some());
        assert_eq!(
            outside(&narrow, "", r#"{"kind":"X","metadata":{"name":"c"},"spec":{"replicas":1}}"#),
            None
        );
        let denying = fields(&[], &["/metadata/labels/a"]);
        assert!(outside(&denying, "", BEFORE).is_some());
        assert!(outside(&denying, BEFORE, "").is_some());
        assert_eq!(outside(&denying, "", r#"{"kind":"X","metadata":{"name":"c"}}"#), None);
    }

    #[test]
    fn no_rules_let_everything_change_and_a_text_that_is_no_path_is_told() {
        assert_eq!(outside(&Fields::default(), BEFORE, ""), None);
        for text in ["", "spec", "/a b", "/a/[x"] {
            assert!(FieldPath::parse(text).is_err(), "{text}");
        }
    }
}
