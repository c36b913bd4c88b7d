//! One watch of one kind, from a version on, into its view.
//!
//! Takes a version and moves it forward with every event and bookmark, so that the next watch goes
//! on where this one ended. Gives the reason why it ended. Decodes each event by itself.

use crate::address::{collection, encoded};
use crate::counts::Verb;
use crate::decode::{WatchLine, watch_line};
use crate::discovery::ApiKind;
use crate::lines::{Line, Lines, MAX_LINE_BYTES};
use crate::request::{ApiServer, Call, RequestError, RequestFailure};
use crate::version;
use crate::view::{Scope, View};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// The server ends a watch after this; less than the 300 s that many load balancers allow.
const SERVER_TIMEOUT_SECONDS: u32 = 290;
/// A watch that was silent this long is opened anew: a connection whose other end is gone sends
/// nothing, and would look healthy for ever. The server sends a bookmark about once a minute where
/// something happens; a kind in which nothing does costs one request in this time.
const SILENCE: Duration = Duration::from_secs(130);

/// Why a watch ended.
#[derive(Debug)]
pub(crate) enum End {
    /// The server ended it, or it was silent, or the connection broke: go on from the position.
    Closed,
    /// It is time to list, or something arrived that only a list can put right.
    Relist,
    /// The position is too old: list.
    Expired,
    /// It could not be opened, or the server reported an error in it.
    Failed(RequestError),
}

/// Watches until something ends it.
pub(crate) async fn watch(
    server: &ApiServer,
    view: &View,
    kind: &ApiKind,
    scope: &Scope,
    position: &mut Arc<str>,
    until: tokio::time::Instant,
    relist: &mut watch::Receiver<u64>,
) -> End {
    let path = format!(
        "{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={SERVER_TIMEOUT_SECONDS}&resourceVersion={}",
        collection(kind, scope.as_deref()),
        encoded(position)
    );
    let mut chunks = match server.open(Call::get(Verb::Watch, path)).await {
        Ok(chunks) => chunks,
        Err(error) if error.status().is_some_and(|status| status.is_expired()) => {
            return End::Expired;
        }
        Err(error) => return End::Failed(error),
    };
    view.set_working(scope);
    let mut lines = Lines::new(MAX_LINE_BYTES);
    loop {
        let chunk = tokio::select! {
            () = tokio::time::sleep_until(until) => return End::Relist,
            changed = relist.changed() => {
                // The view, which holds the sender, outlives this function.
                debug_assert!(changed.is_ok());
                return End::Relist;
            }
            chunk = tokio::time::timeout(SILENCE, chunks.next()) => chunk,
        };
        match chunk {
            Ok(Ok(Some(bytes))) => lines.push(&bytes),
            Ok(Ok(None)) => return End::Closed,
            Ok(Err(error)) => {
                tracing::debug!(kind = %view.gvk, %error, "a watch broke off; going on from where it was");
                return End::Closed;
            }
            Err(_silent) => {
                tracing::debug!(kind = %view.gvk, "a watch was silent for {SILENCE:?}; opening it anew");
                return End::Closed;
            }
        }
        let received = Instant::now();
        while let Some(line) = lines.next_line() {
            if let Some(end) = take(view, line, received, position) {
                return end;
            }
        }
    }
}

