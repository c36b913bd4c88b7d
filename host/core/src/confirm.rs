//! Confirming: what would applying desired really change?
//!
//! Takes the differences that a plugin saw and the object as a rehearsal on the API server left
//! it. The server is the judge of spelling: where it would change nothing, there is nothing to
//! correct. And it is held to its word: a value that desired states and the server does not keep
//! is itself a finding.

use crate::alike::{alike, is_empty};
use crate::decision::{Difference, DifferenceKind, Finding, Severity};
use trimtab_json::{Path, Value};

/// What is left to correct, and what the server would not keep.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Confirmed {
    pub(crate) differences: Vec<Difference>,
    pub(crate) unkept: Vec<Unkept>,
}

/// A value that desired states and that applying does not bring.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unkept {
    pub(crate) difference: Difference,
    /// Whether nothing is there instead.
    dropped: bool,
}

/// Holds the differences against the rehearsal's result.
///
/// # Errors
/// Text, if the live object does not parse.
pub(crate) fn confirm(
    differences: Vec<Difference>,
    live: &[u8],
    rehearsed: &Value<'_>,
) -> Result<Confirmed, String> {
    let live = trimtab_json::parse(live).map_err(|error| error.to_string())?;
    let mut confirmed = Confirmed::default();
    for difference in differences {
        let path = Path::parse(&difference.path).map_err(|error| error.to_string())?;
        let after = path.resolve(rehearsed);
        let moved = || path.resolve(&live).map(canonical) != after.map(canonical);
        let real = match difference.kind {
            DifferenceKind::Changed | DifferenceKind::Missing | DifferenceKind::Pruned => moved(),
            // An apply releases or leaves these; removing is a decision of its own.
            DifferenceKind::Released => after.is_some() || moved(),
            DifferenceKind::Stray => after.is_some(),
        };
        if real {
            confirmed.differences.push(difference);
        } else if !is_kept(&difference, after) {
            confirmed.unkept.push(Unkept { difference, dropped: after.is_none() });
        }
    }
    Ok(confirmed)
}

/// Whether what the server has there says what desired states, however it is spelt. What cannot
/// be told counts as spelling.
fn is_kept(difference: &Difference, after: Option<&Value<'_>>) -> bool {
    let stated = match difference.kind {
        DifferenceKind::Released | DifferenceKind::Stray => None,
        _ => difference.desired.as_deref(),
    };
    let Some(Ok(stated)) = stated.map(trimtab_json::parse) else {
        return difference.kind != DifferenceKind::Pruned || after.is_some();
    };
    match after {
        Some(after) => alike(&stated, after),
        None => is_empty(&stated),
    }
}

/// Whether the rehearsal's culprits have to be looked for.
pub(crate) fn needs_suspects(unkept: &[Unkept]) -> bool {
    unkept.iter().any(|each| each.difference.kind != DifferenceKind::Pruned)
}

/// One finding for each value that is not kept, with who is likely to be the reason: `suspects`
/// are webhooks and policies that match the object, or why they are not known.
pub(crate) fn findings(unkept: &[Unkept], suspects: &Result<Vec<String>, String>) -> Vec<Finding> {
    let likely = match suspects {
        Ok(names) if names.is_empty() => {
            "no mutating webhook or policy matches the object, so that it is likely the API server's own defaulting or validation of the type".to_owned()
        }
        Ok(names) => format!("likely by {}, whose rules and selectors match it", names.join(", ")),
        Err(reason) => format!("likely by an admission webhook or policy ({reason})"),
    };
    let finding = |Unkept { difference, dropped }: &Unkept| {
        let path = &difference.path;
        let (name, message) = match (difference.kind, dropped) {
            (DifferenceKind::Pruned, _) => (
                "desired-field-not-kept",
                format!(
                    "{path} is stated and the API server drops it: the type's schema does not know the field"
                ),
            ),
            (_, true) => (
                "desired-field-not-kept",
                format!("{path} is stated and a dry run of applying it leaves it out: {likely}"),
            ),
            _ => (
                "desired-value-not-kept",
                format!(
                    "{path} keeps another value than is stated, by a dry run of applying it: {likely}"
                ),
            ),
        };
        warning(name, path, message)
    };
    unkept.iter().map(finding).collect()
}

