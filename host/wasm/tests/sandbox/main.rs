//! What a plugin cannot do to the host: one small hostile guest for each behaviour.
//!
//! Guests are core modules written as text, encoded as components here; no compiler is needed.
//! `guest.rs` makes them, the other files hold the tests by what they threaten.

mod guest;

mod answers;
mod cache;
mod files;
mod imports;
mod passes;
mod resources;
mod turns;
mod wasi;
