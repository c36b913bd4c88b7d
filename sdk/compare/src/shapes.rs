//! What a secret looks like whoever made it: tokens with a prefix of their issuer's, JSON web tokens,
//! private keys, and passwords in URLs.
//!
//! Takes a text, gives where in it something is and what it is. The table is ours; where an issuer
//! describes its tokens stands beside each in docs/shipped-policies.md.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

/// Something that was found in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What it is: a stable name in kebab-case.
    pub shape: &'static str,
    /// Which rule of the configuration it falls under.
    pub class: Class,
    /// Where in the text, in bytes.
    pub range: Range<usize>,
}

/// The kinds of things that are found by their shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A token.
    Token,
    /// A private key.
    PrivateKey,
    /// A password in a URL.
    UrlPassword,
}

/// Which characters follow a prefix.
#[derive(Clone, Copy, PartialEq)]
enum Body {
    /// Letters and digits.
    Alnum,
    /// Letters, digits and `_`.
    Word,
    /// Letters, digits, `_` and `-`: base64url.
    Url,
    /// The same and `.`.
    Dotted,
    /// Letters, digits, `+`, `/` and `=`: base64.
    Base64,
    /// Letters, digits, `_` and `/`.
    Path,
    /// Lower case hexadecimal digits.
    Hex,
    /// Upper case letters and digits.
    Upper,
}

impl Body {
    fn has(self, byte: u8) -> bool {
        let alnum = byte.is_ascii_alphanumeric();
        match self {
            Body::Alnum => alnum,
            Body::Word => alnum || byte == b'_',
            Body::Url => alnum || matches!(byte, b'_' | b'-'),
            Body::Dotted => alnum || matches!(byte, b'_' | b'-' | b'.'),
            Body::Base64 => alnum || matches!(byte, b'+' | b'/' | b'='),
            Body::Path => alnum || matches!(byte, b'_' | b'/'),
            Body::Hex => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
            Body::Upper => byte.is_ascii_digit() || byte.is_ascii_uppercase(),
        }
    }
}

/// Name, prefix, what follows it, and how many of that at least and at most.
type Token = (&'static str, &'static str, Body, usize, usize);

/// No bound: all that follows belongs to it.
const ANY: usize = usize::MAX;

const TOKENS: [Token; 66] = [
    ("age-key", "AGE-SECRET-KEY-1", Body::Upper, 58, 58),
    ("anthropic-key", "sk-ant-", Body::Url, 32, ANY),
    ("atlassian-token", "ATATT3", Body::Url, 100, ANY),
    ("aws-access-key", "AKIA", Body::Upper, 16, 16),
    ("aws-access-key", "ASIA", Body::Upper, 16, 16),
    ("azure-storage-key", "AccountKey=", Body::Base64, 86, 88),
    ("azure-storage-key", "SharedAccessKey=", Body::Base64, 43, 88),
    ("buildkite-token", "bkua_", Body::Hex, 40, 40),
    ("databricks-token", "dapi", Body::Hex, 32, 32),
    ("digitalocean-token", "doo_v1_", Body::Hex, 64, 64),
    ("digitalocean-token", "dop_v1_", Body::Hex, 64, 64),
    ("digitalocean-token", "dor_v1_", Body::Hex, 64, 64),
    ("discord-webhook", "discord.com/api/webhooks/", Body::Path, 60, ANY),
    ("docker-token", "dckr_oat_", Body::Url, 27, 40),
    ("docker-token", "dckr_pat_", Body::Url, 27, 40),
    ("doppler-token", "dp.pt.", Body::Alnum, 40, 44),
    ("github-token", "gho_", Body::Alnum, 36, 255),
    ("github-token", "ghp_", Body::Alnum, 36, 255),
    ("github-token", "ghr_", Body::Alnum, 36, 255),
    ("github-token", "ghs_", Body::Dotted, 36, ANY),
    ("github-token", "ghu_", Body::Alnum, 36, 255),
    ("github-token", "github_pat_", Body::Word, 82, 255),
    ("gitlab-token", "gldt-", Body::Dotted, 20, 300),
    ("gitlab-token", "glptt-", Body::Hex, 40, 40),
    ("gitlab-token", "glpat-", Body::Dotted, 20, 300),
    ("gitlab-token", "glrt-", Body::Dotted, 20, 300),
    ("google-api-key", "AIza", Body::Url, 35, 35),
    ("google-oauth-secret", "GOCSPX-", Body::Url, 28, 28),
    ("google-oauth-token", "ya29.", Body::Url, 20, ANY),
    ("grafana-token", "glc_", Body::Base64, 32, 400),
    ("grafana-token", "glsa_", Body::Word, 41, 41),
    ("hugging-face-token", "hf_", Body::Alnum, 34, 40),
    ("linear-key", "lin_api_", Body::Alnum, 40, 40),
    ("new-relic-key", "NRAK-", Body::Upper, 27, 27),
    ("npm-token", "npm_", Body::Alnum, 36, 36),
    ("openai-key", "sk-admin-", Body::Url, 40, ANY),
    ("openai-key", "sk-proj-", Body::Url, 40, ANY),
    ("openai-key", "sk-svcacct-", Body::Url, 40, ANY),
    ("planetscale-token", "pscale_pw_", Body::Dotted, 32, 64),
    ("planetscale-token", "pscale_tkn_", Body::Dotted, 32, 64),
    ("postman-key", "PMAK-", Body::Url, 59, 59),
    ("pulumi-token", "pul-", Body::Hex, 40, 40),
    ("pypi-token", "pypi-AgENdGVzdC5weXBpLm9yZw", Body::Url, 50, ANY),
    ("pypi-token", "pypi-AgEIcHlwaS5vcmc", Body::Url, 50, ANY),
    ("rubygems-key", "rubygems_", Body::Hex, 48, 48),
    ("sendgrid-key", "SG.", Body::Dotted, 66, 66),
    ("sentry-token", "sntrys_", Body::Base64, 60, ANY),
    ("shopify-token", "shpat_", Body::Hex, 32, 32),
    ("shopify-token", "shpca_", Body::Hex, 32, 32),
    ("shopify-token", "shppa_", Body::Hex, 32, 32),
    ("shopify-token", "shpss_", Body::Hex, 32, 32),
    ("slack-token", "xapp-", Body::Url, 30, 300),
    ("slack-token", "xoxa-", Body::Url, 20, 300),
    ("slack-token", "xoxb-", Body::Url, 20, 300),
    ("slack-token", "xoxe-", Body::Url, 20, 300),
    ("slack-token", "xoxp-", Body::Url, 20, 300),
    ("slack-token", "xoxr-", Body::Url, 20, 300),
    ("slack-token", "xoxs-", Body::Url, 20, 300),
    ("slack-webhook", "hooks.slack.com/services/T", Body::Path, 30, 100),
    ("stripe-key", "rk_live_", Body::Alnum, 24, 250),
    ("stripe-key", "rk_test_", Body::Alnum, 24, 250),
    ("stripe-key", "sk_live_", Body::Alnum, 24, 250),
    ("stripe-key", "sk_test_", Body::Alnum, 24, 250),
    ("stripe-webhook-secret", "whsec_", Body::Base64, 32, 250),
    ("tailscale-key", "tskey-", Body::Url, 20, 100),
    ("vault-token", "hvs.", Body::Url, 24, ANY),
];

