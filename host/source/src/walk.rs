//! Which files of a source are read: one rule for directories and for trees of Git.
//!
//! Manifests are `*.yaml`, `*.yml` and `*.json`, as kubectl has it. Hidden names (a leading dot) are
//! left out, which with the rules for links makes a mounted ConfigMap read right: its visible names
//! are links through `..data` into a hidden folder that is swapped in one step.
//!
//! Links are resolved step by step by hand. Each step must stay inside the root, even if the end
//! would be inside again; what leaves it is refused, whether it exists or not.
//!
//! A folder that a generator reads (`generator.rs`) is refused as a whole. Where the names come
//! from is [`Files`]; nothing here opens anything.

use crate::error::{Fault, Problem, ProblemCode};
use crate::generator;
use crate::limits::{
    MAX_ENTRIES, MAX_FILE_BYTES, MAX_FILES, MAX_FOLDER_DEPTH, MAX_LINK_HOPS, MAX_PATH_BYTES,
    MAX_TOTAL_BYTES,
};
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

/// The bytes of one name in a folder.
pub(crate) type Name = Vec<u8>;

/// Where a walk's names come from.
pub(crate) trait Files {
    /// What a file is found by later.
    type Handle;

    /// The names in a folder, in any order, and what is refused by name alone.
    fn list(&mut self, folder: &[Name]) -> Result<Listing, Obstacle>;

    /// What stands under a path of names below the root; links are not followed.
    fn look(&mut self, path: &[Name]) -> Result<Entry<Self::Handle>, Obstacle>;
}

/// The names in a folder.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) names: Vec<Name>,
    pub(crate) faults: Vec<(Name, Fault)>,
}

/// What stands under a name.
pub(crate) enum Entry<H> {
    Folder,
    File {
        size: u64,
        handle: H,
    },
    Link(Vec<u8>),
    /// A device, a pipe, a socket.
    Other,
}

/// Why something could not be looked at.
pub(crate) enum Obstacle {
    /// It is not there, or not any more.
    Absent,
    /// In the words of whoever keeps it.
    Unreadable(String),
}

/// What a walk found: files sorted by visible path, and what stands against reading them.
#[derive(Debug)]
pub(crate) struct Found<H> {
    pub(crate) files: Vec<File<H>>,
    pub(crate) problems: Vec<Problem>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct File<H> {
    /// Path below the root by visible names, with `/`.
    pub(crate) name: Arc<str>,
    pub(crate) handle: H,
}

/// Looks at all that is below the root.
pub(crate) fn walk<F: Files>(files: &mut F) -> Found<F::Handle> {
    let mut walker = Walker::over(files);
    walker.folder(&[], "", 0);
    walker.end()
}

/// A root that is one file, whatever its name.
pub(crate) fn single<F: Files>(
    files: &mut F,
    name: &str,
    entry: Entry<F::Handle>,
) -> Found<F::Handle> {
    let mut walker = Walker::over(files);
    walker.file(name, Vec::new(), entry);
    walker.end()
}

struct Walker<'f, F: Files> {
    tree: &'f mut F,
    files: Vec<File<F::Handle>>,
    problems: Vec<Problem>,
    entries: usize,
    bytes: u64,
    /// Paths without links of what was taken up through links, and of all files.
    seen: HashSet<Vec<Name>>,
    /// Set once a limit of the whole source was passed: one problem says so, not thousands.
    full: bool,
}

impl<'f, F: Files> Walker<'f, F> {
    fn over(tree: &'f mut F) -> Self {
        Self {
            tree,
            files: Vec::new(),
            problems: Vec::new(),
            entries: 0,
            bytes: 0,
            seen: HashSet::new(),
            full: false,
        }
    }

    fn end(mut self) -> Found<F::Handle> {
        self.files.sort_by(|a, b| a.name.cmp(&b.name));
        // Beyond a limit of the whole source one problem says it all: nothing is worth reading.
        let files = if self.full { Vec::new() } else { self.files };
        Found { files, problems: self.problems }
    }

    /// One folder: `real` are its names below the root without links, `shown` its visible path.
    fn folder(&mut self, real: &[Name], shown: &str, depth: usize) {
        let mut listing = match self.tree.list(real) {
            Ok(listing) => listing,
            Err(obstacle) => {
                return self.obstacle(if shown.is_empty() { "." } else { shown }, &obstacle);
            }
        };
        listing.names.sort();
        let names = listing.names.iter().filter_map(|name| std::str::from_utf8(name).ok());
        if let Some((name, fault)) = generator::of_folder(names) {
            // Its material is no manifests: one problem for all of it.
            return self.problem(&below(shown, name), fault);
        }
        for (name, fault) in listing.faults {
            self.problem(&below(shown, &printable(&name)), fault);
        }
        for name in listing.names {
            if self.full || name.starts_with(b".") {
                continue;
            }
            let Ok(text) = std::str::from_utf8(&name) else {
                let message = "the file's name is not UTF-8";
                let shown = below(shown, &printable(&name));
                self.refuse(&shown, ProblemCode::NotAFile, message, "rename it");
                continue;
            };
            let shown = below(shown, text);
            self.entry(real, name, &shown, depth);
        }
    }

