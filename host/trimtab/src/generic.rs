//! The generic comparison, native: what `diff` judges by where no plugin is named. The same code
//! as the generic plugin's, without a sandbox, since it is our own.

use trimtab_compare::{Facts, Kind, Options};
use trimtab_core::decision::{Action, Comparison, Decision, Difference, DifferenceKind, Verdict};
use trimtab_core::ownership::FIELD_MANAGER;
use trimtab_core::ports::{Judge, PluginFault};
use trimtab_core::snapshot::Snapshot;
use trimtab_json::{Path, Value};

/// Judges any kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Generic;

impl Judge for Generic {
    async fn compare(&self, snapshot: &Snapshot) -> Result<Comparison, PluginFault> {
        let live = snapshot.live_object().map(|live| &*live.json);
        Ok(compare(&snapshot.desired.json, live, &snapshot.facts))
    }

    /// What `diff` asks is only *whether*; the answer stands for "this would be corrected".
    async fn decide(&self, _: &Snapshot, _: &[Difference]) -> Result<Verdict, PluginFault> {
        Ok(Verdict::Decided(Decision {
            actions: vec![Action::ApplyDesired { without: vec![] }],
            ..Decision::default()
        }))
    }
}

/// Compares two objects given as JSON text.
pub(crate) fn compare(desired: &[u8], live: Option<&[u8]>, facts: &[u8]) -> Comparison {
    let read = |json| trimtab_json::parse(json).map_err(|error| error.to_string());
    let trees = read(desired).and_then(|desired| Ok((desired, live.map(read).transpose()?)));
    let (desired, live) = match trees {
        Ok(trees) => trees,
        Err(error) => return Comparison::Unknown(error),
    };
    let options = Options { managers: &[FIELD_MANAGER], ..Options::default() };
    match trimtab_compare::compare(&desired, live.as_ref(), Facts::new(facts), &options) {
        Ok(found) if found.is_empty() => Comparison::InSync,
        Ok(found) => Comparison::Different(found.iter().map(convert).collect()),
        Err(error) => Comparison::Invalid(format!("{}: {error}", error.code())),
    }
}

fn convert(difference: &trimtab_compare::Difference<'_>) -> Difference {
    Difference {
        path: difference.path.to_string(),
        kind: match difference.kind {
            Kind::Changed => DifferenceKind::Changed,
            Kind::Missing => DifferenceKind::Missing,
            Kind::Stray => DifferenceKind::Stray,
            Kind::Released => DifferenceKind::Released,
            Kind::Pruned => DifferenceKind::Pruned,
        },
        desired: difference.desired.as_deref().map(text),
        live: difference.live.map(text),
        immutable: difference.immutable.as_ref().map(Path::to_string),
        managers: Vec::new(),
    }
}

fn text(value: &Value<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    trimtab_json::write(value, &mut bytes);
    bytes
}