/// How each token begins, so that few places of a text are looked at twice.
const FIRST: [bool; 256] = {
    let mut first = [false; 256];
    let mut at = 0;
    while at < TOKENS.len() {
        first[TOKENS[at].1.as_bytes()[0] as usize] = true;
        at += 1;
    }
    first[b'e' as usize] = true;
    first
};

/// Everything that a text shows by its shape, in its order. Takes time in proportion to the text,
/// whatever is in it.
pub fn find(text: &str) -> Vec<Found> {
    let mut found = private_keys(text);
    found.extend(url_passwords(text));
    let bytes = text.as_bytes();
    let mut at = 0;
    // Up to here no JSON web token begins: one try decides for all of a run of its characters.
    let mut no_web_token = 0;
    while let Some(byte) = bytes.get(at) {
        let begins = at == 0 || !bytes.get(at - 1).is_some_and(|byte| is_word(*byte));
        if begins && FIRST[usize::from(*byte)] {
            let rest = bytes.get(at..).unwrap_or_default();
            let mut is = token(rest);
            if is.is_none() && at >= no_web_token && rest.starts_with(b"eyJ") {
                let (run, length) = web_token(rest);
                no_web_token = at + run;
                is = length.map(|length| ("json-web-token", length));
            }
            if let Some((shape, length)) = is {
                if !is_placeholder(text.get(at..at + length).unwrap_or_default()) {
                    found.push(Found { shape, class: Class::Token, range: at..at + length });
                }
                at += length;
                continue;
            }
        }
        at += 1;
    }
    found.sort_by_key(|found| found.range.start);
    found
}

