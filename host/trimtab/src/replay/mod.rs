//! Replay: what a plugin was shown in one pass and what it answered, kept so that it can be asked
//! again.
//!
//! - `inputs.rs`: the form, one JSON file for each pass.
//! - `answers.rs`: what a plugin answered, as text that two runs can be compared by.
//! - `keeping.rs`: how a pass is listened to. `kept.rs`: where the files lie, and how many.
//! - `again.rs`: asking a plugin again.
//!
//! The audit log holds a reference, the file's digest. The files hold objects as they were, so they
//! are the host's alone, and what was shown of a Secret is never among them.

mod again;
mod answers;
mod inputs;
mod keeping;
mod kept;

pub(crate) use self::again::{Replayed, replay};
pub(crate) use self::inputs::Inputs;
pub(crate) use self::keeping::Keeping;
pub(crate) use self::kept::{KEPT_BYTES, Kept};
