//! The commands: each reads its arguments, connects what it needs, and says how it ended.

pub(crate) mod audit;
pub(crate) mod dev;
pub(crate) mod diff;
pub(crate) mod plugin;
pub(crate) mod run;
