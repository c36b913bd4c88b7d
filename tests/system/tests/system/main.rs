//! The whole-system tests: the real binary and real plugins against a real API server.
//!
//! One test binary, so that it is linked once and most tests share one control plane, each in
//! namespaces of its own and as a user of its own in the audit log. What is asserted is the state
//! of the world and the API server's audit log; times are told, never asserted.
//!
//! Start reading at `world.rs` for what tests share, at `whole_loop.rs` for what Trimtab is for.

mod world;

mod admission;
mod cases;
mod compile_worker;
mod corpus;
mod diff;
mod ends;
mod example;
mod gate;
mod grants;
mod hostile;
mod ignore;
mod immutable;
mod in_cluster;
mod once;
mod oracle;
mod ordering;
mod outage;
mod ownership;
mod plan;
mod plugins;
mod pod_security;
mod policies;
mod prune;
mod quarantine;
mod rbac;
mod schemas;
mod secrets;
mod shipped_policies;
mod signing;
mod sources;
mod succession;
mod typed;
mod whole_loop;
