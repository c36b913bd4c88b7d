//! What a server has under one reference, and the objects that the mirror lacks.
//!
//! Protocol 2 asks for the one reference; only that one is fetched, no tags with it. What is fetched
//! lies in the mirror without a name of its own until `mirror.rs` gives it one.

use super::link::{self, Cause, Link};
use super::{GitOptions, Reference, words};
use gix::remote::fetch::{RefMap, Tags};
use gix::remote::{Direction, ref_map};
use gix::{ObjectId, Repository};

/// Why nothing was found out, or nothing came.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The server has no such branch, tag or commit.
    NoSuchReference,
    /// The side that failed said why.
    Told(Cause),
    /// It failed somewhere in between: by what the server sent, or by what the mirror holds.
    Unclear(String),
}

/// What the server has under the reference: one question, nothing is fetched.
///
/// # Errors
/// [`Trouble`]
pub(crate) fn tip(repo: &Repository, options: &GitOptions) -> Result<ObjectId, Trouble> {
    if let Reference::Commit(id) = &options.reference {
        // A commit is what it is; servers list names alone.
        return ObjectId::from_hex(id.as_bytes()).map_err(|_| Trouble::NoSuchReference);
    }
    let spec = spec(&options.reference);
    converse(repo, options, &spec, |connection, _| {
        let (map, _) = connection.ref_map(gix::progress::Discard, ref_map::Options::default())?;
        Ok(found(&map))
    })
}

/// What the server has under the reference, with all of it in the mirror.
///
/// # Errors
/// [`Trouble`]
pub(crate) fn receive(repo: &Repository, options: &GitOptions) -> Result<ObjectId, Trouble> {
    receive_spec(repo, options, &spec(&options.reference))
}

/// One commit with all of its history in the mirror.
///
/// # Errors
/// [`Trouble`]; many servers give away what has a name alone.
pub(crate) fn receive_commit(
    repo: &Repository,
    options: &GitOptions,
    id: ObjectId,
) -> Result<ObjectId, Trouble> {
    receive_spec(repo, options, &id.to_string())
}

fn receive_spec(repo: &Repository, options: &GitOptions, spec: &str) -> Result<ObjectId, Trouble> {
    if let Ok(id) = ObjectId::from_hex(spec.as_bytes())
        && repo.has_object(id)
    {
        return Ok(id);
    }
    converse(repo, options, spec, |connection, overdue| {
        let map = ref_map::Options::default();
        let prepared = connection.prepare_fetch(gix::progress::Discard, map)?;
        let Some(id) = found(prepared.ref_map()) else { return Ok(None) };
        prepared.receive(gix::progress::Discard, overdue)?;
        Ok(Some(id))
    })
}

type Connection<'a, 'r> = gix::remote::Connection<
    'a,
    'a,
    'r,
    Box<dyn gix_transport::client::blocking_io::Transport + Send>,
>;

fn converse(
    repo: &Repository,
    options: &GitOptions,
    spec: &str,
    ask: impl FnOnce(
        Connection<'_, '_>,
        &std::sync::atomic::AtomicBool,
    ) -> Result<Option<ObjectId>, gix::Error>,
) -> Result<ObjectId, Trouble> {
    let mut link = link::open(options).map_err(Trouble::Told)?;
    let outcome = (|| {
        let url = gix::url::parse("file:///source")?;
        let remote = repo
            .remote_at_without_url_rewrite(url)?
            .with_fetch_tags(Tags::None)
            .with_refspecs([gix::bstr::BStr::new(spec)], Direction::Fetch)?;
        let Some(transport) = link.transport.take() else { return Ok(None) };
        let connection =
            remote.to_connection_with_transport(transport).with_credentials(|_| Ok(None));
        ask(connection, &link.overdue)
    })();
    match outcome {
        Ok(Some(id)) => Ok(id),
        Ok(None) => Err(Trouble::NoSuchReference),
        Err(error) => Err(trouble(link, &error, options)),
    }
}

fn trouble(link: Link, error: &gix::Error, options: &GitOptions) -> Trouble {
    let told = link.told.clone();
    if error.is_resource_exhausted() {
        return Trouble::Told(Cause::TooMuch(format!(
            "an object in the repository unpacks to more than {}; keep large files out of it, or \
             raise the source's limit",
            link::size(options.limits.object_bytes)
        )));
    }
    // With its end the last words of a program have come.
    drop(link);
    let said = told.shown(&words::of_error(error));
    let is_unknown = |words: &str| words.contains("not our ref") || words.contains("unknown ref");
    match told.cause() {
        Some(cause) if is_unknown(cause.words()) => Trouble::NoSuchReference,
        Some(cause) => Trouble::Told(cause),
        None if is_unknown(&said) => Trouble::NoSuchReference,
        None => Trouble::Unclear(said),
    }
}

/// What to ask a server for.
fn spec(reference: &Reference) -> String {
    match reference {
        Reference::Branch(name) => format!("refs/heads/{name}"),
        Reference::Tag(name) => format!("refs/tags/{name}"),
        Reference::Commit(id) => id.clone(),
        Reference::Default => "HEAD".into(),
    }
}

fn found(map: &RefMap) -> Option<ObjectId> {
    map.mappings.first()?.remote.as_id().map(ToOwned::to_owned)
}
