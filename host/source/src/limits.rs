//! The closed limits of a source: each with its unit and the reason for its value.
//!
//! They bound what one reading may cost; none can be raised by what is read.

use std::time::Duration;

/// Bytes of one file. The largest manifests in use are install files of some 2 MiB; an object
/// itself cannot exceed etcd's 1.5 MiB.
pub const MAX_FILE_BYTES: u64 = 16 << 20;

/// Bytes of all manifest files of a source together: they are held in memory twice while reading.
pub const MAX_TOTAL_BYTES: u64 = 128 << 20;

/// Manifest files of a source.
pub const MAX_FILES: usize = 10_000;

/// Directory entries looked at, manifests or not: a source pointed at `/` must end.
pub const MAX_ENTRIES: usize = 100_000;

/// Folders within folders, counted from the root.
pub const MAX_FOLDER_DEPTH: usize = 32;

/// Bytes of one path relative to the root. Linux itself stops at 4096.
pub const MAX_PATH_BYTES: usize = 1024;

/// Links followed to resolve one path, as the kernel's own limit.
pub const MAX_LINK_HOPS: usize = 40;

/// Objects that one source may declare, Lists expanded.
pub const MAX_OBJECTS: usize = 50_000;

/// Documents of one file: as many as a source may declare objects.
pub const MAX_DOCUMENTS: usize = MAX_OBJECTS;

/// Problems told of one file, and of a source: whoever mends these runs it again.
pub const MAX_FILE_PROBLEMS: usize = 100;

/// Problems after which no further file is looked into, and that are told of one source.
pub const MAX_PROBLEMS: usize = 1_000;

/// Bytes that aliases and merge keys of one file may add to its text (a "YAML bomb" is a few lines
/// that expand to gigabytes). More than 1 MiB of them would not fit into an object anyway.
pub const MAX_ALIAS_BYTES: usize = 1 << 20;

/// Levels of nesting of one document: what the host's and the plugins' JSON parser accepts.
pub const MAX_DEPTH: usize = trimtab_json::MAX_DEPTH;

/// Readings of a tree that changes meanwhile, before the source counts as unsettled.
pub const READ_ATTEMPTS: u32 = 5;

/// How long a tree must have been left alone before it is read. A file that is being written in
/// place is empty for a moment, which reads as the removal of all its objects.
pub const QUIET: Duration = Duration::from_millis(300);

/// Age below which a file's time stamp does not prove that it is unchanged: a second write within
/// one tick of the file system's clock leaves the stamp as it is. FAT counts in 2 s, others finer.
pub const RACY_AGE: Duration = Duration::from_secs(2);

/// Bytes that a server of Git may send in one conversation: the whole history of one branch comes
/// with the first. What is packed in one object is held in memory, so this bounds memory, too.
pub const MAX_RECEIVED_BYTES: u64 = 512 << 20;

/// Bytes of one object of Git unpacked, whatever it is. A few kilobytes can unpack to gigabytes; an
/// object says its size before it is unpacked.
pub const MAX_OBJECT_BYTES: u64 = 64 << 20;

/// Bytes of one folder's listing in a tree of Git: some 400,000 names.
pub const MAX_TREE_BYTES: u64 = 16 << 20;

/// Bytes of one commit or tag. Git's own are some hundred; a signature adds a thousand.
pub const MAX_COMMIT_BYTES: u64 = 1 << 20;

/// Tags that point to tags, before there is a commit.
pub const MAX_TAG_HOPS: usize = 8;

/// Packs in a mirror, one of which each fetch adds, before the mirror is made anew as one. Finding
/// an object looks into each.
pub const MAX_PACKS: usize = 200;

/// Bytes that are sent to a server in one request: which commits we have.
pub const MAX_REQUEST_BYTES: usize = 8 << 20;

/// Signs of a server's words that are shown.
pub const MAX_WORDS: usize = 300;

/// Bytes of unpacked objects that are kept while a mirror is read, since others are told as their
/// differences. Freed with the reading.
pub const DELTA_CACHE_BYTES: usize = 32 << 20;
