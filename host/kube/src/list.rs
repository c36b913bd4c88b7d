//! One list of one kind, page by page, into its view.
//!
//! Takes a kind and a scope. Gives the version from which to watch. Asks for the most recent state
//! (no resourceVersion), never for whatever a cache has: deletions are concluded from it, and only
//! when its last page has been read.

use crate::address::{collection, encoded};
use crate::counts::Verb;
use crate::decode;
use crate::discovery::ApiKind;
use crate::request::{ApiServer, Call, RequestError, RequestFailure};
use crate::version;
use crate::view::{Scope, View};
use std::sync::Arc;
use std::time::Duration;

/// Objects a page: what client-go and kube ask for. Some 2 MB of common objects.
const PAGE: u32 = 500;
/// The largest page that is read, in bytes; a larger one is asked for again with half the objects.
const MAX_PAGE_BYTES: usize = 64 << 20;
/// A page of large objects through a slow server.
const PAGE_TIMEOUT: Duration = Duration::from_secs(60);
/// How often a list begins anew because its continue token had expired, before it asks for all
/// pages at once.
const MAX_RESTARTS: u32 = 3;

/// Lists. `position` is the newest version that was seen of this scope before.
///
/// # Errors
/// A page could not be read: nothing is concluded from the pages before it.
pub(crate) async fn list(
    server: &ApiServer,
    view: &View,
    kind: &ApiKind,
    scope: &Scope,
    position: Option<&Arc<str>>,
) -> Result<Arc<str>, RequestError> {
    let mut size = PAGE;
    for restart in 0.. {
        if restart == MAX_RESTARTS {
            // One page with everything cannot expire between two pages.
            size = 0;
        }
        match list_once(server, view, kind, scope, position, &mut size).await {
            Ok(Some(version)) => return Ok(version),
            Ok(None) => tracing::debug!(kind = %view.gvk, "a continue token expired; listing anew"),
            Err(error) => {
                view.list_failed(scope);
                return Err(error);
            }
        }
    }
    unreachable!("a list of one page does not expire")
}

/// `None`: a continue token expired.
async fn list_once(
    server: &ApiServer,
    view: &View,
    kind: &ApiKind,
    scope: &Scope,
    position: Option<&Arc<str>>,
    size: &mut u32,
) -> Result<Option<Arc<str>>, RequestError> {
    let number = view.list_begins(scope);
    let path = collection(kind, scope.as_deref());
    let mut token = String::new();
    let mut version: Option<Arc<str>> = None;
    let mut unsure = false;
    loop {
        let mut call = Call::get(Verb::List, page_path(&path, *size, &token));
        call.limit = MAX_PAGE_BYTES;
        call.timeout = PAGE_TIMEOUT;
        let answer = match server.call(call).await {
            Ok(answer) => answer,
            Err(error) => match &error.failure {
                RequestFailure::Refused(status) if status.is_expired() && !token.is_empty() => {
                    return Ok(None);
                }
                RequestFailure::TooLarge(_) if *size > 1 => {
                    *size /= 2;
                    continue;
                }
                _ => return Err(error),
            },
        };
        let page = decode::page(&answer.body).map_err(|reason| RequestError {
            request: format!("list {path}"),
            failure: RequestFailure::NotUnderstood(reason),
        })?;
        if version.is_none() {
            let first: Arc<str> = (*page.resource_version).into();
            if position.is_some_and(|seen| version::is_older(&first, seen)) {
                tracing::error!(kind = %view.gvk, seen = ?position, now = %first, "the cluster went back to an earlier state: was etcd restored from a backup?");
                view.forget_versions();
            }
            version = Some(first);
        }
        for item in &page.items {
            unsure |= !view.listed(item.get().as_bytes(), scope, number);
        }
        if page.next.is_empty() {
            break;
        }
        token = page.next.into_owned();
    }
    let version = version.unwrap_or_default();
    view.list_ends(scope, number, &version, unsure);
    Ok(Some(version))
}

fn page_path(collection: &str, size: u32, token: &str) -> String {
    let mut path = format!("{collection}?limit={size}");
    if !token.is_empty() {
        path.push_str("&continue=");
        path.push_str(&encoded(token));
    }
    path
}
