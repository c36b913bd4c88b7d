//! What the API server's refusals mean to a pass.
//!
//! Takes a failed write (or rehearsal) and what it was for. Gives [`ApplyError`], whose variants
//! are what the pass branches on. Verified against kube-apiserver 1.37 by `tests/real_server.rs`;
//! the answers in the tests below were recorded there.

use crate::discovery::ApiKind;
use crate::request::{RequestError, RequestFailure};
use crate::status::{Cause, Status};
use trimtab_core::identity::ObjectKey;
use trimtab_core::ports::{ApplyError, OwnedField};

/// The longest text of a refusal that goes into records, in characters: the longest real ones name
/// a few dozen invalid fields.
const MAX_MESSAGE_CHARS: usize = 2000;

/// What the server says where an admission webhook has side effects that it does not suppress.
const NO_DRY_RUN: &str = "does not support dry run";
/// What the server says of a version of a custom resource that it does not serve any more.
const INVALID_VERSION: &str = "request to convert CR to an invalid group/version: ";

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// A new object.
    Create,
    /// Server-side apply, dry or not.
    Apply,
    /// Server-side apply of the status.
    ApplyStatus,
    /// JSON Patch.
    Patch,
    /// Delete.
    Delete,
}

/// What this failure means.
pub(crate) fn meaning(
    error: RequestError,
    asked: Asked,
    kind: &ApiKind,
    key: &ObjectKey,
) -> ApplyError {
    match &error.failure {
        RequestFailure::Refused(status) => refused(status, asked, kind, key),
        _ => ApplyError::Unavailable { message: error.to_string(), retry_after: None },
    }
}

fn refused(status: &Status, asked: Asked, kind: &ApiKind, key: &ObjectKey) -> ApplyError {
    let message = || shortened(&status.message);
    let unavailable = || ApplyError::Unavailable {
        message: shortened(&format!("the API server answered {status}")),
        retry_after: status.retry_after,
    };
    if let Some(api_version) = unserved(&status.message) {
        return ApplyError::ManagedInUnserved {
            message: message(),
            api_version: Some(api_version),
        };
    }
    match status.code {
        409 if status.has_cause("FieldManagerConflict") => {
            ApplyError::Conflict(status.causes.iter().filter_map(owned_field).collect())
        }
        // Admission of a Pod updates its namespace's quota, and may lose a race there.
        409 if status.kind == "resourcequotas" && &*kind.plural != "resourcequotas" => {
            unavailable()
        }
        409 => ApplyError::Stale(message()),
        404 if status.kind == "namespaces" && !kind.is_namespace() => {
            ApplyError::NotYet(format!("namespace {} does not exist", status.name))
        }
        404 if *status.name == *key.name => ApplyError::Stale("it is not there any more".into()),
        404 => ApplyError::NotYet(format!("the API server does not serve {}", kind.gvk)),
        403 => forbidden(status, asked, kind, key),
        // Our credentials: a token may be refreshed, so it is worth trying again.
        401 | 429 => unavailable(),
        422 if asked == Asked::Patch && patch_lost(status) => {
            ApplyError::Stale("the patch does not fit what is there now".into())
        }
        // A UID in content that is not the object's own.
        422 if status.causes.iter().any(|cause| cause.field == "metadata.uid") => {
            ApplyError::Stale("it has another UID now".into())
        }
        422 if !status.causes.is_empty() && status.causes.iter().all(is_immutable) => {
            let fields = status.causes.iter().map(|cause| cause.field.clone()).collect();
            ApplyError::Immutable { message: message(), fields }
        }
        400 if status.message.contains(NO_DRY_RUN) => ApplyError::NoDryRun(message()),
        // Server-side apply reports content that has another shape than the schema as its own fault.
        500 if is_shape(&status.message) => {
            ApplyError::Rejected(format!("{}{}", shape_word(&status.message), message()))
        }
        // And what managedFields remember in a version that has other fields.
        500 if is_old_version(&status.message) => {
            ApplyError::ManagedInUnserved { message: message(), api_version: None }
        }
        400..=499 => ApplyError::Rejected(message()),
        _ => unavailable(),
    }
}

