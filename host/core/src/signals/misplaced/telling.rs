//! What of a Secret's value is telling: found elsewhere, it is a leak and no coincidence.
//!
//! Takes the key and the value; gives the parts that are worth looking for. A false alarm costs more
//! than a value that nobody would guess to be one: people stop reading.

use crate::signals::shapes;

/// Shortest value that is looked for.
pub(super) const SHORTEST: usize = 8;
/// Longest value that is taken as one password, in bytes.
const ONE_AT_MOST: usize = 512;
/// Parts of one value.
const PARTS_AT_MOST: usize = 64;

/// Keys of which the value is no secret, by their last word.
const PLAIN: [&str; 24] = [
    "user",
    "username",
    "login",
    "host",
    "hostname",
    "port",
    "database",
    "dbname",
    "url",
    "uri",
    "endpoint",
    "region",
    "bucket",
    "namespace",
    "name",
    "email",
    "type",
    "version",
    "address",
    "domain",
    "realm",
    "issuer",
    "ca",
    "crt",
];
/// Words in a key that say that its value is one.
const SECRET: [&str; 8] = ["pass", "pwd", "secret", "token", "key", "credential", "auth", "salt"];

/// The parts of this value that are looked for.
pub(super) fn telling_parts(key: &str, value: &[u8]) -> Vec<Vec<u8>> {
    let Ok(text) = std::str::from_utf8(value) else {
        // Random bytes: in other objects they can only stand encoded.
        return if value.len() >= 16 && distinct(value) >= 8 {
            vec![value.to_vec()]
        } else {
            vec![]
        };
    };
    let text = text.trim();
    if text.contains("-----BEGIN ") {
        return keys(text);
    }
    if let Some(password) = password_in_url(text) {
        let named = is_word("password", password);
        return if named { vec![password.as_bytes().to_vec()] } else { Vec::new() };
    }
    let structured =
        text.contains('\n') || text.starts_with(['{', '[']) || text.len() > ONE_AT_MOST;
    if structured {
        return tokens(text);
    }
    if is_plain(key) || !is_word(key, text) { Vec::new() } else { vec![text.as_bytes().to_vec()] }
}

/// Whether 16 bytes of a value can be told from what stands in any text.
pub(super) fn telling_window(window: &[u8]) -> bool {
    let name_like = window
        .iter()
        .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || b"-._/:".contains(it));
    distinct(window) >= 6 && (!name_like || turns(window) >= 2)
}

/// The bodies of private keys; of certificates and public keys nothing.
fn keys(text: &str) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut within = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("-----BEGIN ") {
            within = line.contains("PRIVATE KEY");
        } else if line.starts_with("-----END ") {
            within = false;
        } else if within && line.len() >= 16 {
            all.push(line.as_bytes().to_vec());
        }
    }
    all.truncate(PARTS_AT_MOST);
    all
}

/// What looks random in a configuration file, and what stands after a word for a password.
fn tokens(text: &str) -> Vec<Vec<u8>> {
    let ends = |it: char| it.is_whitespace() || "\"'`=:,;<>(){}[]|\\".contains(it);
    let mut all: Vec<Vec<u8>> = Vec::new();
    let mut before = "";
    for token in text.split(ends).filter(|token| !token.is_empty()) {
        let named = says_secret(before) && is_word(before, token);
        let random = token.len() >= 16 && turns(token.as_bytes()) * 3 >= token.len();
        if named || random || shapes::shape_in(token).is_some() {
            all.push(token.as_bytes().to_vec());
        } else if let Some((_, rest)) = token.rsplit_once("//")
            && let Some(password) = password_in_url(&format!("x://{rest}"))
            && is_word("password", password)
        {
            all.push(password.as_bytes().to_vec());
        }
        before = token;
    }
    all.sort();
    all.dedup();
    all.truncate(PARTS_AT_MOST);
    all
}

/// `p` of `scheme://user:p@host`.
fn password_in_url(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("://")?;
    let (user, _) = rest.split('/').next()?.rsplit_once('@')?;
    user.split_once(':').map(|(_, password)| password)
}

fn is_plain(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let last = key.rsplit(['.', '-', '_']).next().unwrap_or(&key);
    PLAIN.contains(&last) && !says_secret(&key)
}

