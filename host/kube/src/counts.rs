//! How many requests were sent, by what they do: so that "nothing was asked" can be shown.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a request does, for counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    List,
    Watch,
    Discovery,
    Schema,
    Rehearse,
    Create,
    Apply,
    ApplyStatus,
    Patch,
    Delete,
}

/// How many requests were sent since the connection was made, by what they do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Reads of one object.
    pub get: u64,
    /// List pages.
    pub list: u64,
    /// Watches opened.
    pub watch: u64,
    /// Discovery documents, unchanged ones included.
    pub discovery: u64,
    /// Schema documents.
    pub schema: u64,
    /// Dry runs: they write nothing.
    pub rehearse: u64,
    /// Objects made by a request of its own.
    pub create: u64,
    /// Server-side applies.
    pub apply: u64,
    /// Server-side applies of the status subresource.
    pub apply_status: u64,
    /// JSON Patches.
    pub patch: u64,
    /// Deletes.
    pub delete: u64,
}

impl RequestCounts {
    /// Requests that may change something in the cluster.
    pub fn mutating(&self) -> u64 {
        self.create + self.apply + self.apply_status + self.patch + self.delete
    }

    /// All requests.
    pub fn total(&self) -> u64 {
        self.mutating()
            + self.get
            + self.list
            + self.watch
            + self.discovery
            + self.schema
            + self.rehearse
    }
}

/// Counts as requests are sent. Each counter by itself; together they are no snapshot.
#[derive(Debug, Default)]
pub(crate) struct Counters([AtomicU64; 11]);

impl Counters {
    /// One more.
    pub(crate) fn add(&self, verb: Verb) {
        self.0[verb as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// What was counted so far.
    pub(crate) fn now(&self) -> RequestCounts {
        let count = |verb: Verb| self.0[verb as usize].load(Ordering::Relaxed);
        RequestCounts {
            get: count(Verb::Get),
            list: count(Verb::List),
            watch: count(Verb::Watch),
            discovery: count(Verb::Discovery),
            schema: count(Verb::Schema),
            rehearse: count(Verb::Rehearse),
            create: count(Verb::Create),
            apply: count(Verb::Apply),
            apply_status: count(Verb::ApplyStatus),
            patch: count(Verb::Patch),
            delete: count(Verb::Delete),
        }
    }
}