/// Takes one line. Gives an end if the watch cannot go on after it.
fn take(view: &View, line: Line, received: Instant, position: &mut Arc<str>) -> Option<End> {
    let Line::Whole(line) = line else {
        view.saw_garbage("an event is longer than an object can be");
        return Some(End::Relist);
    };
    let event = match watch_line(&line) {
        Ok(event) => event,
        Err(reason) => {
            view.saw_garbage(&format!("a watch line is no event: {reason}"));
            return Some(End::Relist);
        }
    };
    let at = match event {
        WatchLine::Seen(object) => view.saw(object, received),
        WatchLine::Deleted(object) => view.saw_deleted(object, received),
        WatchLine::Bookmark(version) => Some((*version).into()),
        WatchLine::Error(status) if status.is_expired() => return Some(End::Expired),
        WatchLine::Error(status) => {
            return Some(End::Failed(RequestError {
                request: format!("watch {}", view.gvk),
                failure: RequestFailure::Refused(Box::new(status)),
            }));
        }
        WatchLine::Other(kind) => {
            view.saw_garbage(&format!(
                "a watch event has the unknown type {}",
                kind.escape_debug()
            ));
            return Some(End::Relist);
        }
    };
    let at = at?;
    if version::is_older(&at, position) {
        // Events of one kind come in order; if they do not, something was missed or mixed up.
        tracing::warn!(kind = %view.gvk, position = %position, event = %at, "a watch went backwards; listing anew");
        return Some(End::Relist);
    }
    if !at.is_empty() {
        *position = at;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{Event, Queue};
    use bytes::Bytes;
    use std::collections::HashSet;
    use trimtab_core::identity::{GroupKind, Gvk, ObjectKey};

    fn pod(version: u32) -> String {
        format!(
            r#"{{"metadata":{{"name":"a","namespace":"s","uid":"u","resourceVersion":"{version}"}}}}"#
        )
    }

    /// Feeds lines to a synced view in which pod s/a is of interest; shows how it ended, where it
    /// stands, and how many events there were.
    fn check(lines: &[String], expect: (&str, &str, usize)) {
        let (queue, mut events) = Queue::new();
        let view = View::new(Gvk::from_api_version("v1", "Pod"), queue);
        let pod = ObjectKey::new(GroupKind::new("", "Pod"), "s", "a");
        view.set_interest(&HashSet::from([pod]), &HashSet::new());
        let number = view.list_begins(&None);
        view.list_ends(&None, number, &"10".into(), false);
        let mut position: Arc<str> = "10".into();
        let mut end = "open";
        let mut changes = 0;
        for line in lines {
            let line = Line::Whole(Bytes::from(line.clone()));
            match take(&view, line, Instant::now(), &mut position) {
                None => {}
                Some(End::Closed) => end = "closed",
                Some(End::Relist) => end = "relist",
                Some(End::Expired) => end = "expired",
                Some(End::Failed(_)) => end = "failed",
            }
            while let Some(event) = events.try_next() {
                changes += usize::from(matches!(event, Event::Changed(..)));
            }
        }
        assert_eq!((end, &*position, changes), expect);
    }

    fn event(kind: &str, object: &str) -> String {
        format!(r#"{{"type":"{kind}","object":{object}}}"#)
    }

    #[test]
    fn events_and_bookmarks_move_the_position() {
        let bookmark = event("BOOKMARK", r#"{"metadata":{"resourceVersion":"40"}}"#);
        check(&[event("ADDED", &pod(11)), bookmark], ("open", "40", 1));
    }

    #[test]
    fn an_event_that_comes_twice_is_news_once() {
        check(&[event("ADDED", &pod(11)), event("ADDED", &pod(11))], ("open", "11", 1));
    }

    #[test]
    fn events_out_of_order_ask_for_a_list() {
        check(&[event("ADDED", &pod(12)), event("MODIFIED", &pod(11))], ("relist", "12", 1));
        let bookmark = event("BOOKMARK", r#"{"metadata":{"resourceVersion":"40"}}"#);
        check(&[bookmark, event("ADDED", &pod(30))], ("relist", "40", 1));
    }

    #[test]
    fn an_expired_version_and_another_error_are_told_apart() {
        let status = |code: u16| format!(r#"{{"kind":"Status","code":{code},"message":"m"}}"#);
        check(&[event("ERROR", &status(410))], ("expired", "10", 0));
        check(&[event("ERROR", &status(500))], ("failed", "10", 0));
    }

    #[test]
    fn an_object_that_does_not_decode_stops_no_other() {
        let poison = r#"{"metadata":{"name":"p","namespace":"s","uid":7,"resourceVersion":"11"}}"#;
        check(&[event("ADDED", poison), event("ADDED", &pod(12))], ("open", "12", 1));
        check(&["{garbage".into()], ("relist", "10", 0));
    }
}
