//! What a plugin is written with.
//!
//! A plugin is a pure function of one [`Snapshot`]: it says where live differs from desired, and
//! what should be done about it. Implement [`Reconciler`] for a type of your own and hand the
//! type to [`export!`]:
//!
//! ```
//! use trimtab_sdk::{Difference, Finding, Reconciler, Snapshot, Verdict};
//!
//! struct Plain;
//!
//! impl Reconciler for Plain {
//!     fn decide(snapshot: &Snapshot<'_>, differences: &[Difference<'_>]) -> Verdict {
//!         let note = Finding::info("seen", "what is special about the type goes here");
//!         trimtab_sdk::decide(snapshot, differences).finding(note)
//!     }
//! }
//!
//! trimtab_sdk::export!(Plain);
//! # fn main() {}
//! ```
//!
//! Both functions have a default that is right for most types: [`compare`] and [`decide`]. A plugin
//! writes what is special about its type, and calls them for the rest.
//!
//! A [`Policy`] is the other thing that a plugin can be: it is shown a [`Review`] and says whether
//! that may be. It is handed to [`export_policy!`]; one crate may do both.
//!
//! There is no clock but [`Snapshot::now_ms`], no randomness, no file and no network. Reads of
//! related objects go through [`lookup::get`], lines for the host's log through [`log`].
//!
//! The same crate compiles natively: [`testing`] runs a plugin on JSON text, with no sandbox.
//! Start reading at `reconciler.rs`; what touches the sandbox is in `guest/`.

mod decision;
mod difference;
mod generic;
mod policy;
mod reason;
mod reconciler;
mod review;
mod snapshot;

pub mod log;
pub mod lookup;
pub mod pods;
pub mod rules;
pub mod usual;

#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub mod guest;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;

pub use decision::{Action, Condition, ConditionStatus, Decision, Finding, Severity, Verdict};
pub use difference::{Comparison, Difference, DifferenceKind, NoComparison, Unknown};
pub use generic::compare;
pub use policy::{Policy, ReviewVerdict};
pub use reason::Reason;
pub use reconciler::Reconciler;
pub use review::{ActionKind, Planned, Point, Provenance, Review};
pub use snapshot::{ObjectId, Snapshot};
pub use usual::{decide, decide_without};

pub use trimtab_compare::{self as comparison, Facts, managed_fields};
pub use trimtab_json::{self as json, Object, Path, PathError, Step, Value};

/// Makes a plugin of a type that implements [`Reconciler`]: once in a crate, at its top level.
/// Natively it does nothing, so that the same crate can be tested.
#[macro_export]
macro_rules! export {
    ($plugin:ty) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            type Exported = $crate::guest::Exported<$plugin>;
    $crate::guest::bindings::export!(Exported with_types_in $crate::guest::bindings);
        };
        #[cfg(not(target_arch = "wasm32"))]
        const _: () = {
            // The mistake shows natively as well.
            const fn reconciles<T: $crate::Reconciler>() {}
            reconciles::<$plugin>();
        };
    };
}

/// Makes a policy of a type that implements [`Policy`]: once in a crate, at its top level, alone or
/// beside [`export!`]. Natively it does nothing, so that the same crate can be tested.
#[macro_export]
macro_rules! export_policy {
    ($policy:ty) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            type Exported = $crate::guest::ExportedPolicy<$policy>;
    $crate::guest::policy_bindings::export_policy!(Exported with_types_in $crate::guest::policy_bindings);
        };
        #[cfg(not(target_arch = "wasm32"))]
        const _: () = {
            const fn reviews<T: $crate::Policy>() {}
            reviews::<$policy>();
        };
    };
}
