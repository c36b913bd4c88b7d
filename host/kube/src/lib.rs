//! The API server, as the host needs it: what it serves, what it has, and the one way to write.
//!
//! Takes a kubeconfig or a Pod's own credentials. Gives [`ApiServer`] (a connection), [`Store`]
//! (what the cluster serves and has, kept current by one watch a kind) with its [`Events`],
//! [`Writer`] (the only thing in Trimtab that writes to a cluster), and the server's own schema
//! documents.
//!
//! This is the only user of the crate kube, of which it uses the client alone: authentication,
//! TLS, kubeconfig. Objects stay the bytes that the server sent; no tree is made of them here. What
//! the bytes say is read by `host/wire`.
//!
//! This crate never
//! - writes anything but what a `Change` says, which only core's gate can make,
//! - turns a failed read into "absent": what it cannot tell is `Live::Unknown` with the reason,
//! - puts an answer's body into a log or an error; what is quoted is the `message` of a
//!   Kubernetes `Status`, and that may quote the object that was sent.
//!
//! Start reading at [`Store`] and [`Writer`]; `feed.rs` is the loop that lists and watches.

mod apply;
mod store;

mod address;
mod connect;
mod counts;
mod request;

mod discovery;
mod schema;

mod backoff;
mod events;
mod feed;
mod list;
mod view;
mod watch;

// What the server's bytes say is read there.
use trimtab_wire::{decode, entry, lines, status, version};

mod dependents;
mod impersonate;
mod made;
mod refusal;
mod suspects;

pub use apply::{FIELD_MANAGER, Writer};
pub use connect::{ConnectError, Credentials, connect};
pub use counts::RequestCounts;
pub use discovery::{ApiKind, Kinds, Lookup};
pub use events::{Event, Events};
pub use made::ShardObject;
pub use request::{ApiServer, RequestError, RequestFailure};
pub use schema::SchemaIndex;
pub use store::{Options, Store};
pub use trimtab_wire::status::{Cause, Status};
pub use view::Health;
