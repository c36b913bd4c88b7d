//! One request to the API server, and its answer as bytes.
//!
//! Takes a path that `address.rs` made, and a body that someone else is responsible for. Gives the
//! answer's bytes, or why there is none. Never retries (the caller knows what a retry means),
//! never waits without a limit, never reads a body without a limit, never logs a body.

use crate::counts::{Counters, RequestCounts, Verb};
use crate::impersonate;
use crate::status::Status;
use bytes::{Bytes, BytesMut};
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, RETRY_AFTER, WARNING,
};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::BodyExt as _;
use kube::client::Body;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use trimtab_core::terms::Account;

/// Writes under way at the same time. HTTP/1.1 takes a connection for each; the API server's
/// default priority level for a service account lets some 50 requests through at once, and other
/// clients of that level want some of them.
const MAX_WRITES: usize = 16;
/// Reads under way at the same time, watches aside. A list page may hold tens of megabytes.
const MAX_READS: usize = 8;
/// An admission webhook may take 30 s (`timeoutSeconds` allows no more); past this the answer is
/// not coming, and whether the request was done is not known.
const TIMEOUT: Duration = Duration::from_secs(40);
/// One object is at most some 3 MiB of JSON (see `lines.rs` for the worst case).
const MAX_OBJECT_BYTES: usize = crate::lines::MAX_LINE_BYTES;
/// A refusal is a short text.
const MAX_STATUS_BYTES: usize = 1 << 20;
/// The server answers a watch with its head at once.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot {request}: {failure}")]
pub struct RequestError {
    /// What was asked, such as `list /api/v1/pods`.
    pub request: String,
    /// What happened.
    pub failure: RequestFailure,
}

/// What happened to a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestFailure {
    /// The server refused it.
    #[error("the API server answered {0}")]
    Refused(Box<Status>),
    /// The server could not be reached, or the connection broke. A write may have been done.
    #[error("{0}")]
    Unreachable(String),
    /// No answer in this time. A write may have been done.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// The answer is larger than this many bytes.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
    /// It was not sent: no request can be made of what was asked.
    #[error("no request can be made of it: {0}")]
    NotMade(String),
    /// There is an answer, and it is not what was asked for.
    #[error("the answer is not understood: {0}")]
    NotUnderstood(String),
}

impl RequestError {
    /// The server's refusal, if it is one.
    pub fn status(&self) -> Option<&Status> {
        match &self.failure {
            RequestFailure::Refused(status) => Some(status),
            _ => None,
        }
    }

    /// When the server asks to be called again.
    pub fn retry_after(&self) -> Option<Duration> {
        self.status()?.retry_after
    }

    /// The HTTP code of the server's refusal; 0 if it did not answer.
    pub(crate) fn code(&self) -> u16 {
        self.status().map_or(0, |status| status.code)
    }
}

/// A request. Its path is whole, query included.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) verb: Verb,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) accept: &'static str,
    pub(crate) content_type: Option<&'static str>,
    pub(crate) if_none_match: Option<String>,
    pub(crate) body: Bytes,
    /// Whom it is made as; `None`: ourselves.
    pub(crate) acts_as: Option<Arc<Account>>,
    pub(crate) timeout: Duration,
    pub(crate) limit: usize,
}

impl Call {
    /// A read.
    pub(crate) fn get(verb: Verb, path: String) -> Self {
        Self {
            verb,
            method: Method::GET,
            path,
            accept: "application/json",
            content_type: None,
            if_none_match: None,
            body: Bytes::new(),
            acts_as: None,
            timeout: TIMEOUT,
            limit: MAX_OBJECT_BYTES,
        }
    }

    /// A request with a body.
    pub(crate) fn send(
        verb: Verb,
        method: Method,
        path: String,
        kind: &'static str,
        body: Bytes,
    ) -> Self {
        Self { method, content_type: Some(kind), body, ..Self::get(verb, path) }
    }

    fn describe(&self) -> String {
        let path = self.path.split('?').next().unwrap_or_default();
        let verb = match self.verb {
            Verb::Get | Verb::Discovery | Verb::Schema => "read",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Rehearse => "rehearse",
            Verb::Create => "create",
            Verb::Apply | Verb::ApplyStatus => "apply",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
        };
        format!("{verb} {path}")
    }
}

/// What the server answered: a success, or 304 where that was asked for.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) etag: Option<String>,
    pub(crate) body: Bytes,
}

/// The body of an answer that does not end: pieces as they arrive.
pub(crate) struct Chunks {
    request: String,
    body: Body,
}

impl Chunks {
    /// The next piece; `None` when the server has ended it.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, RequestError> {
        loop {
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            let frame = frame.map_err(|error| unreachable(&self.request, &error))?;
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
    }
}

/// A connection to one API server. Clones share it.
#[derive(Clone)]
pub struct ApiServer {
    inner: Arc<Inner>,
}

struct Inner {
    client: kube::Client,
    address: String,
    /// The credentials impersonate somebody already.
    impersonates: bool,
    counts: Counters,
    reads: Semaphore,
    writes: Semaphore,
}

impl fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiServer({})", self.inner.address)
    }
}

