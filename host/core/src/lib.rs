//! The core of Trimtab: the pass and its stages, pure.
//!
//! Takes plain values and gives plain values. Never touches a file, a socket, a clock, a thread
//! or a runtime, and knows neither kube nor wasmtime (`deny.toml` and the tests hold it to
//! that): what it needs of the world comes through [`ports`].
//!
//! Start reading at [`pass`]: the whole way through, on one screen.

pub mod pass;

pub mod decision;
pub mod gate;
pub mod record;
pub mod review;
pub mod snapshot;

pub mod budget;
pub mod denial;
pub mod fields;
pub mod grant;
pub mod identity;
pub mod object;
pub mod plugin;
pub mod policy;
pub mod ports;

pub mod health;
pub mod order;

pub mod inventory;
pub mod prune;

pub mod ignore;
pub mod memo;
pub mod placing;
pub mod quarantine;
pub mod queue;
pub mod reads;
pub mod reason;
pub mod redact;
pub mod terms;

mod after;
mod alike;
pub mod approval;
mod bookkeeping;
mod confirm;
pub mod edit;
mod effects;
mod exclusive;
mod failed;
pub mod fight;
mod handover;
mod masked;
pub mod ownership;
mod recreate;
pub mod succession;
mod suspension;
mod taint;

#[cfg(test)]
mod gate_tests;
#[cfg(test)]
mod pass_tests;
