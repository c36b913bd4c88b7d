//! A plugin that misbehaves as the annotation `hostile.example/behaviour` of the object says: one
//! file of `behaviours/` for each way.
//!
//! These are the hostile plugins that can be written with the SDK. Those that it has no words for
//! are made byte by byte beside the tests. [`BEHAVIOURS`] is held against the table of all of them
//! when the tests are compiled: a behaviour without a test does not build.

mod behaviours;
mod content;

pub use behaviours::{BEHAVIOURS, Behaviour};

use behaviours::Act;
use trimtab_sdk::{Comparison, Difference, NoComparison, Reconciler, Snapshot, Verdict};

/// The annotation that chooses.
const BEHAVIOUR: &str = "hostile.example/behaviour";
/// The annotation that chooses among the shapes of one behaviour.
const SHAPE: &str = "hostile.example/shape";

/// Does as it is told.
pub struct Hostile;

impl Reconciler for Hostile {
    fn compare<'s>(snapshot: &'s Snapshot<'_>) -> Result<Comparison<'s>, NoComparison> {
        match chosen(snapshot) {
            Some(Act::Compare(act)) => act(snapshot),
            _ => trimtab_sdk::compare(snapshot),
        }
    }

    fn decide(snapshot: &Snapshot<'_>, differences: &[Difference<'_>]) -> Verdict {
        match chosen(snapshot) {
            Some(Act::Decide(act)) => act(snapshot),
            _ => trimtab_sdk::decide(snapshot, differences),
        }
    }
}

fn chosen(snapshot: &Snapshot<'_>) -> Option<Act> {
    let name = annotation(snapshot, BEHAVIOUR);
    BEHAVIOURS.iter().find(|it| it.name == name).map(|it| it.act)
}

/// Which shape of its behaviour an object asks for; empty without one.
fn shape<'s>(snapshot: &'s Snapshot<'_>) -> &'s str {
    annotation(snapshot, SHAPE)
}

fn annotation<'s>(snapshot: &'s Snapshot<'_>, name: &str) -> &'s str {
    let desired = snapshot.desired();
    desired.and_then(|it| it.str_at(&["metadata", "annotations", name])).unwrap_or_default()
}

trimtab_sdk::export!(Hostile);

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_sdk::testing::Case;

    #[test]
    fn without_a_behaviour_it_is_an_honest_plugin() {
        let live =
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"2"}}"#;
        Case::new().desired(live.replace('2', "1")).live(live).check::<Hostile>(
            r#"
            changed /data/a "1" <- "2"
            apply-desired
            "#,
        );
    }
}