/// 403 has three meanings: RBAC, something that goes away by itself, and admission's no.
fn forbidden(status: &Status, asked: Asked, kind: &ApiKind, key: &ObjectKey) -> ApplyError {
    let text = &shortened(&status.message);
    if status.has_cause("NamespaceTerminating") {
        return ApplyError::NotYet(format!("namespace {} is being deleted", key.namespace_str()));
    }
    if text.contains("error looking up service account") {
        return ApplyError::NotYet(text.clone());
    }
    if text.contains(" cannot impersonate ") {
        return ApplyError::Forbidden(format!(
            "{text}; the object's source acts as a ServiceAccount: let Trimtab impersonate it, by the rules that `trimtab rbac --config FILE` prints"
        ));
    }
    let escalation = text.contains("is attempting to grant RBAC permissions not currently held");
    // `User "x" cannot patch resource "pods" in API group "" in the namespace "y"`, whichever
    // authorizer said so; a policy's or a quota's no has no such sentence.
    let authorizer = text.contains("User \"") && text.contains("cannot ");
    if !escalation && !authorizer {
        return ApplyError::Rejected(text.clone());
    }
    if escalation {
        return ApplyError::Forbidden(format!(
            "{text}; grant Trimtab the same permissions, or `bind` and `escalate` on {}",
            kind.plural
        ));
    }
    let verbs = match asked {
        Asked::Create => "create",
        Asked::Apply => "create, patch",
        Asked::ApplyStatus | Asked::Patch => "patch",
        Asked::Delete => "delete",
    };
    let status_of = if asked == Asked::ApplyStatus { "/status" } else { "" };
    let place = match &key.namespace {
        Some(namespace) => format!("in namespace {namespace}"),
        None => "in the cluster".into(),
    };
    ApplyError::Forbidden(format!(
        "{text}; {place}, RBAC has to allow: apiGroups: [\"{}\"], resources: [\"{}{status_of}\"], verbs: [{verbs}]",
        kind.gvk.group, kind.plural
    ))
}

/// Whether a JSON Patch did not fit: a `test` failed, or a path is not there (any more). The server
/// says it with this sentence and nothing else; invalid results carry causes, and a patch that
/// cannot be read is 400.
fn patch_lost(status: &Status) -> bool {
    status.causes.is_empty()
        && status.name.is_empty()
        && status.message == "the server rejected our request due to an error in our request"
}

/// The text, cut where it quotes more than people read: some refusals hold a whole object.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((cut, _)) => format!("{}… ({} bytes in all)", &text[..cut], text.len()),
        None => text.to_owned(),
    }
}

/// Whether the detail says that a field cannot change once the object exists. The server has no
/// reason of its own for that: these are its sentences.
fn is_immutable(cause: &Cause) -> bool {
    [
        "field is immutable",
        "is immutable after creation",
        "may not change once set",
        "cannot change roleRef",
        "are forbidden",
        "may not change fields other than",
        "may not be changed in an update",
    ]
    .iter()
    .any(|sentence| cause.message.contains(sentence))
}

/// The version that managedFields name and the server cannot convert from. It says so of every
/// apply, whatever is applied, and of nothing else: what it stores it can read.
fn unserved(message: &str) -> Option<String> {
    let (_, rest) = message.split_once(INVALID_VERSION)?;
    rest.split_whitespace().next().map(str::to_owned)
}

/// Whether the text says that content does not have the shape that the schema asks for.
fn is_shape(text: &str) -> bool {
    text.contains("failed to create typed patch object")
        || text.contains("failed to convert new object")
}

/// The word for what is wrong with content's shape, where there is one.
fn shape_word(text: &str) -> &'static str {
    if text.contains("field not declared in schema") {
        "unknown_field: "
    } else if text.contains("duplicate entries for key") {
        "duplicate_list_key: "
    } else {
        ""
    }
}

/// Whether the server cannot read what managedFields remember of an object.
fn is_old_version(text: &str) -> bool {
    text.contains("field not declared in schema")
}

/// `conflict with "kubectl" with subresource "status" using apps/v1` at `.spec.replicas`.
fn owned_field(cause: &Cause) -> Option<OwnedField> {
    if cause.reason != "FieldManagerConflict" {
        return None;
    }
    let manager = cause.message.split_once("conflict with ").and_then(|(_, rest)| quoted(rest));
    Some(OwnedField {
        manager: manager.unwrap_or_else(|| cause.message.clone()),
        field: cause.field.clone(),
    })
}

/// The Go string (`%q`) at the beginning of the text.
fn quoted(text: &str) -> Option<String> {
    let mut characters = text.strip_prefix('"')?.chars();
    let mut out = String::new();
    loop {
        match characters.next()? {
            '"' => return Some(out),
            '\\' => out.push(characters.next()?),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
#[path = "refusal_tests.rs"]
mod tests;
