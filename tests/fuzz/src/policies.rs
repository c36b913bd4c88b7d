//! Our policies over any object and any configuration, and what they read texts with.

use crate::MESSAGE_BYTES;
use crate::draw::Draw;
use trimtab_plugin_policy_images::{Images, Reference};
use trimtab_plugin_policy_pod_security::PodSecurity;
use trimtab_plugin_policy_protected::Protected;
use trimtab_plugin_policy_required::Required;
use trimtab_plugin_policy_secrets::{Secrets, find};
use trimtab_sdk::rules::glob;
use trimtab_sdk::testing::ReviewCase;
use trimtab_sdk::{Policy, ReviewVerdict};

/// Longer patterns are not matched a second time, by trying everything.
const SHORT: usize = 12;

/// One line of configuration, then an object, both any text: each policy answers, twice the same, within
/// bounds, and what is denied or warned of has a reason.
pub fn policies(data: &[u8]) {
    let mut draw = Draw::new(data);
    let configuration = draw.text();
    let object = String::from_utf8_lossy(draw.rest()).into_owned();
    let case = ReviewCase::new().desired(&*object).configuration(&*configuration);
    for answer in [
        review::<PodSecurity>(&case),
        review::<Images>(&case),
        review::<Required>(&case),
        review::<Protected>(&case),
        review::<Secrets>(&case),
    ] {
        let reasons = match answer {
            ReviewVerdict::Allow => continue,
            ReviewVerdict::Warn(reasons) | ReviewVerdict::Deny(reasons) => reasons,
        };
        assert!(!reasons.is_empty());
        for reason in reasons {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(!reason.control.is_empty() && reason.control.chars().all(plain));
            assert!(reason.message.len() <= data.len() * 8 + MESSAGE_BYTES);
        }
    }
    texts(&configuration, &object);
}

fn review<T: Policy>(case: &ReviewCase) -> ReviewVerdict {
    let answer = case.run::<T>();
    assert_eq!(case.run::<T>(), answer, "another answer");
    answer
}

fn texts(one: &str, other: &str) {
    // A registry that only its upper case tells apart is read in lower case, and then is none.
    let told_apart = |read: &Reference<'_>| read.registry.contains(['.', ':']);
    if let Some(read) = Reference::read(one).ok().filter(told_apart) {
        let Reference { registry, repository, tag, digest } = &read;
        let tag = tag.map(|tag| format!(":{tag}")).unwrap_or_default();
        let digest = digest.map(|digest| format!("@{digest}")).unwrap_or_default();
        let whole = format!("{registry}/{repository}{tag}{digest}");
        assert_eq!(Reference::read(&whole).as_ref(), Ok(&read), "{whole}");
    }
    let found = find(other);
    assert!(found.iter().all(|found| other.get(found.range.clone()).is_some()));
    if one.len() <= SHORT && other.len() <= SHORT {
        assert_eq!(glob(one, other), tried(one, other), "{one:?} {other:?}");
    }
}

/// A pattern by trying everything.
fn tried(pattern: &str, text: &str) -> bool {
    let mut rest = pattern.chars();
    let mut characters = text.chars();
    match rest.next() {
        None => text.is_empty(),
        Some('*') => {
            let rest = rest.as_str();
            tried(rest, text)
                || characters.next().is_some_and(|_| tried(pattern, characters.as_str()))
        }
        Some(wanted) => characters.next().is_some_and(|found| {
            (wanted == '?' || wanted == found) && tried(rest.as_str(), characters.as_str())
        }),
    }
}