fn says_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    SECRET.iter().any(|word| key.contains(word))
}

/// Whether a value of one piece, under this key, is told from words that stand anywhere.
fn is_word(key: &str, value: &str) -> bool {
    let bytes = value.as_bytes();
    let (classes, turns, distinct) = (classes(bytes), turns(bytes), distinct(bytes));
    if bytes.len() < SHORTEST || distinct < 6 {
        return false;
    }
    if bytes.len() < 16 {
        return classes >= 3 || turns >= 4 || says_secret(key) && classes >= 2 && turns >= 1;
    }
    let label = bytes
        .iter()
        .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || b"-._/:".contains(it));
    // A name of something is no password, whatever key it stands under.
    !label || turns >= 3
}

fn distinct(bytes: &[u8]) -> usize {
    let mut seen = [false; 256];
    bytes.iter().for_each(|byte| seen[usize::from(*byte)] = true);
    seen.iter().filter(|seen| **seen).count()
}

fn class(byte: u8) -> Option<u8> {
    match byte {
        b'a'..=b'z' => Some(0),
        b'A'..=b'Z' => Some(1),
        b'0'..=b'9' => Some(2),
        // What names are put together with.
        b'-' | b'.' | b'_' | b'/' | b':' | b' ' => None,
        _ => Some(3),
    }
}

fn classes(bytes: &[u8]) -> usize {
    let mut seen = [false; 4];
    bytes.iter().filter_map(|byte| class(*byte)).for_each(|class| seen[usize::from(class)] = true);
    seen.iter().filter(|seen| **seen).count()
}

/// How often one class of characters follows another at once.
fn turns(bytes: &[u8]) -> usize {
    let turn = |pair: &&[u8]| {
        let (first, second) = (class(pair[0]), class(pair[1]));
        first.is_some() && second.is_some() && first != second
    };
    bytes.windows(2).filter(turn).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(key: &str, value: &str) -> Vec<String> {
        let parts = telling_parts(key, value.as_bytes());
        parts.into_iter().map(|part| String::from_utf8(part).unwrap()).collect()
    }

    #[test]
    fn what_is_named_or_spelled_like_a_password_is_looked_for() {
        for (key, value) in [
            ("password", "hunter2!"),
            ("password", "correct horse battery staple"),
            ("x", "canary-plain-5b1f27"),
            ("token", "x9k2m4.a1b2c3d4e5"),
        ] {
            assert_eq!(parts(key, value), [value], "{key}");
        }
        assert_eq!(parts("dsn", "postgres://app:s3cr3tPass@db.shop:5432/x"), ["s3cr3tPass"]);
        let key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----\n";
        assert_eq!(parts("tls.key", key), ["MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"]);
    }

    #[test]
    fn names_addresses_certificates_and_plain_configuration_are_not() {
        for (key, value) in [
            ("username", "application-user-1"),
            ("host", "postgres.default.svc.cluster.local"),
            ("password", "postgres"),
            ("value", "my-application-settings"),
            ("region", "eu-central-1"),
            ("url", "http://prometheus-k8s.monitoring.svc:9090/api/v1"),
            (
                "ca.crt",
                "-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END CERTIFICATE-----\n",
            ),
            ("flag", "true"),
        ] {
            assert!(parts(key, value).is_empty(), "{key}: {:?}", parts(key, value));
        }
        let file = "global:\n  resolve_timeout: 5m\nroute:\n  group_by: [namespace]\n  receiver: Default-Receiver-1\n";
        assert!(
            parts("alertmanager.yaml", file).is_empty(),
            "{:?}",
            parts("alertmanager.yaml", file)
        );
    }

    #[test]
    fn of_a_configuration_file_the_passwords_in_it_are_looked_for() {
        let file = "server: db.example.com\npassword: tr0ub4dor&3x\nid: f3A9c1E7b5D2a8C4\n";
        assert_eq!(parts("config.yaml", file), ["f3A9c1E7b5D2a8C4", "tr0ub4dor&3x"]);
        let json = r#"{"auths":{"registry.example.com":{"auth":"dXNlcjpwYXNzMTIz"}}}"#;
        assert_eq!(parts(".dockerconfigjson", json), ["dXNlcjpwYXNzMTIz"]);
    }
}