    /// One name in a folder.
    fn entry(&mut self, parent: &[Name], name: Name, shown: &str, depth: usize) {
        self.entries += 1;
        if self.entries > MAX_ENTRIES {
            return self.overflow(shown, format!("the source has more than {MAX_ENTRIES} entries"));
        }
        if shown.len() > MAX_PATH_BYTES {
            let message = format!("the path is longer than {MAX_PATH_BYTES} bytes");
            return self.refuse(shown, ProblemCode::TooLarge, &message, "use shorter names");
        }
        let mut real = parent.to_vec();
        real.push(name);
        let mut entry = match self.tree.look(&real) {
            Ok(entry) => entry,
            // Gone since the listing: the walk after the reading will differ.
            Err(Obstacle::Absent) => return,
            Err(obstacle) => return self.obstacle(shown, &obstacle),
        };
        if let Entry::Link(_) = entry {
            let target = match self.resolve(&real) {
                Ok(target) => target,
                Err(fault) => return self.problem(shown, fault.whole_file()),
            };
            entry = match self.tree.look(&target) {
                Ok(entry) => entry,
                Err(obstacle) => return self.obstacle(shown, &obstacle),
            };
            let is_folder = matches!(entry, Entry::Folder);
            let is_hidden = target.iter().any(|part| part.starts_with(b"."));
            // Each file once: under its own name, or through the first link to where it is hidden.
            let is_read_anyway =
                !is_hidden && (is_folder || target.last().is_none_or(|name| is_manifest(name)));
            if is_read_anyway || (is_folder && !self.seen.insert(target.clone())) {
                return;
            }
            real = target;
        }
        if let Entry::Folder = entry {
            if depth >= MAX_FOLDER_DEPTH {
                let message = format!("folders nest more than {MAX_FOLDER_DEPTH} deep");
                return self.refuse(shown, ProblemCode::TooLarge, &message, "flatten the source");
            }
            self.folder(&real, shown, depth + 1);
        } else if is_manifest(shown.as_bytes()) {
            self.file(shown, real, entry);
        }
    }

    fn file(&mut self, shown: &str, real: Vec<Name>, entry: Entry<F::Handle>) {
        let Entry::File { size, handle } = entry else {
            let message = "this is no regular file";
            return self.refuse(shown, ProblemCode::NotAFile, message, "remove it from the source");
        };
        if size > MAX_FILE_BYTES {
            let message = format!("the file is larger than {} MiB", MAX_FILE_BYTES >> 20);
            return self.refuse(shown, ProblemCode::TooLarge, &message, "split it");
        }
        self.bytes = self.bytes.saturating_add(size);
        if self.bytes > MAX_TOTAL_BYTES {
            let message = format!("the source holds more than {} MiB", MAX_TOTAL_BYTES >> 20);
            return self.overflow(shown, message);
        }
        if self.files.len() >= MAX_FILES {
            return self
                .overflow(shown, format!("the source has more than {MAX_FILES} manifest files"));
        }
        if self.seen.insert(real) {
            self.files.push(File { name: shown.into(), handle });
        }
    }

    /// The names below the root that a link leads to, none of them a link.
    fn resolve(&mut self, link: &[Name]) -> Result<Vec<Name>, Fault> {
        let refused = |code, message: &str, remedy: &str| Err(Fault::new(code, 1, message, remedy));
        let escape = || {
            let remedy =
                "put the file itself there, or give the link a leading dot to have it ignored";
            refused(ProblemCode::SymlinkEscape, "the link leaves the source's root", remedy)
        };
        let mut resolved: Vec<Name> = Vec::new();
        let mut todo: VecDeque<Name> = link.iter().cloned().collect();
        let mut hops = 0;
        while let Some(part) = todo.pop_front() {
            match part.as_slice() {
                b"" | b"." => continue,
                b".." => {
                    if resolved.pop().is_none() {
                        return escape();
                    }
                    continue;
                }
                _ => resolved.push(part),
            }
            let target = match self.tree.look(&resolved) {
                Ok(Entry::Link(target)) => target,
                // A file is no folder that more could follow in.
                Ok(Entry::Folder) => continue,
                Ok(_) if todo.iter().all(|part| part.is_empty()) => continue,
                Ok(_) | Err(_) => {
                    let remedy = "correct or remove the link";
                    return refused(ProblemCode::NotAFile, "the link points to nothing", remedy);
                }
            };
            hops += 1;
            if hops > MAX_LINK_HOPS {
                let message = "the links lead in a circle";
                return refused(ProblemCode::NotAFile, message, "remove the link");
            }
            if target.starts_with(b"/") {
                return escape();
            }
            resolved.pop();
            for part in target.split(|byte| *byte == b'/').rev() {
                todo.push_front(part.to_vec());
            }
        }
        Ok(resolved)
    }

    fn overflow(&mut self, shown: &str, message: String) {
        self.full = true;
        let remedy = "point the source at a smaller folder";
        self.refuse(shown, ProblemCode::TooLarge, &message, remedy);
    }

    fn obstacle(&mut self, shown: &str, obstacle: &Obstacle) {
        let why = match obstacle {
            Obstacle::Absent => "it is not there any more",
            Obstacle::Unreadable(why) => why,
        };
        let message = format!("cannot be read: {why}");
        let remedy = "let the host's user read it, or take it out of the source";
        self.refuse(shown, ProblemCode::Unreadable, &message, remedy);
    }

    fn refuse(&mut self, shown: &str, code: ProblemCode, message: &str, remedy: &str) {
        self.problem(shown, Fault::new(code, 1, message, remedy));
    }

    fn problem(&mut self, shown: &str, fault: Fault) {
        self.problems.push(fault.whole_file().in_file(&shown.into()));
    }
}

/// Whether a file of this name is read as manifests.
pub(crate) fn is_manifest(name: &[u8]) -> bool {
    [&b".yaml"[..], b".yml", b".json"].iter().any(|ending| name.ends_with(ending))
}

fn below(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// A name for people to read, whatever bytes it is made of.
fn printable(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    text.chars()
        .flat_map(|sign| {
            let escaped = sign.is_control().then(|| sign.escape_default());
            let plain = escaped.is_none().then_some(sign);
            escaped.into_iter().flatten().chain(plain)
        })
        .collect()
}
