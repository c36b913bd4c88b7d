//! One conversation with a server: how it is opened, what it may cost, and why it failed.
//!
//! The transports are our own where they touch the world (`http.rs`, `process.rs`), and gix's where
//! they speak the protocol. All that a server sends passes [`Bounded`].

use super::location::{Scheme, Url};
use super::{Credentials, GitOptions, http, process, words};
use gix_transport::client::blocking_io::Transport;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A conversation that is open. What it holds ends with it.
pub(crate) struct Link {
    pub(crate) transport: Option<Box<dyn Transport + Send>>,
    pub(crate) told: Told,
    /// Set once the conversation has taken too long: whoever works on what came stops.
    pub(crate) overdue: Arc<AtomicBool>,
    _watch: Watch,
}

/// Why a conversation failed, as the side that saw it says. The first that is told counts.
#[derive(Clone, Default)]
pub(crate) struct Told {
    cause: Arc<Mutex<Option<Cause>>>,
    /// What must not be repeated.
    secrets: Arc<Vec<String>>,
}

/// Why a conversation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The server does not let us in.
    Refused(String),
    /// More came than is allowed.
    TooMuch(String),
    /// Anything else.
    Other(String),
    /// Before anything was asked: what the options name is no use.
    Options(String),
}

impl Cause {
    pub(crate) fn words(&self) -> &str {
        match self {
            Cause::Refused(words)
            | Cause::TooMuch(words)
            | Cause::Other(words)
            | Cause::Options(words) => words,
        }
    }
}

impl Told {
    pub(crate) fn tell(&self, cause: Cause) {
        self.cause.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(cause);
    }

    /// The cause, if one was told, in words that can be shown.
    pub(crate) fn cause(&self) -> Option<Cause> {
        let cause = self.cause.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        Some(match cause {
            Cause::Refused(words) => Cause::Refused(self.shown(&words)),
            Cause::Other(words) => Cause::Other(self.shown(&words)),
            cause => cause,
        })
    }

    pub(crate) fn shown(&self, words: &str) -> String {
        words::shown(words, &self.secrets)
    }
}

/// Opens a conversation.
///
/// # Errors
/// [`Cause::Options`] where it could not even be begun.
pub(crate) fn open(options: &GitOptions) -> Result<Link, Cause> {
    let overdue = Arc::new(AtomicBool::new(false));
    let budget = Budget::new(options);
    let until = Instant::now() + options.timeout;
    match options.url.scheme {
        Scheme::Https | Scheme::Http => {
            let login = login(options)?;
            let secrets = login.iter().flat_map(http::Login::secrets).collect();
            let told = Told { secrets: Arc::new(secrets), ..Told::default() };
            let transport = http::connect(options, login, budget.told_to(&told), &told)?;
            let watch = Watch::until(until, options.timeout, overdue.clone(), told.clone(), None);
            Ok(Link { transport: Some(transport), told, overdue, _watch: watch })
        }
        Scheme::Ssh | Scheme::File => {
            let told = Told::default();
            let (transport, child) = process::connect(options, budget.told_to(&told), &told)?;
            let watch =
                Watch::until(until, options.timeout, overdue.clone(), told.clone(), Some(child));
            Ok(Link { transport: Some(transport), told, overdue, _watch: watch })
        }
    }
}

fn login(options: &GitOptions) -> Result<Option<http::Login>, Cause> {
    let user = options.url.user.as_deref();
    match &options.credentials {
        Credentials::None => Ok(None),
        Credentials::SshKey { .. } => Err(Cause::Options(
            "an SSH key lets nobody in over HTTP: name a token file, or write the address for ssh"
                .into(),
        )),
        Credentials::TokenFile(path) => {
            may_carry_credentials(&options.url)?;
            Ok(Some(http::Login::parse(&small_file(path, "the token")?, user, path)?))
        }
    }
}

fn may_carry_credentials(url: &Url) -> Result<(), Cause> {
    if url.scheme == Scheme::Http && !url.is_loopback() {
        return Err(Cause::Options(
            "credentials are not sent over HTTP without TLS: use https://".into(),
        ));
    }
    Ok(())
}

/// A file that a person wrote, as text. Its content is never shown.
pub(crate) fn small_file(path: &Path, what: &str) -> Result<String, Cause> {
    const MAX_BYTES: u64 = 1 << 20;
    let fault = |error: io::Error| {
        Cause::Options(format!("{what} cannot be read from {}: {error}", path.display()))
    };
    let file = std::fs::File::open(path).map_err(fault)?;
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).map_err(fault)?;
    Ok(text)
}

/// What a server may still send.
#[derive(Clone)]
pub(crate) struct Budget {
    left: Arc<AtomicU64>,
    allowed: u64,
    told: Told,
}

impl Budget {
    pub(crate) fn new(options: &GitOptions) -> Self {
        let allowed = options.limits.received_bytes;
        Self { left: Arc::new(AtomicU64::new(allowed)), allowed, told: Told::default() }
    }

    fn told_to(mut self, told: &Told) -> Self {
        self.told = told.clone();
        self
    }

    pub(crate) fn bounds<R: Read>(&self, inner: R) -> Bounded<R> {
        Bounded { inner, budget: self.clone() }
    }
}

/// What a server sends, up to a limit over the whole conversation.
pub(crate) struct Bounded<R> {
    inner: R,
    budget: Budget,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        let bytes = read as u64;
        let spend = |left: u64| left.checked_sub(bytes);
        let order = Ordering::Relaxed;
        if self.budget.left.fetch_update(order, order, spend).is_err() {
            let what = format!(
                "the server sends more than {} in one fetch; keep large files out of the \
                 repository, or raise the source's limit",
                size(self.budget.allowed)
            );
            self.budget.told.tell(Cause::TooMuch(what.clone()));
            return Err(io::Error::other(what));
        }
        Ok(read)
    }
}

/// Bytes for people to read.
pub(crate) fn size(bytes: u64) -> String {
    match bytes >> 20 {
        0 => format!("{bytes} bytes"),
        mebibytes => format!("{mebibytes} MiB"),
    }
}

/// Ends a conversation that takes too long; ends its program in any case.
struct Watch {
    over: Option<std::sync::mpsc::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Watch {
    fn until(
        until: Instant,
        allowed: Duration,
        overdue: Arc<AtomicBool>,
        told: Told,
        child: Option<process::Child>,
    ) -> Self {
        let (over, ended) = std::sync::mpsc::channel::<()>();
        let watch = move || {
            let left = until.saturating_duration_since(Instant::now());
            if ended.recv_timeout(left) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                told.tell(Cause::Other(format!(
                    "it took longer than {} seconds, which the source's timeout allows",
                    allowed.as_secs_f32()
                )));
                overdue.store(true, Ordering::Relaxed);
            }
            if let Some(mut child) = child {
                child.end();
            }
        };
        let thread = std::thread::Builder::new().name("git-deadline".into()).spawn(watch).ok();
        Self { over: Some(over), thread }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
