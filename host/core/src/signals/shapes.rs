//! Secret material by its shape: private keys, and tokens of services that have a known form.
//!
//! Takes text; gives the shape's name and never what has it. A shape counts only with a body that
//! could be real: examples of documentation repeat characters or say so.

/// A token with a fixed beginning.
struct Shape {
    name: &'static str,
    prefix: &'static str,
    /// Characters that must follow.
    body: usize,
}

const SHAPES: [Shape; 22] = [
    Shape { name: "AWS access key", prefix: "AKIA", body: 16 },
    Shape { name: "AWS temporary access key", prefix: "ASIA", body: 16 },
    Shape { name: "GitHub token", prefix: "ghp_", body: 36 },
    Shape { name: "GitHub token", prefix: "gho_", body: 36 },
    Shape { name: "GitHub token", prefix: "ghu_", body: 36 },
    Shape { name: "GitHub token", prefix: "ghs_", body: 36 },
    Shape { name: "GitHub token", prefix: "github_pat_", body: 40 },
    Shape { name: "GitLab token", prefix: "glpat-", body: 20 },
    Shape { name: "Slack token", prefix: "xoxb-", body: 20 },
    Shape { name: "Slack token", prefix: "xoxp-", body: 20 },
    Shape { name: "Slack token", prefix: "xoxa-", body: 20 },
    Shape { name: "Stripe key", prefix: "sk_live_", body: 20 },
    Shape { name: "Stripe key", prefix: "rk_live_", body: 20 },
    Shape { name: "Google API key", prefix: "AIza", body: 35 },
    Shape { name: "npm token", prefix: "npm_", body: 36 },
    Shape { name: "PyPI token", prefix: "pypi-AgE", body: 40 },
    Shape { name: "Docker Hub token", prefix: "dckr_pat_", body: 24 },
    Shape { name: "SendGrid key", prefix: "SG.", body: 40 },
    Shape { name: "Vault token", prefix: "hvs.", body: 24 },
    Shape { name: "DigitalOcean token", prefix: "dop_v1_", body: 60 },
    Shape { name: "Anthropic API key", prefix: "sk-ant-", body: 40 },
    Shape { name: "age secret key", prefix: "AGE-SECRET-KEY-1", body: 40 },
];

/// Base64 of a key that follows its header, at least.
const KEY_BODY: usize = 64;
/// Different characters of a body that is no placeholder.
const DISTINCT: usize = 9;

/// The name of the first shape in this text.
pub fn shape_in(text: &str) -> Option<&'static str> {
    if private_key(text) {
        return Some("private key");
    }
    if web_token(text) {
        return Some("JSON Web Token");
    }
    SHAPES.iter().find(|shape| has(text, shape)).map(|shape| shape.name)
}

fn has(text: &str, shape: &Shape) -> bool {
    text.match_indices(shape.prefix).any(|(at, _)| {
        let begins = text[..at].chars().next_back().is_none_or(|it| !it.is_ascii_alphanumeric());
        let body = token(&text[at + shape.prefix.len()..]);
        begins && body.len() >= shape.body && is_real(body)
    })
}

/// As far as the text is a token.
fn token(text: &str) -> &str {
    let end = text.find(|it: char| !(it.is_ascii_alphanumeric() || "_-.".contains(it)));
    &text[..end.unwrap_or(text.len())]
}

fn is_real(body: &str) -> bool {
    let mut seen: Vec<u8> = body.bytes().collect();
    seen.sort_unstable();
    seen.dedup();
    let says_so = ["EXAMPLE", "example", "xxxx", "XXXX", "redacted", "REDACTED"];
    seen.len() >= DISTINCT && !says_so.iter().any(|word| body.contains(word))
}

fn private_key(text: &str) -> bool {
    text.match_indices("PRIVATE KEY-----").any(|(at, header)| {
        let begins = text[..at].rfind("-----BEGIN ").is_some_and(|from| at - from < 40);
        // Line ends are as the text has them, or written out.
        let body = text[at + header.len()..].replace("\\n", "");
        let base64 = |it: char| it.is_ascii_alphanumeric() || "+/=".contains(it);
        let body: String =
            body.chars().filter(|it| !it.is_whitespace()).take_while(|it| base64(*it)).collect();
        begins && body.len() >= KEY_BODY && is_real(&body)
    })
}

/// Three parts of which the first two are JSON objects in base64.
fn web_token(text: &str) -> bool {
    text.match_indices("eyJ").any(|(at, _)| {
        let begins = text[..at].chars().next_back().is_none_or(|it| !it.is_ascii_alphanumeric());
        let parts: Vec<&str> = token(&text[at..]).split('.').collect();
        begins
            && matches!(&parts[..], [head, body, signature] if head.len() >= 12
                && body.starts_with("eyJ") && body.len() >= 16
                && signature.len() >= 32 && is_real(signature))
    })
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
    fn every_shape_is_known_within_other_text_and_not_in_a_word() {
        for shape in &SHAPES {
            let token = made(shape.prefix, shape.body.max(20));
            assert!(shape_in(&format!("token: \"{token}\"")).is_some(), "{}", shape.name);
            assert_eq!(shape_in(&format!("x{token}")), None, "{}", shape.name);
            assert_eq!(shape_in(&format!("{}{}", shape.prefix, "x".repeat(60))), None);
            assert_eq!(shape_in(shape.prefix), None);
        }
        let jwt = format!("{}.{}.{}", made("eyJ", 20), made("eyJ", 20), made("", 40));
        assert_eq!(shape_in(&format!("Bearer {jwt}")), Some("JSON Web Token"));
        assert_eq!(shape_in(&made("AKIA", 9)), None);
        assert_eq!(shape_in("AKIAIOSFODNN7EXAMPLE"), None);
    }

    #[test]
    fn a_private_key_is_one_with_its_body_and_a_text_about_keys_is_none() {
        let body = made("", 64);
        for header in ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY"] {
            for line_end in ["\n", "\\n", "\r\n"] {
                let text = format!("a: -----BEGIN {header}-----{line_end}{body}{line_end}");
                assert_eq!(shape_in(&text), Some("private key"), "{text}");
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
