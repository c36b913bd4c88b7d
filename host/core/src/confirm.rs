//! Confirming: what would applying desired really change?
//!
//! Takes the differences that a plugin saw and the object as a rehearsal on the API server left
//! it. The server is the judge of spelling: where it would change nothing, there is nothing to
//! correct. And it is held to its word: a value that desired states and the server does not keep
//! is itself a finding.

use crate::decision::{Difference, DifferenceKind, Finding, Severity};
use trimtab_json::{Path, Value};

/// What is left to correct, and what the server would not keep.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Confirmed {
    pub(crate) differences: Vec<Difference>,
    pub(crate) findings: Vec<Finding>,
}

/// Holds the differences against the rehearsal's result.
///
/// # Errors
/// Text, if either object does not parse.
pub(crate) fn confirm(
    differences: Vec<Difference>,
    live: &[u8],
    rehearsed: &[u8],
) -> Result<Confirmed, String> {
    let read = |json| trimtab_json::parse(json).map_err(|error| error.to_string());
    let (live, rehearsed) = (read(live)?, read(rehearsed)?);
    let mut confirmed = Confirmed::default();
    for difference in differences {
        let path = Path::parse(&difference.path).map_err(|error| error.to_string())?;
        let before = path.resolve(&live).map(canonical);
        let after = path.resolve(&rehearsed).map(canonical);
        let real = match difference.kind {
            DifferenceKind::Changed | DifferenceKind::Missing | DifferenceKind::Pruned => {
                before != after
            }
            // An apply releases or leaves these; removing is a decision of its own.
            DifferenceKind::Released => before != after || after.is_some(),
            DifferenceKind::Stray => after.is_some(),
        };
        if real {
            confirmed.differences.push(difference);
        } else if after.is_none() {
            confirmed.findings.push(Finding {
                name: "desired-field-not-kept".into(),
                severity: Severity::Warning,
                message: format!(
                    "{} is stated and the API server drops it: the type's schema does not know the field, or an admission webhook removes it",
                    difference.path
                ),
                path: Some(difference.path),
            });
        }
    }
    Ok(confirmed)
}

/// Marks the differences that lie in fields which the server says cannot change. Where it names
/// none of them (a rule over the whole object), all are marked.
pub(crate) fn immutable(mut differences: Vec<Difference>, fields: &[String]) -> Vec<Difference> {
    let pointers: Vec<String> =
        fields.iter().map(|field| format!("/{}", field.replace('.', "/"))).collect();
    let field_of = |path: &str| {
        pointers.iter().find(|pointer| {
            path.strip_prefix(pointer.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    };
    let named = differences.iter().any(|difference| field_of(&difference.path).is_some());
    for difference in &mut differences {
        let field = field_of(&difference.path).or(pointers.first().filter(|_| !named));
        if difference.immutable.is_none() {
            difference.immutable = field.cloned();
        }
    }
    differences
}

/// Values of desired that the written object does not have: one finding for each.
pub(crate) fn unkept(desired: &[u8], written: &[u8]) -> Vec<Finding> {
    let (Ok(desired), Ok(written)) = (trimtab_json::parse(desired), trimtab_json::parse(written))
    else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    walk(&desired, &written, &mut String::new(), &mut findings);
    findings
}

/// Only object members are followed: whether a list kept its elements is the plugin's to judge,
/// on the next event.
fn walk(desired: &Value<'_>, written: &Value<'_>, path: &mut String, findings: &mut Vec<Finding>) {
    let (Value::Object(desired), Value::Object(written)) = (desired, written) else {
        return;
    };
    for (name, value) in desired.iter() {
        let length = path.len();
        path.push('/');
        path.push_str(&name.replace('~', "~0").replace('/', "~1"));
        let folded = matches!(path.as_str(), "/stringData");
        match written.get(name) {
            Some(kept) => walk(value, kept, path, findings),
            None if folded || is_empty(value) => {}
            None => findings.push(Finding {
                name: "desired-field-not-kept".into(),
                severity: Severity::Warning,
                message: format!("{path} is stated and the API server did not keep it"),
                path: Some(path.clone()),
            }),
        }
        path.truncate(length);
    }
}

/// Values that an API server may leave out without losing anything.
fn is_empty(value: &Value<'_>) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(text) => text == "0",
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(object) => object.iter().all(|(_, value)| is_empty(value)),
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

    fn check(kind: DifferenceKind, path: &str, live: &str, rehearsed: &str) -> (usize, usize) {
        let difference = Difference {
            path: path.into(),
            kind,
            desired: None,
            live: None,
            immutable: None,
            managers: vec![],
        };
        let confirmed = confirm(vec![difference], live.as_bytes(), rehearsed.as_bytes()).unwrap();
        (confirmed.differences.len(), confirmed.findings.len())
    }

    #[test]
    fn a_difference_that_the_server_would_change_is_real() {
        assert_eq!(check(DifferenceKind::Changed, "/a", r#"{"a":1}"#, r#"{"a":2}"#), (1, 0));
        assert_eq!(check(DifferenceKind::Missing, "/a", r"{}", r#"{"a":2}"#), (1, 0));
    }

    #[test]
    fn a_difference_of_spelling_alone_is_none() {
        assert_eq!(check(DifferenceKind::Changed, "/a", r#"{"a":1}"#, r#"{"a":1}"#), (0, 0));
    }

    #[test]
    fn a_stated_field_that_the_server_drops_is_a_finding() {
        assert_eq!(check(DifferenceKind::Missing, "/a", r"{}", r"{}"), (0, 1));
    }

    #[test]
    fn a_stray_field_survives_an_apply_and_stays_a_difference() {
        assert_eq!(check(DifferenceKind::Stray, "/a", r#"{"a":1}"#, r#"{"a":1}"#), (1, 0));
    }

    #[test]
    fn what_the_server_says_cannot_change_is_marked() {
        let seen = |path: &str| Difference {
            path: path.into(),
            kind: DifferenceKind::Changed,
            desired: None,
            live: None,
            immutable: None,
            managers: vec![],
        };
        let all = vec![seen("/spec/selector/matchLabels/a"), seen("/spec/selectors"), seen("/x")];
        let marks = |fields: &[&str]| {
            let fields: Vec<String> = fields.iter().map(ToString::to_string).collect();
            let marked = immutable(all.clone(), &fields);
            marked.into_iter().map(|difference| difference.immutable).collect::<Vec<_>>()
        };
        assert_eq!(marks(&["spec.selector"]), [Some("/spec/selector".into()), None, None]);
        let whole = Some("/data".to_owned());
        assert_eq!(marks(&["data"]), [whole.clone(), whole.clone(), whole], "no one is named");
    }

    #[test]
    fn fields_that_a_write_lost_are_named() {
        let found = unkept(br#"{"a":{"b":1,"c":{}},"d":2}"#, br#"{"a":{},"d":3}"#);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path.as_deref(), Some("/a/b"));
    }
}
