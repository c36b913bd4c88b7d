//! The API server's answers, from bytes to what is known of an object. Pure: bytes in, values out.
//!
//! Takes what a connection delivers, in any cut: [`lines`] makes lines of it, [`decode`] reads
//! envelopes without making a tree, [`status`] reads refusals, [`version`] orders what came, and
//! [`entry`] keeps what is known of one object by the rules that no race may break.
//!
//! Nothing here asks a server, and whoever can make an object can send any of these bytes:
//! `tests/fuzz` does.

pub mod decode;
pub mod entry;
pub mod lines;
pub mod status;
pub mod version;