impl ApiServer {
    pub(crate) fn new(client: kube::Client, address: String, impersonates: bool) -> Self {
        let inner = Inner {
            client,
            address,
            impersonates,
            counts: Counters::default(),
            reads: Semaphore::new(MAX_READS),
            writes: Semaphore::new(MAX_WRITES),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The server's address, such as `https://127.0.0.1:6443`.
    pub fn address(&self) -> &str {
        &self.inner.address
    }

    /// The namespace that the kubeconfig's context, or the Pod, is in.
    pub fn default_namespace(&self) -> &str {
        self.inner.client.default_namespace()
    }

    /// Requests sent so far.
    pub fn requests(&self) -> RequestCounts {
        self.inner.counts.now()
    }

    /// The server's version, such as `v1.37.2`: the cheapest way to see whether it answers and
    /// lets us in.
    ///
    /// # Errors
    /// It does not.
    pub async fn version(&self) -> Result<String, RequestError> {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Version {
            git_version: String,
        }
        let answer = self.call(Call::get(Verb::Discovery, "/version".into())).await?;
        let version: Version = serde_json::from_slice(&answer.body).map_err(|_| RequestError {
            request: "read /version".into(),
            failure: RequestFailure::NotUnderstood("it is no Kubernetes version".into()),
        })?;
        Ok(version.git_version)
    }

    /// Sends a request and reads its answer whole.
    pub(crate) async fn call(&self, call: Call) -> Result<Answer, RequestError> {
        let request = call.describe();
        let gate = match call.verb {
            Verb::Get | Verb::List | Verb::Watch | Verb::Discovery | Verb::Schema => {
                &self.inner.reads
            }
            _ => &self.inner.writes,
        };
        // The semaphores are never closed; if one were, going on without it is right.
        let _permit = gate.acquire().await;
        let (timeout, limit) = (call.timeout, call.limit);
        let whole = async {
            let answer = self.send(call, &request).await?;
            let (parts, body) = answer.into_parts();
            let code = parts.status.as_u16();
            let ok = parts.status.is_success() || code == 304;
            let limit = if ok { limit } else { MAX_STATUS_BYTES };
            let body = collect(body, limit, &request).await?;
            if !ok {
                return Err(refused(&request, code, &parts.headers, &body));
            }
            for warning in parts.headers.get_all(WARNING) {
                tracing::debug!(request, warning = ?warning, "the API server warns");
            }
            let etag = parts.headers.get(ETAG).and_then(|it| it.to_str().ok()).map(str::to_owned);
            // The server ends an answer with a line feed, and an event in a watch has none.
            let body = body.slice(..body.trim_ascii_end().len());
            Ok(Answer { code, etag, body })
        };
        tokio::time::timeout(timeout, whole).await.unwrap_or_else(|_| {
            Err(RequestError {
                request: request.clone(),
                failure: RequestFailure::Timeout(timeout),
            })
        })
    }

    /// Sends a request whose answer does not end, and returns once it has begun.
    pub(crate) async fn open(&self, call: Call) -> Result<Chunks, RequestError> {
        let request = call.describe();
        let head = async {
            let (parts, body) = self.send(call, &request).await?.into_parts();
            if parts.status.is_success() {
                return Ok(body);
            }
            let body = collect(body, MAX_STATUS_BYTES, &request).await?;
            Err(refused(&request, parts.status.as_u16(), &parts.headers, &body))
        };
        match tokio::time::timeout(OPEN_TIMEOUT, head).await {
            Ok(body) => Ok(Chunks { body: body?, request }),
            Err(_) => Err(RequestError { request, failure: RequestFailure::Timeout(OPEN_TIMEOUT) }),
        }
    }

    async fn send(&self, call: Call, request: &str) -> Result<Response<Body>, RequestError> {
        self.inner.counts.add(call.verb);
        let mut builder = Request::builder()
            .method(call.method)
            .uri(call.path)
            .header(ACCEPT, call.accept)
            // Servers from 1.37 on compress watches one gzip member an event.
            .header(ACCEPT_ENCODING, "identity");
        if let Some(kind) = call.content_type {
            builder = builder.header(CONTENT_TYPE, kind);
        }
        if let Some(account) = &call.acts_as {
            let headers = impersonate::headers(account, self.inner.impersonates);
            for (name, value) in headers.map_err(|why| not_made(request, &why))? {
                builder = builder.header(name, value);
            }
        }
        if let Some(etag) = call.if_none_match {
            builder = builder.header(IF_NONE_MATCH, etag);
        }
        let message = builder.body(Body::from(call.body));
        let message = message.map_err(|error| not_made(request, &error.to_string()))?;
        self.inner.client.send(message).await.map_err(|error| unreachable(request, &error))
    }
}

fn not_made(request: &str, why: &str) -> RequestError {
    RequestError { request: request.to_owned(), failure: RequestFailure::NotMade(why.to_owned()) }
}

async fn collect(mut body: Body, limit: usize, request: &str) -> Result<Bytes, RequestError> {
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| unreachable(request, &error))?;
        let Ok(data) = frame.into_data() else { continue };
        if all.len() + data.len() > limit {
            return Err(RequestError {
                request: request.to_owned(),
                failure: RequestFailure::TooLarge(limit),
            });
        }
        all.extend_from_slice(&data);
    }
    Ok(all.freeze())
}

fn refused(request: &str, code: u16, headers: &HeaderMap, body: &[u8]) -> RequestError {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    // The other form of the header, a date, is not used by the API server.
    let retry_after =
        text(RETRY_AFTER).and_then(|value| value.trim().parse().ok()).map(Duration::from_secs);
    let content_type = text(CONTENT_TYPE).unwrap_or_default();
    let status = Status::from_answer(code, retry_after, content_type, body);
    RequestError { request: request.to_owned(), failure: RequestFailure::Refused(Box::new(status)) }
}

/// An error of the connection with its causes: none of them holds a body.
fn unreachable(request: &str, error: &kube::Error) -> RequestError {
    RequestError {
        request: request.to_owned(),
        failure: RequestFailure::Unreachable(crate::connect::with_causes(error)),
    }
}
