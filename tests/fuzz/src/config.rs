//! A configuration file.

use crate::MESSAGE_BYTES;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use trimtab_settings::config::{Place, parse};

/// Any text: what is read has names that can be told apart, waits for what is there, and shows no
/// credentials; what is refused says where, in one line.
pub fn config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let read = parse(text, Path::new("c.yaml"));
    assert_eq!(read, parse(text, Path::new("c.yaml")), "another answer");
    let config = match read {
        Ok(config) => config,
        Err(problem) => {
            assert!(problem.starts_with("c.yaml"), "{problem}");
            assert!(!problem.chars().any(char::is_control), "a control character in {problem:?}");
            assert!(problem.len() <= text.len() * 8 + MESSAGE_BYTES, "{} bytes", problem.len());
            return;
        }
    };
    let names: BTreeSet<&str> = config.sources.iter().map(|source| &*source.name).collect();
    assert!(names.len() == config.sources.len() && !names.is_empty());
    for source in &config.sources {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!((1..=40).contains(&source.name.len()) && source.name.chars().all(plain));
        assert!(source.depends_on.iter().all(|it| names.contains(&**it) && *it != source.name));
        let day = Duration::from_secs(24 * 3600);
        assert!((Duration::from_secs(1)..=day).contains(&source.interval));
        if let Some(only) = &source.terms.confined_to {
            assert_eq!(**only, *source.namespace, "what names no namespace goes where it may");
        }
        if let Some(account) = &source.terms.acts_as {
            assert!(!account.namespace().is_empty() && !account.name().is_empty());
        }
        if let Place::Git(_) = source.place {
            let location = source.location();
            let web = location.strip_prefix("https://").unwrap_or_default();
            let host = web.split('/').next().unwrap_or_default();
            assert!(!host.contains('@'), "credentials in {location}");
        }
    }
}
