//! What somebody else said, for people to read: bounded, without control characters, without
//! credentials.

use crate::limits::MAX_WORDS;

/// The words as they are shown. `secrets` are cut out wherever they stand.
pub(crate) fn shown(words: &str, secrets: &[String]) -> String {
    let mut words = words.to_owned();
    for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
        words = words.replace(secret.as_str(), "…");
    }
    let words = without_userinfo(&words);
    let mut shown = String::new();
    for word in words.split_whitespace() {
        if shown.chars().count() + word.chars().count() >= MAX_WORDS {
            shown.push('…');
            break;
        }
        if !shown.is_empty() {
            shown.push(' ');
        }
        // A terminal obeys control characters, and readers are misled by marks of direction.
        shown.extend(word.chars().map(|sign| match sign {
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                '\u{fffd}'
            }
            sign if sign.is_control() => '\u{fffd}',
            sign => sign,
        }));
    }
    shown
}

/// An error with what caused it, in one line.
pub(crate) fn of_error(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !more.is_empty() && !words.contains(&more) {
            words.push_str(": ");
            words.push_str(&more);
        }
        cause = error.source();
    }
    words
}

/// Addresses without what stands before their host: a server may repeat what it was asked.
fn without_userinfo(words: &str) -> String {
    let mut rest = words;
    let mut out = String::new();
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let end = after
            .find(|sign: char| sign.is_whitespace() || "/?#\"'".contains(sign))
            .unwrap_or(after.len());
        let (authority, behind) = after.split_at(end);
        out.push_str(authority.rsplit('@').next().unwrap_or_default());
        rest = behind;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_others_are_bounded_and_harmless_and_hold_no_credentials() {
        let secrets = ["hunter2".to_owned(), String::new()];
        let told = shown("\x1b[2Jno\r\n  such https://u:hunter2@git.test/a 'hunter2'", &secrets);
        assert_eq!(told, "\u{fffd}[2Jno such https://git.test/a '…'");
        let told = shown(&"word ".repeat(1000), &[]);
        assert!(told.chars().count() <= MAX_WORDS && told.ends_with('…'), "{told}");
        assert!(shown(&"x".repeat(1_000_000), &[]).len() < 10);
    }
}
