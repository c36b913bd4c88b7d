//! A guess: a value under a name that speaks of a secret, which looks as if nobody could guess it.

use trimtab_sdk::comparison::shapes::is_placeholder;

/// What a secret's name has in it, without case, dashes, dots and underscores.
const SECRET_NAMES: [&str; 15] = [
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "privatekey",
    "credential",
    "authkey",
    "connectionstring",
    "signingkey",
    "encryptionkey",
    "salt",
];

/// What a name that only leads to a secret, or measures one, ends with.
const NOT_SECRETS: [&str; 30] = [
    "name",
    "names",
    "namespace",
    "ref",
    "file",
    "path",
    "dir",
    "url",
    "uri",
    "endpoint",
    "key",
    "keys",
    "id",
    "type",
    "policy",
    "length",
    "size",
    "count",
    "ttl",
    "seconds",
    "expiry",
    "expiration",
    "enabled",
    "required",
    "version",
    "audience",
    "issuer",
    "header",
    "prefix",
    "mount",
];

/// Names that end like one of [`NOT_SECRETS`] and are secrets.
const KEYS: [&str; 7] =
    ["apikey", "accesskey", "privatekey", "secretkey", "authkey", "signingkey", "encryptionkey"];

/// Whether a name says that its value is a secret.
pub(crate) fn speaks_of_a_secret(name: &str) -> bool {
    let bare: String = name
        .chars()
        .filter(|character| !matches!(character, '-' | '_' | '.'))
        .map(|character| character.to_ascii_lowercase())
        .collect();
    // A label or annotation is called by what follows its domain.
    let bare = bare.rsplit('/').next().unwrap_or_default();
    let ends = |list: &[&str]| list.iter().any(|end| bare.ends_with(end));
    SECRET_NAMES.iter().any(|part| bare.contains(part)) && (!ends(&NOT_SECRETS) || ends(&KEYS))
}

/// Whether a value looks as if a machine, or a careful person, had made it so that nobody can guess it.
pub(crate) fn looks_random(value: &str) -> bool {
    let value = value.trim().trim_matches(['"', '\'']);
    let plain = value.contains(char::is_whitespace)
        || value.contains("://")
        || value.starts_with(['/', '.']);
    if value.len() < 8 || value.len() > 4096 || plain || is_placeholder(value) {
        return false;
    }
    // Words that are joined say little together: the longest part is judged.
    let is_joint = |character: char| matches!(character, '-' | '_' | '.' | ':' | '/' | ',');
    let longest = value.split(is_joint).max_by_key(|part| part.len()).unwrap_or_default();
    let digits = longest.bytes().any(|byte| byte.is_ascii_digit());
    let mixed = classes(longest) >= 3 && bits(longest) >= 2.5 && longest.len() >= 8;
    let long = longest.len() >= 16 && digits && bits(longest) >= 3.0;
    mixed || long
}

/// How many of lower case, upper case, digits and others are in it.
fn classes(text: &str) -> usize {
    let has = |test: fn(u8) -> bool| usize::from(text.bytes().any(test));
    has(|byte| byte.is_ascii_lowercase())
        + has(|byte| byte.is_ascii_uppercase())
        + has(|byte| byte.is_ascii_digit())
        + has(|byte| !byte.is_ascii_alphanumeric())
}

/// Shannon's entropy of its bytes, in bits for each.
fn bits(text: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in text.bytes() {
        counts[usize::from(byte)] += 1;
    }
    let length = text.len() as f64;
    let share = |count: &u32| {
        let share = f64::from(*count) / length;
        -share * share.log2()
    };
    counts.iter().filter(|count| **count > 0).map(share).sum()
}

/// Names with values in a text, as in properties, YAML, JSON, shell and connection strings: one in each
/// line, or up to a `;`.
pub(crate) fn assignments(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split(['\n', ';']).filter_map(|line| {
        let (name, value) = line.split_once(['=', ':'])?;
        let name = name.trim().trim_start_matches("export ").trim_matches(['"', '\'', '-', ' ']);
        let value = value.trim().trim_end_matches([',', ';']).trim_matches(['"', '\'']);
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        (!name.is_empty() && name.len() < 100 && name.bytes().all(is_name)).then_some((name, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_speaks_of_a_secret_unless_it_only_leads_to_one() {
        for name in [
            "DB_PASSWORD",
            "password",
            "api-key",
            "AWS_SECRET_ACCESS_KEY",
            "clientSecret",
            "authToken",
            "spring.datasource.password",
            "example.com/token",
            "PGPASSWORD",
        ] {
            assert!(speaks_of_a_secret(name), "{name}");
        }
        for name in [
            "secretName",
            "passwordSecretRef",
            "TOKEN_FILE",
            "tokenPath",
            "secret-key-ref",
            "DB_USER",
            "color",
            "tokenExpirationSeconds",
            "AWS_ACCESS_KEY_ID",
            "key",
            "secretNamespace",
            "token_url",
        ] {
            assert!(!speaks_of_a_secret(name), "{name}");
        }
    }

    #[test]
    fn what_a_machine_made_looks_random_and_words_do_not() {
        for value in
            ["9f86d081884c7d659a2feaa0c55ad015", "Tr0ub4dor&3", "kX9pQz7LmN2v", "'kX9pQz7LmN2v'"]
        {
            assert!(looks_random(value), "{value}");
        }
        for value in [
            "",
            "password",
            "changeme-1234567890abcdef",
            "$(DB_PASSWORD)",
            "${TOKEN}",
            "{{ .Values.token }}",
            "my-app-database-credentials-1",
            "/var/run/secrets/token",
            "https://example.com/a1b2c3d4e5f6a7b8",
            "aaaaaaaaaaaaaaaaaaaaaaaa",
            "production",
            "some words of 16 letters A1",
            "<a-token-goes-here-A1b2>",
        ] {
            assert!(!looks_random(value), "{value}");
        }
    }

    #[test]
    fn assignments_are_found_in_what_files_look_like() {
        let text = "# comment\nexport A=1\nb.c: \"2\",\n  \"d\": 'e'\n- f: g\nno assignment\nhttp://x: y\nServer=s;Pwd=p";
        let found: Vec<_> = assignments(text).collect();
        assert_eq!(
            found,
            [
                ("A", "1"),
                ("b.c", "2"),
                ("d", "e"),
                ("f", "g"),
                ("http", "//x: y"),
                ("Server", "s"),
                ("Pwd", "p")
            ]
        );
    }
}
