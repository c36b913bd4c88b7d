//! Patterns as people write them in a configuration: `*` and `?`, and kinds as `Kind.group`.

use crate::ObjectId;

/// Whether all of `text` is as the pattern says: `*` stands for any characters, none included, `?`
/// for one, everything else for itself. Takes time of the product of both lengths at most.
pub fn glob(pattern: &str, text: &str) -> bool {
    let mut rest = text.chars();
    let mut pattern = pattern.chars();
    // Where to go on when what follows the last star does not fit: one character later.
    let mut retry = None;
    loop {
        let before = (pattern.clone(), rest.clone());
        match (pattern.next(), rest.next()) {
            (None, None) => return true,
            (Some('*'), _) => {
                rest = before.1;
                retry = Some((pattern.clone(), rest.clone()));
            }
            (Some('?'), Some(_)) => {}
            (Some(wanted), Some(found)) if wanted == found => {}
            _ => {
                let Some((after_star, at)) = &mut retry else { return false };
                if at.next().is_none() {
                    return false;
                }
                (pattern, rest) = (after_star.clone(), at.clone());
            }
        }
    }
}

/// Whether one of the patterns fits.
pub fn any<'p>(patterns: impl IntoIterator<Item = &'p str>, text: &str) -> bool {
    patterns.into_iter().any(|pattern| glob(pattern, text))
}

/// Whether an object is of a kind, written as in grants: `ConfigMap`, `Deployment.apps`,
/// `*.rbac.authorization.k8s.io`, or `*` for every kind.
pub fn kind(pattern: &str, id: &ObjectId<'_>) -> bool {
    let (kind, group) = match pattern {
        "*" => ("*", "*"),
        _ => pattern.split_once('.').unwrap_or((pattern, "")),
    };
    glob(kind, id.kind) && glob(group, id.group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_text_and_a_question_mark_one_character() {
        for (pattern, text) in [
            ("", ""),
            ("*", ""),
            ("*", "abc"),
            ("a*c", "abbc"),
            ("a*b*c", "a-b-b-c"),
            ("?", "ä"),
            ("*-prod", "a-prod-b-prod"),
            ("kube-*", "kube-"),
        ] {
            assert!(glob(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in
            [("", "a"), ("?", ""), ("a*c", "acb"), ("kube-*", "kube"), ("a", "ab"), ("A", "a")]
        {
            assert!(!glob(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn kinds_are_written_as_in_grants() {
        let id = ObjectId { group: "apps", kind: "Deployment", ..ObjectId::default() };
        assert!(kind("Deployment.apps", &id) && kind("*.apps", &id) && kind("*", &id));
        assert!(!kind("Deployment", &id) && !kind("Deployment.batch", &id));
    }
}
