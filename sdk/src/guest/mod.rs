//! The edge of the sandbox: an author's [`Reconciler`] behind the contract's exports; `policy.rs`
//! does the same for a policy.
//!
//! Exists for wasm32 alone. `bindings.rs` and `policy_bindings.rs` are generated, `bump.rs` is the allocator, `convert.rs`
//! turns the SDK's values into the contract's, `memcmp.rs` is what the target lacks.

pub mod bindings;
#[cfg(feature = "bump")]
mod bump;
mod convert;
mod memcmp;
mod policy;
pub mod policy_bindings;

pub use policy::ExportedPolicy;

use crate::log::Level;
use crate::lookup::{LookupError, Related};
use crate::snapshot::Parts;
use crate::{Difference, NoComparison, ObjectId, Reconciler, Snapshot, Unknown, json};
use bindings::exports::trimtab::plugin::reconciler as wit;
use bindings::trimtab::plugin as host;
use std::borrow::Cow;
use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;

/// The contract's exports for an author's type.
pub struct Exported<T>(PhantomData<T>);

impl<T: Reconciler> wit::Guest for Exported<T> {
    fn compare(snapshot: wit::Snapshot) -> wit::Comparison {
        report_panics();
        let answer = read(snapshot).map_err(NoComparison::from).and_then(|snapshot| {
            let comparison = ManuallyDrop::new(T::compare(snapshot)?);
            Ok(convert::comparison(&comparison))
        });
        answer.unwrap_or_else(convert::no_comparison)
    }

    fn decide(snapshot: wit::Snapshot, differences: Vec<wit::Difference>) -> wit::Verdict {
        report_panics();
        let differences = ManuallyDrop::new(differences);
        let answer = read(snapshot).and_then(|snapshot| {
            let differences = read_differences(&differences)?;
            Ok(T::decide(snapshot, &differences))
        });
        convert::verdict(&ManuallyDrop::new(answer.unwrap_or_else(Into::into)))
    }
}

thread_local! {
    /// What this instance read, for its second call.
    static READ: Cell<Option<Read>> = const { Cell::new(None) };
}

/// A snapshot as it came, and as it was read.
#[derive(Clone, Copy)]
struct Read {
    bytes: &'static wit::Snapshot,
    snapshot: &'static Snapshot<'static>,
}

/// Reads a snapshot, unless this instance has read the same before. The instance ends with the pass:
/// taking trees apart would be work for nothing, so they stay.
fn read(snapshot: wit::Snapshot) -> Result<&'static Snapshot<'static>, Unknown> {
    if let Some(read) = READ.get().filter(|read| is_same(read.bytes, &snapshot)) {
        return Ok(read.snapshot);
    }
    let bytes: &wit::Snapshot = Box::leak(Box::new(snapshot));
    let snapshot: &Snapshot<'_> = Box::leak(Box::new(Snapshot::read(parts_of(bytes))?));
    READ.set(Some(Read { bytes, snapshot }));
    Ok(snapshot)
}

/// Whether two snapshots are one: the objects by their bytes.
fn is_same(a: &wit::Snapshot, b: &wit::Snapshot) -> bool {
    a.now_ms == b.now_ms
        && a.retries == b.retries
        && a.facts.len() == b.facts.len()
        && a.desired == b.desired
        && a.live == b.live
}

fn parts_of(snapshot: &wit::Snapshot) -> Parts<'_> {
    let id = &snapshot.id;
    Parts {
        id: ObjectId {
            group: &id.group,
            version: &id.version,
            kind: &id.kind,
            namespace: &id.namespace,
            name: &id.name,
        },
        desired: snapshot.desired.as_deref(),
        live: snapshot.live.as_deref(),
        facts: &snapshot.facts,
        now_ms: snapshot.now_ms,
        field_manager: &snapshot.field_manager,
        retries: snapshot.retries,
    }
}

fn read_differences(
    differences: &[wit::Difference],
) -> Result<ManuallyDrop<Vec<Difference<'_>>>, Unknown> {
    let path = |text: &str| {
        crate::Path::parse(text)
            .map_err(|error| Unknown::new(format!("the host gave the path {text}: {error}")))
    };
    let mut all = ManuallyDrop::new(Vec::with_capacity(differences.len()));
    for difference in differences {
        all.push(Difference {
            path: path(&difference.path)?,
            immutable: difference.immutable.as_deref().map(path).transpose()?,
            kind: convert::kind_from(difference.kind),
            desired: read_value(difference.desired.as_deref())?,
            live: read_value(difference.live.as_deref())?,
        });
    }
    Ok(all)
}

fn read_value(bytes: Option<&[u8]>) -> Result<Option<Cow<'_, crate::Value<'_>>>, Unknown> {
    bytes
        .map(|bytes| {
            json::parse(bytes).map(Cow::Owned).map_err(|error| {
                Unknown::new(format!("the host gave a value that cannot be read: {error}"))
            })
        })
        .transpose()
}

/// Sends a panic's text to the host's log, where a trap's message takes it from. The instance may be
/// fresh: set for each call.
fn report_panics() {
    std::panic::set_hook(Box::new(|panic| log(Level::Error, &panic.to_string())));
}

/// The import `log`.
pub(crate) fn log(level: Level, line: &str) {
    let level = match level {
        Level::Debug => host::log::Level::Debug,
        Level::Info => host::log::Level::Info,
        Level::Warn => host::log::Level::Warn,
        Level::Error => host::log::Level::Error,
    };
    host::log::log(level, line);
}

/// The import `lookup`.
pub(crate) fn lookup(
    group: &str,
    kind: &str,
    namespace: &str,
    name: &str,
) -> Result<Option<Related>, LookupError> {
    let query = host::lookup::Query {
        group: group.into(),
        kind: kind.into(),
        namespace: namespace.into(),
        name: name.into(),
    };
    host::lookup::get(&query).map(|found| found.map(Related::from)).map_err(no_answer)
}

/// The import `lookup`, for a whole namespace.
pub(crate) fn find(group: &str, kind: &str, namespace: &str) -> Result<Vec<Related>, LookupError> {
    let found = host::lookup::find(group, kind, namespace).map_err(no_answer)?;
    Ok(found.into_iter().map(Related::from).collect())
}

fn no_answer(error: host::lookup::LookupError) -> LookupError {
    match error {
        host::lookup::LookupError::Undeclared => LookupError::Undeclared,
        host::lookup::LookupError::Denied => LookupError::Denied,
        host::lookup::LookupError::Unavailable(why) => LookupError::Unavailable(why),
        host::lookup::LookupError::Exhausted => LookupError::Exhausted,
    }
}
