//! The key `policy` of a grant: what a plugin may do as a policy.

use super::{API_VERSION, ModeWord, Words, Wrong, namespaces, parse, patterns};
use serde::Deserialize;
use serde_saphyr::Spanned;
use std::collections::BTreeSet;
use trimtab_core::grant::{Mode, Namespaces};
use trimtab_core::identity::Digest;
use trimtab_core::plugin::PluginManifest;
use trimtab_core::policy::{OnError, Point, PolicyTerms};

/// Bytes of a configuration as JSON: it is copied into the sandbox for each review.
const CONFIGURATION_BYTES_AT_MOST: usize = 64 << 10;

/// `policy`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Policy {
    mode: ModeWord,
    #[serde(default)]
    on_error: OnErrorWord,
    #[serde(default)]
    points: Option<Words>,
    #[serde(default)]
    kinds: Option<Words>,
    #[serde(default)]
    namespaces: Option<Words>,
    #[serde(default)]
    sources: Option<Words>,
    #[serde(default)]
    config: Option<serde_json::Value>,
}

/// `onError`.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OnErrorWord {
    #[default]
    Deny,
    Warn,
}

/// The terms, if each can be meant. `grant`: where the grant begins.
///
/// # Errors
/// What is wrong, and what to do.
pub(super) fn check(policy: Policy, grant: &Spanned<String>) -> Result<PolicyTerms, Wrong> {
    let usual = PolicyTerms::default();
    let lists = [
        ("points", &policy.points),
        ("kinds", &policy.kinds),
        ("namespaces", &policy.namespaces),
        ("sources", &policy.sources),
    ];
    for (key, list) in lists {
        if list.as_ref().is_some_and(Vec::is_empty) {
            let what = format!(
                "policy.{key} names nothing, so that nothing is reviewed: leave it out for all"
            );
            return Err(Wrong::at(grant, what));
        }
    }
    let configuration = policy.config.unwrap_or_default().to_string();
    if configuration.len() > CONFIGURATION_BYTES_AT_MOST {
        let what = format!(
            "policy.config has {} bytes as JSON, and {CONFIGURATION_BYTES_AT_MOST} are allowed",
            configuration.len()
        );
        return Err(Wrong::at(grant, what));
    }
    Ok(PolicyTerms {
        mode: policy.mode.into(),
        on_error: match policy.on_error {
            OnErrorWord::Deny => OnError::Deny,
            OnErrorWord::Warn => OnError::Warn,
        },
        points: match &policy.points {
            Some(words) => words.iter().map(point).collect::<Result<BTreeSet<_>, _>>()?,
            None => usual.points,
        },
        kinds: policy.kinds.as_deref().map(patterns).transpose()?,
        namespaces: match &policy.namespaces {
            Some(words) => namespaces(words)?,
            None => Namespaces::All,
        },
        sources: policy.sources.map(|words| words.into_iter().map(|word| word.value).collect()),
        configuration: configuration.into_bytes().into(),
    })
}

fn point(word: &Spanned<String>) -> Result<Point, Wrong> {
    match &*word.value {
        "enters" => Ok(Point::Enters),
        "beforeWrite" => Ok(Point::BeforeWrite),
        other => Err(Wrong::at(
            word,
            format!("policy.points has {other:?}, which is none of enters, beforeWrite"),
        )),
    }
}

/// The grant of a policy as text, with a comment on each key; what a plugin that reconciles as well
/// is granted for that stands in another proposal, to which `policy` is added.
///
/// # Errors
/// What is printed does not read back: a defect.
pub fn proposal(manifest: &PluginManifest, digest: Digest, mode: Mode) -> Result<String, String> {
    let text = format!(
        "apiVersion: {API_VERSION}\n\
         kind: Grant\n\
         plugin: {}\n\
         # The file that this is granted to; another build of the plugin needs its own grant.\n\
         digest: {digest}\n\
         {}",
        manifest.name,
        section(manifest, mode)
    );
    parse(&text, "this grant")?;
    Ok(text)
}

