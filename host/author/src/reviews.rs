//! Cases of policies: what a policy is shown, and what should come of it. They stand beside the cases
//! of a reconciler, and have `object` where those have `desired`.

use crate::test::{bytes, identity};
use serde_json::Value;
use std::sync::Arc;
use trimtab_core::decision::ActionKind;
use trimtab_core::object::Origin;
use trimtab_core::policy::{Point, Proposed, Reason, Request, Verdict, Vouched};
use trimtab_wasm::Plugin;

/// One case.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReviewCase {
    /// A sentence.
    pub(crate) name: String,
    /// The object as declared; left out: it is declared no more, and `change` deletes it.
    object: Option<Value>,
    /// The object as the API server has it.
    live: Option<Value>,
    /// What is about to be written; left out: desired state enters.
    change: Option<Change>,
    /// The policy's configuration.
    #[serde(default)]
    config: Value,
    #[serde(default)]
    provenance: Provenance,
    expect: Expect,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    /// By the words of grants: `apply-desired`, `delete`, …
    action: String,
    #[serde(default)]
    paths: Vec<String>,
    /// What is applied in place of the object.
    content: Option<Value>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Provenance {
    source: Option<String>,
    revision: Option<String>,
    file: Option<String>,
    line: Option<u32>,
    author: Option<String>,
    signers: Vec<String>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    verdict: Word,
    /// The controls of all its reasons, in any order; left out: not checked.
    controls: Option<Vec<String>>,
    /// Part of one of its messages.
    reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Word {
    Allow,
    Warn,
    Deny,
}

/// Whether a case's text is one of a policy.
pub(crate) fn is_one(case: &Value) -> bool {
    case.get("desired").is_none()
}

/// Reads one.
///
/// # Errors
/// What is wrong, with its line where there is one.
pub(crate) fn parse(text: &str) -> Result<ReviewCase, String> {
    let case: ReviewCase =
        serde_saphyr::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
    if case.object.is_none() && case.change.is_none() {
        return Err("a case of a policy has an object, or live and a change; one of a reconciler has desired".into());
    }
    if case.expect.verdict == Word::Allow
        && (case.expect.controls.is_some() || case.expect.reason.is_some())
    {
        return Err("expect: controls and reason go with verdict: warn and verdict: deny".into());
    }
    Ok(case)
}

/// Runs one case; gives what is not as expected, or what is wrong with the case itself.
pub(crate) fn run(plugin: &Plugin, case: &ReviewCase, now_ms: u64) -> Result<Vec<String>, String> {
    if !plugin.inspection().reviews() {
        return Err("the plugin exports no policy, and the case has no desired".into());
    }
    let request = request(case, now_ms)?;
    if plugin.manifest().claim_for(&request.key.group_kind).is_none() {
        return Err(format!("the plugin does not claim {}", request.key.group_kind));
    }
    let configuration = bytes(&case.config)?;
    Ok(match plugin.review(&request, &configuration) {
        Ok(verdict) => verify(&case.expect, &verdict),
        Err(fault) => vec![format!("review {fault}")],
    })
}

fn request(case: &ReviewCase, now_ms: u64) -> Result<Request, String> {
    let (what, named) = match (&case.object, &case.live) {
        (Some(object), _) => ("object", object),
        (None, Some(live)) => ("live", live),
        (None, None) => return Err("the case has neither object nor live".into()),
    };
    let (gvk, key) = identity(what, named)?;
    let json = |object: &Option<Value>| object.as_ref().map(bytes).transpose();
    let from = &case.provenance;
    let text = |given: &Option<String>, usual: &str| -> Arc<str> {
        given.as_deref().unwrap_or(usual).into()
    };
    let change = case.change.as_ref().map(|change| {
        let action = ActionKind::parse(&change.action).ok_or_else(|| {
            let known: Vec<&str> = ActionKind::ALL.iter().map(|kind| kind.as_str()).collect();
            format!("change: action {:?} is none of {}", change.action, known.join(", "))
        })?;
        Ok::<_, String>(Proposed {
            action,
            paths: match &change.paths[..] {
                [] => vec![String::new()],
                paths => paths.to_vec(),
            },
            creates: case.live.is_none(),
            content: json(&change.content)?,
        })
    });
    Ok(Request {
        point: if case.change.is_some() { Point::BeforeWrite } else { Point::Enters },
        key,
        gvk,
        desired: json(&case.object)?,
        live: json(&case.live)?,
        change: change.transpose()?,
        source: text(&from.source, "case"),
        revision: text(&from.revision, "case"),
        origin: Some(Origin { file: text(&from.file, "case"), line: from.line.unwrap_or(1) }),
        vouched: Arc::new(Vouched {
            author: from.author.as_deref().map(Into::into),
            signers: from.signers.iter().map(|name| name.as_str().into()).collect(),
        }),
        now_ms,
    })
}

fn verify(expect: &Expect, found: &Verdict) -> Vec<String> {
    let (word, reasons) = match found {
        Verdict::Allow => (Word::Allow, &[][..]),
        Verdict::Warn(reasons) => (Word::Warn, &reasons[..]),
        Verdict::Deny(reasons) => (Word::Deny, &reasons[..]),
    };
    let shown = |reason: &Reason| {
        let at = reason.path.as_ref().map(|path| format!(" at {path}")).unwrap_or_default();
        format!("\n  {}{at}: {}", reason.control, reason.message)
    };
    let all: String = reasons.iter().map(shown).collect();
    if word != expect.verdict {
        return vec![format!("verdict: expected {:?}, found {word:?}{all}", expect.verdict)];
    }
    let mut wrong = Vec::new();
    if let Some(controls) = &expect.controls {
        let mut expected: Vec<&str> = controls.iter().map(String::as_str).collect();
        let mut found: Vec<&str> = reasons.iter().map(|reason| &*reason.control).collect();
        expected.sort_unstable();
        found.sort_unstable();
        if expected != found {
            wrong.push(format!("controls: expected {expected:?}, found {found:?}{all}"));
        }
    }
    if let Some(part) = &expect.reason
        && !reasons.iter().any(|reason| reason.message.contains(part))
    {
        wrong.push(format!("reason: no message has {part:?}{all}"));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "
name: a sentence
object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
provenance: {signers: [alice, bob]}
expect: {verdict: deny, controls: [x], reason: part}
";

    #[test]
    fn a_case_of_a_policy_is_read_strictly_and_contradicts_itself_in_no_way() {
        let case = parse(GOOD).unwrap();
        assert_eq!(request(&case, 0).unwrap().vouched.signers.len(), 2);
        for (from, to) in [
            ("object:", "objekt:"),
            ("signers:", "signer:"),
            ("controls:", "control:"),
            ("verdict: deny", "verdict: refuse"),
            ("verdict: deny", "verdict: allow"),
        ] {
            assert!(GOOD.contains(from), "{from}");
            assert!(parse(&GOOD.replacen(from, to, 1)).is_err(), "{to}");
        }
    }

    #[test]
    fn what_is_not_as_expected_is_told_with_all_reasons() {
        let expect = parse(GOOD).unwrap().expect;
        let reason = |control: &str, message: &str| Reason {
            control: control.into(),
            message: message.into(),
            path: None,
        };
        assert!(verify(&expect, &Verdict::Deny(vec![reason("x", "a part of it")])).is_empty());
        let other = verify(&expect, &Verdict::Deny(vec![reason("y", "else")]));
        assert!(other.len() == 2 && other[0].contains("y: else"), "{other:?}");
        assert!(verify(&expect, &Verdict::Allow)[0].contains("found Allow"));
    }
}
