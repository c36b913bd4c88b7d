//! The loop of one kind: find out how it is served, list it, watch it, for ever.
//!
//! One task a kind, shared by everybody. Trouble of one kind is its own: each has its own pauses.
//! What ends a watch decides what follows:
//!
//! | what happened | what follows |
//! | --- | --- |
//! | the server closed it, silence, a broken connection | watch again from the last version |
//! | 410 in any form, events out of order, time for a relist | list, compare, watch |
//! | list forbidden | its objects are unknown; one namespace each, if some are configured |
//! | 404 on the list | the kind is no longer served: unknown, and wait for discovery |
//! | anything else | keep what is known, say that it is broken, try again with growing pauses |

use crate::backoff::{Backoff, jittered};
use crate::discovery::{ApiKind, Lookup};
use crate::list::list;
use crate::request::RequestError;
use crate::store::Shared;
use crate::view::{Scope, View};
use crate::watch::{End, watch};
use futures::stream::{FuturesUnordered, StreamExt as _};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// A watch that lived this long was healthy: the next pause is a short one again. A server that
/// answers each watch with 410 at once does not get one list after the other.
const HEALTHY_AFTER: Duration = Duration::from_secs(5);
/// How often a forbidden list is tried again: RBAC may have been granted meanwhile, and until then
/// nothing of this kind can be done.
const FORBIDDEN_PAUSE: Duration = Duration::from_secs(15);

/// Why a feed ended.
enum Gone {
    /// The kind is not served any more.
    NotServed(Arc<str>),
    /// It may not be listed in the whole cluster, and there are namespaces to try.
    NamespacesOnly,
}

/// Keeps a view current until the task is aborted.
pub(crate) async fn keep(shared: Arc<Shared>, view: Arc<View>) {
    let mut scopes = BTreeSet::from([None]);
    let mut backoff = Backoff::default();
    loop {
        let kind = served(&shared, &view, &scopes).await;
        let begun = Instant::now();
        let mut feeds: FuturesUnordered<_> =
            scopes.iter().map(|scope| feed(&shared, &view, &kind, scope.clone())).collect();
        // The first end ends all: they are of one kind.
        let Some(gone) = feeds.next().await else { return };
        drop(feeds);
        match gone {
            Gone::NamespacesOnly => {
                scopes =
                    shared.options.namespaces.iter().map(|it| Some(it.as_str().into())).collect();
                // A cluster-scoped kind has no namespaces to try; `feed` never says so of one.
                view.set_scopes(&scopes);
            }
            Gone::NotServed(reason) => {
                scopes.iter().for_each(|scope| view.set_unknown(scope, &reason));
                shared.ask_discovery();
                if begun.elapsed() >= HEALTHY_AFTER {
                    backoff.reset();
                }
                sleep(backoff.next(None)).await;
            }
        }
    }
}

/// Waits until discovery knows the kind; until then its objects are unknown.
async fn served(shared: &Shared, view: &View, scopes: &BTreeSet<Scope>) -> ApiKind {
    let mut kinds = shared.kinds.subscribe();
    let mut waiting = None;
    loop {
        let reason = match kinds.borrow_and_update().as_deref().map(|it| it.lookup(&view.gvk)) {
            Some(Lookup::Found(kind)) if !kind.has_verb("list") || !kind.has_verb("watch") => {
                format!("the API server does not offer list and watch for {}", view.gvk)
            }
            Some(Lookup::Found(kind)) => return kind.clone(),
            Some(Lookup::NotServed) => format!("the API server does not serve {}", view.gvk),
            Some(Lookup::Unknown(reason)) => reason.to_owned(),
            None => "discovery has not been read yet".to_owned(),
        };
        scopes.iter().for_each(|scope| view.set_unknown(scope, &reason.as_str().into()));
        waiting.get_or_insert_with(|| shared.wait_for_kind());
        // The sender lives in `shared`, so this ends only with news.
        if kinds.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Lists and watches one scope until the kind is gone.
async fn feed(shared: &Shared, view: &View, kind: &ApiKind, scope: Scope) -> Gone {
    let mut backoff = Backoff::default();
    let mut relist = view.relist.subscribe();
    let mut position: Option<Arc<str>> = None;
    loop {
        relist.mark_unchanged();
        match list(&shared.server, view, kind, &scope, position.as_ref()).await {
            Ok(version) => position = Some(version),
            Err(error) if error.code() == 403 => {
                if scope.is_none() && kind.namespaced && !shared.options.namespaces.is_empty() {
                    return Gone::NamespacesOnly;
                }
                view.set_unknown(&scope, &forbidden(kind, &scope, &error).into());
                sleep(jittered(FORBIDDEN_PAUSE)).await;
                continue;
            }
            Err(error) if error.code() == 404 => {
                return Gone::NotServed(format!("{} is no longer served", view.gvk).into());
            }
            Err(error) => {
                view.set_broken(&scope, &error.to_string().into());
                sleep(backoff.next(error.retry_after())).await;
                continue;
            }
        }
        let until = Instant::now() + jittered(shared.options.relist_every);
        let at = position.get_or_insert_default();
        follow(shared, view, kind, &scope, at, until, &mut relist, &mut backoff).await;
    }
}

/// Watches, one watch after the other, until a list is needed.
#[expect(clippy::too_many_arguments, reason = "the state of one feed, and it has one caller")]
async fn follow(
    shared: &Shared,
    view: &View,
    kind: &ApiKind,
    scope: &Scope,
    position: &mut Arc<str>,
    until: Instant,
    relist: &mut tokio::sync::watch::Receiver<u64>,
    backoff: &mut Backoff,
) {
    loop {
        let opened = Instant::now();
        let end = watch(&shared.server, view, kind, scope, position, until, relist).await;
        if opened.elapsed() >= HEALTHY_AFTER {
            backoff.reset();
        }
        match end {
            End::Closed if opened.elapsed() >= HEALTHY_AFTER => {}
            End::Closed => sleep(backoff.next(None)).await,
            // Asked for, and bounded: by the caller's clock, or by whoever asks.
            End::Relist if opened.elapsed() >= HEALTHY_AFTER => return,
            End::Relist | End::Expired => {
                sleep(backoff.next(None)).await;
                return;
            }
            End::Failed(error) => {
                let reason = if error.code() == 403 {
                    forbidden(kind, scope, &error)
                } else {
                    error.to_string()
                };
                view.set_broken(scope, &reason.into());
                sleep(backoff.next(error.retry_after())).await;
                // Who may list but not watch still learns something, if late; and a server that
                // does not serve the kind any more says so to the list.
                if matches!(error.code(), 403 | 404) {
                    return;
                }
            }
        }
    }
}

/// A forbidden list or watch, with the rule that is missing.
fn forbidden(kind: &ApiKind, scope: &Scope, error: &RequestError) -> String {
    let place = scope.as_ref().map_or_else(String::new, |it| format!(" in namespace {it}"));
    format!(
        "{error}; to watch it{place}, RBAC has to allow: apiGroups: [\"{}\"], resources: [\"{}\"], verbs: [get, list, watch]",
        kind.gvk.group, kind.plural
    )
}

#[cfg(test)]
#[path = "feed_tests.rs"]
mod tests;
