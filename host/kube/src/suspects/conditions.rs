//! Match conditions: expressions in CEL that a webhook or policy adds to its rules. The few forms
//! that most of them have are decided here; of any other one it is said that it was not.
//!
//! What is decided: comparisons (`==`, `!=`) of a field of the request with a text, `true`, `false`,
//! and what `!`, `&&`, `||` and parentheses make of them.

use super::labels::Answer;

/// What a request of ours says of itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    pub(super) kind: &'a str,
    pub(super) resource: &'a str,
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
}

impl Asked<'_> {
    /// The value of a field that the request itself fixes.
    fn field(&self, path: &str) -> Option<&str> {
        Some(match path {
            "request.operation" => "UPDATE",
            "request.subResource" | "request.requestSubResource" => "",
            "request.kind.group" | "request.resource.group" => self.group,
            "request.kind.version" | "request.resource.version" => self.version,
            "request.kind.kind" | "object.kind" | "oldObject.kind" => self.kind,
            "request.resource.resource" => self.resource,
            "request.namespace" | "object.metadata.namespace" | "oldObject.metadata.namespace" => {
                self.namespace
            }
            "request.name" | "object.metadata.name" | "oldObject.metadata.name" => self.name,
            _ => return None,
        })
    }
}

/// Whether the condition holds for this request.
pub(super) fn holds(expression: &str, asked: &Asked<'_>) -> Answer {
    let text = expression.trim();
    for (operator, ends) in [("||", Answer::Yes), ("&&", Answer::No)] {
        let parts = split(text, operator);
        if parts.len() > 1 {
            let all = parts.into_iter().map(|part| holds(part, asked));
            let answer = if ends == Answer::Yes { all.max() } else { all.min() };
            return answer.unwrap_or(Answer::Perhaps);
        }
    }
    if let Some(inner) = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'))
        && is_balanced(inner)
    {
        return holds(inner, asked);
    }
    if let Some(inner) = text.strip_prefix('!')
        && !inner.starts_with('=')
    {
        // `!a == b` is `(!a) == b`, which is no form that is decided.
        let whole = inner.trim_start().starts_with('(') || !inner.contains('=');
        return if whole { holds(inner, asked).not() } else { Answer::Perhaps };
    }
    match text {
        "true" => return Answer::Yes,
        "false" => return Answer::No,
        _ => {}
    }
    for (operator, equal) in [("==", true), ("!=", false)] {
        if let Some((left, right)) = text.split_once(operator) {
            let (left, right) = (left.trim(), right.trim());
            let compared = match (literal(left), literal(right)) {
                (None, Some(wanted)) => asked.field(left).map(|held| held == wanted),
                (Some(wanted), None) => asked.field(right).map(|held| held == wanted),
                _ => None,
            };
            return compared.map_or(Answer::Perhaps, |same| (same == equal).into());
        }
    }
    Answer::Perhaps
}

/// The text of a literal without escapes.
fn literal(text: &str) -> Option<&str> {
    ['"', '\''].into_iter().find_map(|quote| {
        let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
        (!inner.contains([quote, '\\'])).then_some(inner)
    })
}

/// Whether every parenthesis is closed again, and none before it was opened.
fn is_balanced(text: &str) -> bool {
    let mut depth = 0_i32;
    walk(text, |_, letter| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        depth >= 0
    }) && depth == 0
}

/// The parts between an operator that stands outside of parentheses, brackets and texts.
fn split<'t>(text: &'t str, operator: &str) -> Vec<&'t str> {
    let mut parts = Vec::new();
    let (mut depth, mut begin) = (0_i32, 0);
    walk(text, |at, letter| {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0
            && at >= begin
            && text.get(at..).is_some_and(|rest| rest.starts_with(operator))
        {
            parts.extend(text.get(begin..at));
            begin = at + operator.len();
        }
        true
    });
    parts.extend(text.get(begin..));
    parts
}

/// Tells each letter that is outside of texts, until `tell` says no. Whether it never did.
fn walk(text: &str, mut tell: impl FnMut(usize, char) -> bool) -> bool {
    let mut quote = None;
    for (at, letter) in text.char_indices() {
        match quote {
            Some(open) if open == letter => quote = None,
            Some(_) => {}
            None if matches!(letter, '"' | '\'') => quote = Some(letter),
            None if !tell(at, letter) => return false,
            None => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_conditions_are_decided_and_others_are_said_to_be_open() {
        let asked = Asked {
            group: "apps",
            version: "v1",
            kind: "Deployment",
            resource: "deployments",
            namespace: "shop",
            name: "web",
        };
        for (expression, answer) in [
            ("true", Answer::Yes),
            ("!true", Answer::No),
            ("request.resource.group == 'apps'", Answer::Yes),
            (r#"request.namespace != "shop""#, Answer::No),
            (r#""web" == object.metadata.name && request.operation == "UPDATE""#, Answer::Yes),
            (r#"request.name == "a" || request.name == "web""#, Answer::Yes),
            (r#"!(request.name == "a" || request.name == "web")"#, Answer::No),
            (r#"(request.name == "a") && (request.name == "b" || true)"#, Answer::No),
            (r#"request.userInfo.username == "x""#, Answer::Perhaps),
            (r#"request.userInfo.username == "x" && request.name == "a""#, Answer::No),
            (r#"request.userInfo.username == "x" || request.name == "web""#, Answer::Yes),
            (r#"!("a" in object.metadata.labels)"#, Answer::Perhaps),
            (r#"object.metadata.name == "a && b""#, Answer::No),
            (r#"object.spec.replicas > 1"#, Answer::Perhaps),
            (r#"object.metadata.labels["a"] == "1""#, Answer::Perhaps),
            ("", Answer::Perhaps),
        ] {
            assert_eq!(holds(expression, &asked), answer, "{expression}");
        }
    }
}
