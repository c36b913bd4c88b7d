//! JSON as Trimtab needs it on both sides of the sandbox: a borrowed tree that keeps numbers as
//! text, a strict parser, two writers, and the paths by which everything else names a field.
//!
//! - [`parse`] takes UTF-8 bytes and gives a [`Value`] that borrows from them.
//! - [`write()`] and [`canonical`] give the bytes back: in the tree's order, or with sorted keys.
//! - [`Path`] is a JSON pointer with keyed steps (`/spec/containers/[name=a]/image`).
//!
//! The crate has no dependencies, needs only `alloc`, never panics on any input and never turns a
//! number into floating point. It knows nothing of Kubernetes. Start reading at `parse.rs`.

#![no_std]

extern crate alloc;

mod error;
mod object;
mod order;
mod parse;
mod path;
mod string;
mod value;
mod write;

pub use error::{Error, ErrorKind};
pub use object::Object;
pub use order::order;
pub use parse::{MAX_DEPTH, parse};
pub use path::{Path, PathError, Step};
pub use value::Value;
pub use write::{canonical, write, write_string};
