//! Git as a source, on repositories that git itself makes and serves.

mod failures;
mod fetching;
mod hostile;
mod reading;
mod repository;
mod server;
mod ssh;
mod trusted;

use repository::{Repo, config_map};
use std::path::Path;
use trimtab_core::object::Revision;
use trimtab_source::git::{Git, GitOptions, location::Url};
use trimtab_source::{Problem, Source as _, SourceError};

/// Options for the repository at this address, at its default branch.
fn options(address: &str) -> GitOptions {
    let mut options = GitOptions::new(Url::parse(address).unwrap());
    options.allow_plain_http = true;
    options.timeout = std::time::Duration::from_secs(60);
    options
}

fn open(options: GitOptions, state: &Path) -> Git {
    Git::open("pier", options, state, "default").unwrap()
}

/// The source at a repository on this machine, its state in a folder beside it.
fn source(repo: &Repo) -> Git {
    open(options(&repo.address()), &repo.state())
}

/// Where each object is declared, and its name.
fn names(revision: &Revision) -> Vec<String> {
    revision.manifests.iter().map(|one| format!("{} {}", one.origin, one.name)).collect()
}

fn read(source: &Git) -> Vec<String> {
    names(&source.read().unwrap())
}

/// Reads and accepts, as the host does.
fn take(source: &Git) -> Revision {
    let revision = source.read().unwrap();
    source.accept(&revision).unwrap();
    revision
}

fn problems(source: &Git) -> Vec<Problem> {
    match source.read().unwrap_err() {
        SourceError::Refused(problems) => problems.to_vec(),
        other => panic!("{other}"),
    }
}

/// Code and file of each problem.
fn refusals(source: &Git) -> Vec<String> {
    problems(source).iter().map(|problem| format!("{} {}", problem.code, problem.file)).collect()
}
