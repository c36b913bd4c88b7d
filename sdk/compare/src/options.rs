//! What a comparison is told besides the objects and the schema.

use crate::Rule;

/// How to compare. [`Options::default`] knows no manager and ignores nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'o> {
    /// Our own field managers. What one of them owns by operation Apply in
    /// `metadata.managedFields` and desired no longer states is [`crate::Kind::Released`]; nothing
    /// that one of them wrote is ever [`crate::Kind::Stray`].
    pub managers: &'o [&'o str],
    /// Managers (operation Update) whose fields count as stated by us before: those of a tool that
    /// we took the object over from, such as `kubectl-client-side-apply`.
    pub predecessors: &'o [&'o str],
    /// Managers whose additions are never stray, besides the control plane's own
    /// ([`crate::managed_fields::is_system`]).
    pub trusted: &'o [&'o str],
    /// Differences to leave out.
    pub ignore: &'o [Rule],
}
