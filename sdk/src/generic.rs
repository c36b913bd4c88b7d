//! The comparison that every type gets: by meaning, with what the cluster's schema says.

use crate::{Comparison, Difference, NoComparison, Snapshot};
use trimtab_compare::Options;

/// Compares desired and live by meaning; see [`crate::comparison`] for the rules.
///
/// A desired object that is absent from the cluster is one difference at the root. An object that
/// no source declares has none: what becomes of it is not a matter of comparing.
///
/// # Errors
/// [`NoComparison::Invalid`], where desired is something that the API server would refuse: a list
/// with one key twice, a value of a wrong type.
pub fn compare<'s>(snapshot: &'s Snapshot<'_>) -> Result<Comparison<'s>, NoComparison> {
    let Some(desired) = snapshot.desired() else { return Ok(Comparison::in_sync()) };
    let managers = [snapshot.field_manager()];
    let options = Options { managers: &managers, ..Options::default() };
    let differences =
        trimtab_compare::compare(desired, snapshot.live(), snapshot.facts(), &options)
            .map_err(|error| NoComparison::Invalid(format!("{}: {error}", error.code())))?;
    Ok(Comparison { differences: differences.into_iter().map(Difference::from).collect() })
}
