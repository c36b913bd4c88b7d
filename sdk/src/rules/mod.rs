//! What policies share: the rules' findings on their way to a verdict, patterns, and the strict
//! reading of a configuration.
//!
//! A policy that cannot read its configuration does not guess: it denies, and says what is wrong.

mod keys;
mod pattern;
mod reasons;

pub use keys::{Bad, Keys};
pub use pattern::{any, glob, kind};
pub use reasons::{Effect, Reasons};
