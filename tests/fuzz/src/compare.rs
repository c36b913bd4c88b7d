//! Comparison, with any objects and any facts.

use crate::draw::Draw;
use trimtab_compare::{Facts, Options, compare as differences, facts, managed_fields};
use trimtab_json::{Path, Value, parse};

/// Desired, live and facts: one line each. Nothing panics, an object never differs from itself,
/// what is told has a path that reads back, and the same question has the same answer.
pub fn compare(data: &[u8]) {
    let mut draw = Draw::new(data);
    let (desired, live) = (draw.line().unwrap_or_default(), draw.line().unwrap_or_default());
    let mut facts = draw.rest().to_vec();
    if let Some(first) = facts.first_mut()
        && *first == b'!'
    {
        // So that a text can be a buffer of our version.
        *first = facts::VERSION;
    }
    let (Ok(desired), Ok(live)) = (parse(desired), parse(live)) else { return };
    for facts in [Facts::NONE, Facts::new(&facts)] {
        for object in [&desired, &live] {
            reflexive(object, facts);
        }
        check(&desired, &live, facts);
    }
}

fn options<'o>() -> Options<'o> {
    Options { managers: &["trimtab"], predecessors: &["helm"], ..Options::default() }
}

/// An object says what it says. (Write-only members aside: `stringData` reads as `data`.)
pub(crate) fn reflexive(object: &Value<'_>, facts: Facts<'_>) {
    if object.get("stringData").is_some() {
        return;
    }
    if let Ok(found) = differences(object, Some(object), facts, &options()) {
        assert!(found.is_empty(), "differs from itself: {found:?}");
    }
}

fn check(desired: &Value<'_>, live: &Value<'_>, facts: Facts<'_>) {
    for live in [Some(live), None] {
        let found = differences(desired, live, facts, &options());
        assert_eq!(found, differences(desired, live, facts, &options()), "another answer");
        for difference in found.into_iter().flatten() {
            let path = &difference.path;
            assert_eq!(Path::parse(&path.to_string()).as_ref(), Ok(path));
            if let Some(immutable) = &difference.immutable {
                assert!(path.starts_with(immutable), "{immutable} is not above {path}");
            }
        }
    }
    let paths = [Path::root(), Path::fields(&["spec"]), Path::fields(&["metadata", "labels"])];
    let _ = managed_fields::attribute(live, &paths);
}
