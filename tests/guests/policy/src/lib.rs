//! A policy that answers as the annotation `policy.example/answer` of the object says, and denies
//! the names that its configuration lists under `denyNames`.

use trimtab_sdk::{Path, Point, Policy, Reason, Review, ReviewVerdict, Value};

/// Answers as it is told.
pub struct Obedient;

/// The annotation that chooses.
const ANSWER: &str = "policy.example/answer";

impl Policy for Obedient {
    fn review(review: &Review<'_>) -> ReviewVerdict {
        let name = review.id().name;
        let denied = review.configuration().get("denyNames").and_then(Value::as_array);
        if denied.is_some_and(|names| names.iter().any(|it| it.as_str() == Some(name))) {
            return ReviewVerdict::deny(Reason::new("denied-name", "the configuration denies it"));
        }
        let told = review.object().and_then(|it| it.str_at(&["metadata", "annotations", ANSWER]));
        let at = || Path::parse("/metadata/annotations").unwrap_or_default();
        match (told.unwrap_or_default(), review.point()) {
            ("deny", _)
            | ("deny-entering", Point::Enters)
            | ("deny-writes", Point::BeforeWrite) => {
                ReviewVerdict::deny(Reason::new("told-to-deny", "the object asks for it").at(at()))
            }
            ("warn", _) => {
                ReviewVerdict::warn(Reason::new("told-to-warn", "the object asks for it").at(at()))
            }
            ("trap", _) => panic!("told to trap"),
            ("loop", _) => loop {
                core::hint::spin_loop();
            },
            ("nothing", _) => ReviewVerdict::Deny(Vec::new()),
            // What it was shown, so that tests see that it arrived.
            ("tell", _) => {
                let from = review.provenance();
                let words = [
                    from.source,
                    from.file.unwrap_or("-"),
                    from.author.unwrap_or("-"),
                    &from.signers.join("+"),
                    &review.change().map_or(String::new(), |change| change.paths.join(" ")),
                ];
                ReviewVerdict::warn(Reason::new("told-to-tell", words.join("|")))
            }
            _ => ReviewVerdict::Allow,
        }
    }
}

trimtab_sdk::export_policy!(Obedient);

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_sdk::ActionKind;
    use trimtab_sdk::testing::ReviewCase;

    fn told(answer: &str) -> ReviewCase {
        ReviewCase::new().desired(format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a","annotations":
                {{"policy.example/answer":"{answer}"}}}}}}"#
        ))
    }

    #[test]
    fn it_answers_as_it_is_told_and_as_it_is_configured() {
        told("anything").check::<Obedient>("allow");
        told("deny").check::<Obedient>("deny told-to-deny /metadata/annotations");
        told("warn").check::<Obedient>("warn told-to-warn /metadata/annotations");
        told("deny-writes").check::<Obedient>("allow");
        told("deny-writes")
            .change(ActionKind::Apply, &[""])
            .check::<Obedient>("deny told-to-deny /metadata/annotations");
        told("anything")
            .configuration(r#"{"denyNames": ["a"]}"#)
            .check::<Obedient>("deny denied-name");
    }
}
