//! Frames of a watch and pages of a list, from the bytes of a connection to what is known.

use crate::draw::Draw;
use std::sync::Arc;
use trimtab_core::identity::Gvk;
use trimtab_core::object::Live;
use trimtab_wire::decode::{Undecodable, WatchLine, gvk_of, meta, owners, page, watch_line};
use trimtab_wire::entry::{Entry, Sight};
use trimtab_wire::lines::{Line, Lines};
use trimtab_wire::status::Status;
use trimtab_wire::version;

/// Longest line here: as a watch's limit, and within reach of an input.
const LINE_BYTES: usize = 4096;

/// The first byte cuts the rest into chunks. Lines do not depend on the cut; an object keeps its
/// bytes; reasons quote nothing; and what is known of an object never goes back in time.
pub fn watch(data: &[u8]) {
    let mut draw = Draw::new(data);
    let chunk = usize::from(draw.byte()).max(1);
    let body = draw.rest();
    let lines = split(body, chunk);
    assert_eq!(lines, split(body, body.len().max(1)), "lines depend on the cut");
    let mut known = Known { entry: Entry::new(0), lists: 0, gone: None };
    for line in lines {
        let Line::Whole(line) = line else { continue };
        assert!(line.len() <= LINE_BYTES && !line.contains(&b'\n'));
        match watch_line(&line) {
            Ok(WatchLine::Seen(object)) => known.seen(object),
            Ok(WatchLine::Deleted(object)) => known.deleted(object),
            Ok(WatchLine::Bookmark(version)) => known.list_ended(&version),
            Ok(WatchLine::Error(_) | WatchLine::Other(_)) => {}
            Err(reason) => quotes_nothing(&reason),
        }
        listed(&line, &mut known);
    }
    let _ = Status::parse(body);
}

fn split(body: &[u8], chunk: usize) -> Vec<Line> {
    let (mut lines, mut found) = (Lines::new(LINE_BYTES), Vec::new());
    for piece in body.chunks(chunk) {
        lines.push(piece);
        found.extend(std::iter::from_fn(|| lines.next_line()));
    }
    found
}

/// The same line as a page of a list.
fn listed(body: &[u8], known: &mut Known) {
    match page(body) {
        Ok(page) => {
            known.lists += 1;
            for item in &page.items {
                let Some(sight) = sight(item.get().as_bytes()) else { continue };
                let before = known.entry.clone();
                known.entry.listed(sight, known.lists);
                known.check(&before);
            }
        }
        Err(reason) => quotes_nothing(&reason),
    }
}

/// An object, if its head can be read; it keeps its bytes, or gets back what a list leaves out.
fn sight(object: &[u8]) -> Option<Sight> {
    let gvk = Gvk::from_api_version("apps/v1", "Deployment");
    let _ = owners(object);
    match meta(object) {
        Ok(seen) => {
            assert!(!seen.name.is_empty() && !seen.uid.is_empty());
            let live = seen.live(&gvk, object);
            let whole: serde_json::Value =
                serde_json::from_slice(&live.json).expect("an object is JSON");
            assert_eq!(whole["metadata"]["name"], *seen.name);
            if let Some(stated) = gvk_of(object) {
                assert_eq!((&*live.json, gvk_of(&live.json)), (object, Some(stated)));
            }
            Some(Sight::Object(live))
        }
        Err(Undecodable { name, reason }) => {
            quotes_nothing(&reason);
            name.map(|_| Sight::Undecodable(reason.into()))
        }
    }
}

/// One object, and what was said of it.
struct Known {
    entry: Entry,
    lists: u64,
    /// The UID that the watch said is gone, while nothing else has been seen since.
    gone: Option<Arc<str>>,
}

impl Known {
    fn seen(&mut self, object: &[u8]) {
        let Some(sight) = sight(object) else { return };
        let uid = match &sight {
            Sight::Object(object) => Some(object.uid.clone()),
            Sight::Undecodable(_) => None,
        };
        let before = self.entry.clone();
        self.entry.event(sight);
        let back = uid.is_some() && uid == self.gone && self.entry.object().is_some();
        assert!(!back, "a deleted object came back");
        self.check(&before);
    }

    fn deleted(&mut self, object: &[u8]) {
        let Ok(seen) = meta(object) else { return };
        let (uid, at): (Arc<str>, Arc<str>) = ((*seen.uid).into(), (*seen.resource_version).into());
        let before = self.entry.clone();
        if self.entry.deleted(&uid, &at, self.lists) {
            assert!(matches!(self.entry.live(), Live::Absent));
        }
        self.check(&before);
        self.gone = matches!(self.entry.live(), Live::Absent).then_some(uid);
    }

    fn list_ended(&mut self, version: &str) {
        let before = self.entry.clone();
        self.entry.list_ended(self.lists, &version.into());
        self.check(&before);
    }

    /// Time goes forward.
    fn check(&mut self, before: &Entry) {
        if let (Some(was), Some(is)) = (before.at(), self.entry.at()) {
            assert!(!version::is_older(is, was), "from {was} back to {is}");
        }
        if self.entry.object().is_some() {
            self.gone = None;
        }
    }
}

/// A reason goes to logs and findings: it says what and where, and nothing of the content.
fn quotes_nothing(reason: &str) {
    let known = [
        "it ends too early (",
        "it is not JSON (",
        "a field has another type",
        "it has no metadata.",
    ];
    assert!(known.iter().any(|start| reason.starts_with(start)), "{reason}");
    assert!(reason.len() < 100, "{reason}");
}
