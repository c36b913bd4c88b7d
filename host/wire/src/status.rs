//! `metav1.Status`: how the API server says no.
//!
//! Takes the HTTP code, `Retry-After` and the body of an answer. Gives a [`Status`], also when the
//! body is something else (a proxy's page, an empty answer): then the text says only that.

use serde::Deserialize;
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// How much of a plain-text answer is quoted, in bytes: enough for `404 page not found` and for
/// the server's other one-line answers.
const MAX_QUOTED_TEXT: usize = 120;

/// A refusal by the API server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The HTTP status code.
    pub code: u16,
    /// CamelCase, such as `Conflict`; empty if the server gave none.
    pub reason: String,
    /// For people. May quote the object that was sent.
    pub message: String,
    /// The name of what the refusal is about; empty if the server gave none.
    pub name: String,
    /// The plural (or kind) of what the refusal is about; empty if the server gave none.
    pub kind: String,
    /// The UID of what it is about: in the answer to a delete, of what was deleted.
    pub uid: String,
    /// Details, one a field or condition.
    pub causes: Vec<Cause>,
    /// When the server asks to be called again.
    pub retry_after: Option<Duration>,
}

/// One detail of a [`Status`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Cause {
    /// CamelCase, such as `FieldManagerConflict`.
    pub reason: String,
    /// For people.
    pub message: String,
    /// The field, in the server's spelling, such as `.spec.replicas`.
    pub field: String,
}

impl fmt::Display for Status {
    /// `403 Forbidden: pods is forbidden: …`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        if !self.reason.is_empty() {
            write!(f, " {}", self.reason)?;
        }
        write!(f, ": {}", self.message)
    }
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    kind: Option<Cow<'a, str>>,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    details: Option<Details>,
    #[serde(default)]
    code: Option<u16>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    name: String,
    kind: String,
    uid: String,
    causes: Vec<Cause>,
    retry_after_seconds: Option<u64>,
}

impl Status {
    /// From an answer. `retry_after` is the header's value, which wins over the body's.
    pub fn from_answer(
        code: u16,
        retry_after: Option<Duration>,
        content_type: &str,
        body: &[u8],
    ) -> Self {
        let mut status = Self::parse(body)
            .unwrap_or_else(|| Self { message: foreign(content_type, body), ..Self::default() });
        status.code = code;
        status.retry_after = retry_after.or(status.retry_after);
        status
    }

    /// From the JSON text of a `Status`; `None` if it is something else.
    pub fn parse(body: &[u8]) -> Option<Self> {
        let body: Body<'_> = serde_json::from_slice(body).ok()?;
        if body.kind.as_deref() != Some("Status") {
            return None;
        }
        let details = body.details.unwrap_or_default();
        Some(Self {
            code: body.code.unwrap_or_default(),
            reason: body.reason.unwrap_or_default(),
            message: body.message.unwrap_or_default(),
            name: details.name,
            kind: details.kind,
            uid: details.uid,
            causes: details.causes,
            retry_after: details.retry_after_seconds.map(Duration::from_secs),
        })
    }

    /// Whether some cause has this reason.
    pub fn has_cause(&self, reason: &str) -> bool {
        self.causes.iter().any(|cause| cause.reason == reason)
    }

    /// Whether it says that a resourceVersion or a continue token is too old.
    pub fn is_expired(&self) -> bool {
        self.code == 410 || self.reason == "Expired" || self.reason == "Gone"
    }
}

/// What is said of an answer that is no `Status`. Bodies of unknown shape are not quoted: they
/// may hold what the request held.
fn foreign(content_type: &str, body: &[u8]) -> String {
    match std::str::from_utf8(body) {
        Ok(text)
            if content_type.starts_with("text/plain")
                && !text.trim().is_empty()
                && text.len() <= MAX_QUOTED_TEXT =>
        {
            text.trim().escape_debug().to_string()
        }
        _ => format!("{} bytes that are no Kubernetes Status", body.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_with_its_details_and_the_header_wins() {
        let body = br#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",
            "message":"too many","reason":"TooManyRequests",
            "details":{"name":"a","kind":"pods","retryAfterSeconds":7,"causes":[{"field":".x"}]},"code":429}"#;
        let status = Status::from_answer(429, None, "application/json", body);
        assert_eq!(status.to_string(), "429 TooManyRequests: too many");
        assert_eq!(status.retry_after, Some(Duration::from_secs(7)));
        assert_eq!(status.causes[0].field, ".x");
        let header = Some(Duration::from_secs(2));
        let status = Status::from_answer(429, header, "application/json", body);
        assert_eq!(status.retry_after, header);
    }

    #[test]
    fn a_body_of_another_shape_is_not_quoted_unless_it_is_a_short_plain_line() {
        let quoted =
            Status::from_answer(404, None, "text/plain; charset=utf-8", b"404 page not found\n");
        assert_eq!(quoted.to_string(), "404: 404 page not found");
        let object = br#"{"kind":"Secret","data":{"password":"aHVudGVyMg=="}}"#;
        let hidden = Status::from_answer(502, None, "application/json", object);
        assert_eq!(hidden.to_string(), "502: 52 bytes that are no Kubernetes Status");
    }
}
