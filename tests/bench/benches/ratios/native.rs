//! The generic plugin's code outside of the sandbox, through the SDK as an author's test would run
//! it, doing what its exports do: read both objects, judge, make the answer's texts.

use std::borrow::Cow;
use std::cell::RefCell;
use std::hint::black_box;
use trimtab_plugin_generic::Generic;
use trimtab_sdk::testing::Case;
use trimtab_sdk::{
    Comparison, Difference, DifferenceKind, NoComparison, Path, Reconciler, Snapshot, Value,
    Verdict, json,
};

type Body = Box<dyn FnMut(&Snapshot<'_>)>;

thread_local! {
    static BODY: RefCell<Option<Body>> = const { RefCell::new(None) };
}

/// Gives a plugin's view of these texts to `body`, once.
pub(crate) fn with_snapshot(
    desired: &str,
    live: &str,
    facts: &[u8],
    body: impl FnMut(&Snapshot<'_>) + 'static,
) {
    BODY.set(Some(Box::new(body)));
    Case::new().desired(desired).live(live).facts(facts).run::<Lender>();
    BODY.set(None);
}

/// A reconciler that judges nothing: the SDK makes snapshots for reconcilers alone.
struct Lender;

impl Reconciler for Lender {
    fn compare<'s>(snapshot: &'s Snapshot<'_>) -> Result<Comparison<'s>, NoComparison> {
        BODY.with_borrow_mut(|body| body.iter_mut().for_each(|body| body(snapshot)));
        Ok(Comparison::in_sync())
    }

    fn decide(_: &Snapshot<'_>, _: &[Difference<'_>]) -> Verdict {
        Verdict::unknown("not asked")
    }
}

/// A difference as it crosses the edge.
pub(crate) struct Wire {
    path: String,
    kind: DifferenceKind,
    desired: Option<Vec<u8>>,
    live: Option<Vec<u8>>,
    immutable: Option<String>,
}

/// What the export `compare` does: reading is done here once more, as the snapshot is read already.
pub(crate) fn compare(snapshot: &Snapshot<'_>, desired: &[u8], live: &[u8]) -> Vec<Wire> {
    let _read = read(desired, live);
    judge(snapshot)
}

/// What the export `decide` does, reading included: it is another call.
pub(crate) fn decide(snapshot: &Snapshot<'_>, desired: &[u8], live: &[u8], wire: &[Wire]) {
    let _read = read(desired, live);
    verdict(snapshot, wire);
}

/// Both at once, as a controller would that has no edge between them: each object is read once.
pub(crate) fn whole(snapshot: &Snapshot<'_>, desired: &[u8], live: &[u8]) {
    let _read = read(desired, live);
    let wire = judge(snapshot);
    verdict(snapshot, &wire);
}

fn read<'a>(desired: &'a [u8], live: &'a [u8]) -> impl Sized + use<'a> {
    black_box((json::parse(desired), json::parse(live)))
}

fn judge(snapshot: &Snapshot<'_>) -> Vec<Wire> {
    let found = Generic::compare(snapshot).unwrap_or_default();
    let convert = |difference: &Difference<'_>| Wire {
        path: difference.path.to_string(),
        kind: difference.kind,
        desired: difference.desired.as_deref().map(text),
        live: difference.live.as_deref().map(text),
        immutable: difference.immutable.as_ref().map(ToString::to_string),
    };
    black_box(found.differences.iter().map(convert).collect())
}

fn verdict(snapshot: &Snapshot<'_>, wire: &[Wire]) {
    let differences: Vec<Difference<'_>> = wire.iter().map(lift).collect();
    black_box(Generic::decide(snapshot, &differences));
}

fn lift(wire: &Wire) -> Difference<'_> {
    let path = |text: &str| Path::parse(text).unwrap_or_default();
    Difference {
        path: path(&wire.path),
        kind: wire.kind,
        desired: wire.desired.as_deref().and_then(value),
        live: wire.live.as_deref().and_then(value),
        immutable: wire.immutable.as_deref().map(path),
    }
}

fn value(bytes: &[u8]) -> Option<Cow<'_, Value<'_>>> {
    json::parse(bytes).ok().map(Cow::Owned)
}

fn text(value: &Value<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    json::write(value, &mut out);
    out
}
