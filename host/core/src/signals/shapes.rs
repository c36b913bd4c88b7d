//! Secret material by its shape: private keys, and tokens of services that have a known form.
//!
//! Takes text; gives the shape's name and never what has it. The forms are `trimtab_compare::shapes`,
//! as the policy over secrets has them; a signal is stricter: a shape counts only with a body that could
//! be real. Examples of documentation repeat characters or say so, and a text about keys has no key.

use trimtab_compare::shapes::{self, Class};

/// Base64 of a key that follows its header, at least.
const KEY_BODY: usize = 64;
/// Different characters of a body that is no placeholder.
const DISTINCT: usize = 9;

/// The name of the first shape in this text.
pub fn shape_in(text: &str) -> Option<&'static str> {
    shapes::find(text).into_iter().find_map(|found| {
        let it = text.get(found.range)?;
        let is = match found.class {
            Class::Token => is_real(it),
            Class::PrivateKey => is_key(it),
            // A password is not known by its shape.
            Class::UrlPassword => false,
        };
        is.then_some(found.shape)
    })
}

fn is_real(body: &str) -> bool {
    let mut seen: Vec<u8> = body.bytes().collect();
    seen.sort_unstable();
    seen.dedup();
    seen.len() >= DISTINCT
}

/// Whether a key's body follows its header, or all of it is encoded once more.
fn is_key(text: &str) -> bool {
    let after = text.find("PRIVATE KEY").and_then(|at| text.get(at..));
    let body = match after.and_then(|label| label.split_once("-----")) {
        Some((_, body)) => body,
        None => text,
    };
    // Line ends are as the text has them, or written out.
    let body = body.replace("\\n", "");
    let base64 = |it: char| it.is_ascii_alphanumeric() || "+/=".contains(it);
    let body: String =
        body.chars().filter(|it| !it.is_whitespace()).take_while(|it| base64(*it)).collect();
    body.len() >= KEY_BODY && is_real(&body) && !shapes::is_placeholder(&body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Put together here, so that no file of the project looks as if it held one.
    fn made(prefix: &str, length: usize) -> String {
        let body = "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0z".bytes().cycle().take(length);
        format!("{prefix}{}", String::from_utf8_lossy(&body.collect::<Vec<u8>>()))
    }

    #[test]
    fn a_token_is_known_within_other_text_and_not_in_a_word_or_an_example() {
        let upper = "QWERTZUPASDFGH23";
        for (shape, token) in [
            ("github-token", made("ghp_", 36)),
            ("npm-token", made("npm_", 36)),
            ("aws-access-key", format!("AKIA{upper}")),
            ("json-web-token", format!("{}.{}.{}", made("eyJ", 20), made("eyJ", 20), made("", 40))),
        ] {
            assert_eq!(shape_in(&format!("token: \"{token}\"")), Some(shape));
            assert_eq!(shape_in(&format!("x{token}")), None, "{shape}");
        }
        assert_eq!(shape_in(&format!("ghp_{}", "x".repeat(36))), None);
        assert_eq!(shape_in(&format!("ghp_{}", "ab".repeat(18))), None, "no token has two letters");
        assert_eq!(shape_in("AKIAIOSFODNN7EXAMPLE"), None);
        assert_eq!(shape_in("db://me:s3cr3t-passw0rd@host"), None, "known by no form");
    }

    #[test]
    fn a_private_key_is_one_with_its_body_and_a_text_about_keys_is_none() {
        let body = made("", 64);
        for header in ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY"] {
            for line_end in ["\n", "\\n", "\r\n"] {
                let text = format!("a: -----BEGIN {header}-----{line_end}{body}{line_end}");
                assert_eq!(shape_in(&text), Some("private-key"), "{text}");
            }
        }
        let public = format!("-----BEGIN PUBLIC KEY-----\n{body}\n");
        for text in ["PEM, begins with -----BEGIN PRIVATE KEY----- as usual", &public] {
            assert_eq!(shape_in(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_search(text in ".{0,200}") {
            let _ = shape_in(&text);
            let _ = shape_in(&format!("é-----BEGIN PRIVATE KEY-----{text}eyJ{text}AKIA{text}"));
        }
    }
}
