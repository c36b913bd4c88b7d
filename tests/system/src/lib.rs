//! The harness of the whole-system tests and of the demonstration: a real API server, the real
//! binary, real plugin files, and what the API server's own audit log says of it all.
//!
//! Takes: the binary and the plugins that `make build` leaves in `target/`. Gives: a [`Cluster`]
//! to work against, a [`Room`] for each host (its source, plugins, grants and state), the
//! running [`Host`], and an [`Api`] to play the people who change things behind its back.
//!
//! This crate never
//! - talks to a server that it did not start itself,
//! - waits for a time: it waits for an event, with a deadline,
//! - asks the host what it wrote where the API server can be asked.
//!
//! Start reading at `cluster.rs` and `room.rs`; the tests are in `tests/system`.

mod built;
mod cluster;
mod host;
mod room;

mod api;
mod audit;
mod id;
mod journal;

mod drift;
mod git;
mod plugin_file;
mod source;
mod wait;
mod webhook;

pub use api::{Api, Failure};
pub use audit::{Audit, Request};
pub use built::{Built, workspace};
pub use cluster::Cluster;
pub use drift::{Drift, drift};
pub use git::{Asked, GitServer, Line as GitLine, Repository};
pub use host::{Host, Once};
pub use id::Id;
pub use journal::{Journal, Line};
pub use plugin_file::{
    bare_component, compile_bomb, core_module, instance_bomb, slow_compile_bomb, trapping,
    with_ballast, with_manifest, with_version, with_wasi,
};
pub use room::Room;
pub use source::{copy_tree, documents, objects, objects_in};
pub use wait::{PATIENCE, until};
pub use webhook::Webhook;
