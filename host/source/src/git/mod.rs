//! Git as a source.

pub mod trust;