/// Whether a value only stands for one: of a template, of an example, or hidden already.
pub fn is_placeholder(value: &str) -> bool {
    let bare = value.trim().trim_matches(['"', '\'']);
    let lower = bare.to_ascii_lowercase();
    let first = bare.chars().next();
    bare.is_empty()
        || bare.chars().all(|character| Some(character) == first)
        || ["$(", "${", "{{", "<%", "ENC["].iter().any(|mark| bare.contains(mark))
        || (bare.starts_with('<') && bare.ends_with('>'))
        || bare.strip_prefix('$').is_some_and(|name| name.bytes().all(is_word))
        || [
            "example",
            "changeme",
            "change-me",
            "change_me",
            "placeholder",
            "redacted",
            "xxxxxxxx",
            "dummy",
            "your-",
            "your_",
        ]
        .iter()
        .any(|mark| lower.contains(mark))
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The token that a text begins with, and its length.
fn token(rest: &[u8]) -> Option<(&'static str, usize)> {
    TOKENS.iter().find_map(|(name, prefix, body, least, most)| {
        let after = rest.strip_prefix(prefix.as_bytes())?;
        let bounded = after.iter().take(most.saturating_add(1));
        let length = bounded.take_while(|byte| body.has(**byte)).count();
        // A dot, a dash or a slash at the end is the sentence's and not the token's.
        let tail = after.get(..length)?.iter().rev();
        let length = length - tail.take_while(|byte| matches!(byte, b'.' | b'-' | b'/')).count();
        let ends = !after.get(length).is_some_and(|byte| is_word(*byte));
        ((*least..=*most).contains(&length) && ends).then_some((*name, prefix.len() + length))
    })
}

/// A JSON web token: three parts of base64url, the first two of which are JSON objects. Gives the length
/// of the first part, and that of the whole if it is one.
fn web_token(rest: &[u8]) -> (usize, Option<usize>) {
    const LEAST: usize = 10;
    let part = |from: usize| {
        let rest = rest.get(from..).unwrap_or_default();
        rest.iter().take_while(|byte| Body::Url.has(**byte)).count()
    };
    let dot = |at: usize| rest.get(at) == Some(&b'.');
    let head = part(0);
    let second = rest.get(head + 1..).unwrap_or_default();
    if !dot(head) || !second.starts_with(b"eyJ") {
        return (head, None);
    }
    let claims = part(head + 1);
    let signature = part(head + claims + 2);
    let long = [head, claims, signature].iter().all(|length| *length >= LEAST);
    let is = dot(head + 1 + claims) && long;
    (head, is.then_some(head + claims + signature + 2))
}

/// Private keys by the line that they begin with, plain or encoded in base64 as a whole.
fn private_keys(text: &str) -> Vec<Found> {
    const BEGINS: &str = "-----BEGIN ";
    const PUTTY: &str = "PuTTY-User-Key-File-";
    /// How a key that is encoded once more begins.
    const ENCODED: &str = "LS0tLS1CRUdJTi";
    /// Labels are shorter.
    const LABEL: usize = 64;
    let mut all = Vec::new();
    let mut push =
        |range| all.push(Found { shape: "private-key", class: Class::PrivateKey, range });
    let mut at = 0;
    while let Some(next) = text.get(at..).and_then(|rest| rest.find(BEGINS)) {
        let start = at + next;
        let rest = text.get(start + BEGINS.len()..).unwrap_or_default();
        let label = rest.split("-----").next().unwrap_or_default();
        let ends = label.ends_with("PRIVATE KEY") || label.ends_with("PRIVATE KEY BLOCK");
        at = start + BEGINS.len();
        if label.len() < LABEL && ends {
            at += rest.find("-----END ").unwrap_or(rest.len());
            push(start..at);
        }
    }
    if let Some(start) = text.find(PUTTY) {
        push(start..text.len());
    }
    at = 0;
    while let Some(next) = text.get(at..).and_then(|rest| rest.find(ENCODED)) {
        let start = at + next;
        let rest = text.get(start..).unwrap_or_default();
        let length = rest.bytes().take_while(|byte| Body::Base64.has(*byte)).count();
        let run = rest.get(..length).unwrap_or_default().trim_end_matches('=');
        // Padding may be missing: only whole groups count.
        let whole = run.get(..run.len() / 4 * 4).unwrap_or_default();
        let decoded = crate::decode_base64(whole).unwrap_or_default();
        if String::from_utf8_lossy(&decoded).contains("PRIVATE KEY") {
            push(start..start + length);
        }
        at = start + length;
    }
    all
}

/// `SCHEME://USER:PASSWORD@HOST`; the range is the password's.
fn url_passwords(text: &str) -> Vec<Found> {
    let mut all = Vec::new();
    for (at, separator) in text.match_indices("://") {
        let from = at + separator.len();
        let rest = text.get(from..).unwrap_or_default();
        let ends = |character: char| {
            character.is_whitespace()
                || matches!(character, '/' | '?' | '#' | '"' | '\'' | '`' | '<' | '>' | ',')
        };
        let authority = rest.split(ends).next().unwrap_or_default();
        let Some((user, _host)) = authority.rsplit_once('@') else { continue };
        let Some((name, password)) = user.split_once(':') else { continue };
        if !password.is_empty() && !is_placeholder(password) {
            let start = from + name.len() + 1;
            let range = start..start + password.len();
            all.push(Found { shape: "url-password", class: Class::UrlPassword, range });
        }
    }
    all
}
