//! A plugin author's first hour: make a crate, build it into one file, test it. No cluster.
//!
//! [`create`] writes a crate that compiles, [`build`] makes the component of it (cargo for the
//! code, libraries for everything else) and [`test()`] runs the author's cases through the very
//! sandbox that production uses. Nothing here touches a cluster or a running host.
//!
//! Start reading at `build.rs`.

mod build;
mod create;
mod reviews;
mod test;

mod cargo;
mod cases;
mod component;
mod error;
mod manifest;
mod verify;

pub use build::{BuildOptions, Built, SIZE_GOAL_BYTES, build};
pub use create::{Sdk, Sort, create};
pub use error::Error;
pub use test::{CaseResult, FactsFor, TestReport, test};

/// The target that plugins are compiled for.
pub const TARGET: &str = "wasm32-unknown-unknown";