/// The outcome's reason, where nothing else is left to correct.
pub(crate) fn not_kept(unkept: &[Unkept]) -> String {
    let paths: Vec<&str> = unkept.iter().map(|each| each.difference.path.as_str()).collect();
    format!(
        "{} would not be as stated after applying it; nothing is written until that changes",
        paths.join(", ")
    )
}

fn warning(name: &str, path: &str, message: String) -> Finding {
    Finding { name: name.into(), severity: Severity::Warning, message, path: Some(path.into()) }
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

/// What the written object has otherwise than desired states: one finding for each member that is
/// missing, and for each corrected difference whose value is another again.
pub(crate) fn unkept(corrected: &[Difference], desired: &[u8], written: &[u8]) -> Vec<Finding> {
    let (Ok(desired), Ok(written)) = (trimtab_json::parse(desired), trimtab_json::parse(written))
    else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    walk(&desired, &written, &mut String::new(), &mut findings);
    for difference in corrected.iter().filter(|each| each.kind == DifferenceKind::Changed) {
        let after = Path::parse(&difference.path)
            .ok()
            .and_then(|path| path.resolve(&written).map(|after| is_kept(difference, Some(after))));
        if after == Some(false) {
            let path = &difference.path;
            findings.push(warning(
                "desired-value-not-kept",
                path,
                format!("{path} was written as stated, and the API server answered with another value although its dry run had not: an admission webhook that acts otherwise in dry runs is likely"),
            ));
        }
    }
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
            None => {
                let message = format!("{path} is stated and the API server did not keep it");
                findings.push(warning("desired-field-not-kept", path, message));
            }
        }
        path.truncate(length);
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
            desired: Some(b"1000".to_vec()),
            live: None,
            immutable: None,
            managers: vec![],
        };
        let confirmed = confirm(
            vec![difference],
            live.as_bytes(),
            &trimtab_json::parse(rehearsed.as_bytes()).unwrap(),
        )
        .unwrap();
        (confirmed.differences.len(), confirmed.unkept.len())
    }

    #[test]
    fn a_difference_that_the_server_would_change_is_real() {
        assert_eq!(check(DifferenceKind::Changed, "/a", r#"{"a":1}"#, r#"{"a":2}"#), (1, 0));
        assert_eq!(check(DifferenceKind::Missing, "/a", r"{}", r#"{"a":2}"#), (1, 0));
    }

    #[test]
    fn a_difference_of_spelling_alone_is_none() {
        let kept = r#"{"a":"1k"}"#;
        assert_eq!(check(DifferenceKind::Changed, "/a", kept, kept), (0, 0));
    }

    #[test]
    fn a_value_that_the_server_puts_back_in_a_rehearsal_is_a_finding_and_names_the_suspects() {
        let other = r#"{"a":1}"#;
        assert_eq!(check(DifferenceKind::Changed, "/a", other, other), (0, 1));
        let difference = Difference {
            path: "/a".into(),
            kind: DifferenceKind::Changed,
            desired: Some(b"2".to_vec()),
            live: None,
            immutable: None,
            managers: vec![],
        };
        let unkept = confirm(
            vec![difference],
            other.as_bytes(),
            &trimtab_json::parse(other.as_bytes()).unwrap(),
        )
        .unwrap()
        .unkept;
        let found = findings(&unkept, &Ok(vec!["webhook w".into()]));
        assert_eq!(found[0].name, "desired-value-not-kept");
        assert!(found[0].message.contains("likely by webhook w"), "{}", found[0].message);
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
        let found = unkept(&[], br#"{"a":{"b":1,"c":{}},"d":2}"#, br#"{"a":{},"d":3}"#);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path.as_deref(), Some("/a/b"));
    }
}
