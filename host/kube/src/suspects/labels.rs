//! Label selectors, over labels that may be known in part: yes, no, or perhaps.

use serde::Deserialize;
use std::collections::BTreeMap;

/// An answer where not everything is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Answer {
    No,
    Perhaps,
    Yes,
}

impl From<bool> for Answer {
    fn from(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }
}

impl Answer {
    pub(super) fn not(self) -> Self {
        match self {
            Self::No => Self::Yes,
            Self::Perhaps => Self::Perhaps,
            Self::Yes => Self::No,
        }
    }
}

/// Labels of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct Labels {
    pub(super) known: BTreeMap<String, String>,
    /// Whether it has no others.
    pub(super) all: bool,
}

impl Labels {
    /// `is` of the label's value, `None` if the object does not have it.
    fn ask(&self, key: &str, is: impl Fn(Option<&str>) -> bool) -> Answer {
        match self.known.get(key) {
            None if !self.all => Answer::Perhaps,
            held => is(held.map(String::as_str)).into(),
        }
    }
}

/// `LabelSelector` of the API; an empty one selects everything.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Selector {
    #[serde(default)]
    match_labels: BTreeMap<String, String>,
    #[serde(default)]
    match_expressions: Vec<Expression>,
}

#[derive(Clone, Debug, Deserialize)]
struct Expression {
    key: String,
    operator: String,
    #[serde(default)]
    values: Vec<String>,
}

impl Selector {
    pub(super) fn selects(&self, labels: &Labels) -> Answer {
        let by_label = self
            .match_labels
            .iter()
            .map(|(key, wanted)| labels.ask(key, |held| held == Some(wanted)));
        let by_expression = self.match_expressions.iter().map(|expression| {
            let listed = |held: &str| expression.values.iter().any(|value| value == held);
            labels.ask(&expression.key, |held| match expression.operator.as_str() {
                "In" => held.is_some_and(listed),
                "NotIn" => !held.is_some_and(listed),
                "Exists" => held.is_some(),
                "DoesNotExist" => held.is_none(),
                _ => true,
            })
        });
        by_label.chain(by_expression).min().unwrap_or(Answer::Yes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selects(selector: &str, all: bool) -> Answer {
        let selector: Selector = serde_json::from_str(selector).unwrap();
        let known = [("a".to_owned(), "1".to_owned())].into();
        selector.selects(&Labels { known, all })
    }

    #[test]
    fn a_selector_is_decided_as_far_as_the_labels_are_known() {
        for (selector, whole, part) in [
            ("{}", Answer::Yes, Answer::Yes),
            (r#"{"matchLabels":{"a":"1"}}"#, Answer::Yes, Answer::Yes),
            (r#"{"matchLabels":{"a":"2"}}"#, Answer::No, Answer::No),
            (r#"{"matchLabels":{"a":"1","b":"1"}}"#, Answer::No, Answer::Perhaps),
            (
                r#"{"matchExpressions":[{"key":"b","operator":"DoesNotExist"}]}"#,
                Answer::Yes,
                Answer::Perhaps,
            ),
            (
                r#"{"matchExpressions":[{"key":"b","operator":"NotIn","values":["1"]}]}"#,
                Answer::Yes,
                Answer::Perhaps,
            ),
            (
                r#"{"matchExpressions":[{"key":"a","operator":"In","values":["2"]},{"key":"b","operator":"Exists"}]}"#,
                Answer::No,
                Answer::No,
            ),
        ] {
            assert_eq!(
                (selects(selector, true), selects(selector, false)),
                (whole, part),
                "{selector}"
            );
        }
    }
}