/// The key `policy` alone.
pub fn section(manifest: &PluginManifest, mode: Mode) -> String {
    let claims: Vec<String> =
        manifest.claims.iter().map(|claim| format!("{:?}", claim.to_string())).collect();
    format!(
        "policy:\n  \
           # observe: its verdicts are recorded. enforce: what it denies is stopped.\n  \
           mode: {mode}\n  \
           # What a trap, a timeout or an answer that is none counts as: deny or warn.\n  \
           onError: deny\n  \
           # When desired state enters, and before each write.\n  \
           points: [enters, beforeWrite]\n  \
           # Kind.group, Kind (core group), *.group or *; narrows what the plugin claims.\n  \
           kinds: [{}]\n  \
           # Namespaces by name; left out: all, and what is in none.\n  \
           # namespaces: [shop]\n  \
           # Sources by name; left out: all.\n  \
           # sources: [apps]\n  \
           # What the policy is given as its configuration.\n  \
           config: {{}}\n",
        claims.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use trimtab_core::plugin::KindPattern;

    fn text() -> String {
        let manifest = PluginManifest {
            name: "guard".into(),
            version: "0.1.0".into(),
            description: String::new(),
            wit: "0.1.0".into(),
            claims: vec![KindPattern::Any],
            reads: vec![],
            actions: BTreeSet::new(),
        };
        proposal(&manifest, Digest::of(b"x"), Mode::Enforce).unwrap()
    }

    #[test]
    fn the_printed_grant_of_a_policy_reads_back_and_gives_nothing_to_write() {
        let grant = parse(&text(), "g.yaml").unwrap().remove(0);
        assert!(grant.actions.is_empty() && grant.kinds.is_empty() && !grant.cluster_scoped);
        assert_eq!(grant.mode, Mode::Observe);
        let terms = grant.terms.policy.unwrap();
        assert_eq!((terms.mode, terms.on_error), (Mode::Enforce, OnError::Deny));
        assert_eq!(terms.points, Point::ALL.into());
        assert_eq!(&*terms.configuration, b"{}");
    }

    #[test]
    fn every_key_of_a_policy_is_read_and_has_a_safe_default() {
        let head = &text()[..text().find("policy:").unwrap()];
        let plain =
            parse(&format!("{head}policy: {{mode: observe}}\n"), "g.yaml").unwrap().remove(0);
        assert_eq!(plain.terms.policy, Some(PolicyTerms::default()));
        let full = format!(
            "{head}policy: {{mode: enforce, onError: warn, points: [beforeWrite], kinds: [Pod], \
             namespaces: [shop], sources: [apps], config: {{level: restricted, n: [1, true, null]}}}}\n"
        );
        let terms = parse(&full, "g.yaml").unwrap().remove(0).terms.policy.unwrap();
        assert_eq!((terms.on_error, terms.points), (OnError::Warn, [Point::BeforeWrite].into()));
        assert_eq!(terms.kinds.unwrap().len(), 1);
        assert_eq!(terms.namespaces, Namespaces::Only(["shop".to_owned()].into()));
        assert_eq!(terms.sources, Some(["apps".to_owned()].into()));
        let configuration = String::from_utf8(terms.configuration.to_vec()).unwrap();
        assert_eq!(configuration, r#"{"level":"restricted","n":[1,true,null]}"#);
    }

    #[test]
    fn every_mistake_in_a_policy_names_its_line_and_what_to_write() {
        for (good, bad, expected) in [
            ("mode: enforce", "mode: enfore", "enfore"),
            ("onError: deny", "onError: allow", "allow"),
            ("points: [enters, beforeWrite]", "points: [leaves]", "none of enters, beforeWrite"),
            ("kinds: [\"*\"]", "kinds: [pod]", "is not a kind"),
            ("config: {}", "confg: {}", "confg"),
        ] {
            assert!(text().contains(good), "{good}");
            let error = parse(&text().replace(good, bad), "g.yaml").unwrap_err();
            let at = text().lines().position(|line| line.contains(good)).unwrap() + 1;
            assert!(error.starts_with(&format!("g.yaml:{at}: ")), "{at}: {error}");
            assert!(error.contains(expected), "{error}");
        }
        let nothing = text().replace("[enters, beforeWrite]", "[]");
        assert!(parse(&nothing, "g.yaml").unwrap_err().contains("leave it out"));
    }

    #[test]
    fn a_grant_that_says_half_of_what_a_reconciler_needs_names_the_rest() {
        let half = text().replace("policy:", "mode: observe\npolicy:");
        let error = parse(&half, "g.yaml").unwrap_err();
        assert!(error.contains("missing kinds, namespaces, clusterScoped, actions"), "{error}");
        let none = &text()[..text().find("policy:").unwrap()];
        assert!(parse(none, "g.yaml").unwrap_err().contains("missing mode"));
    }
}
