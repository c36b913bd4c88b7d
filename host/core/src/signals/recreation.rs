//! `unexpected-recreation`: an object is there under another UID than before, and no deletion of
//! ours came in between; or one object is made more often than anybody makes one.
//!
//! Whoever deletes an object and lets it be made anew has its finalizers, its history and its
//! owners gone, and a reconciler that makes it anew would hide that. So it is told whoever made it.

use super::bounded::Bounded;
use super::{Id, Name, Observation, Rings, Subject, id_of};
use crate::decision::Severity;
use crate::identity::ObjectKey;
use std::sync::Arc;

/// Objects of which the UID is remembered.
pub const OBJECTS_AT_MOST: usize = 65_536;
/// Objects of which creations are counted, and how many of each.
pub const COUNTED_AT_MOST: usize = 4096;
/// Creations of one object within [`WITHIN_MS`] that are nobody's ordinary work.
pub const TOO_MANY: usize = 4;
/// Ten minutes, in milliseconds.
pub const WITHIN_MS: u64 = 600_000;

/// Who made an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Maker {
    /// This host, to correct that it was gone.
    Us,
    /// Somebody else: the manager of its first entry in managedFields, empty if there is none.
    Others(String),
}

#[derive(Clone, Debug)]
struct Known {
    uid: Arc<str>,
    /// We deleted it ourselves since.
    deleted_by_us: bool,
}

/// What is remembered.
#[derive(Clone, Debug)]
pub struct Recreations {
    known: Bounded<Id, Known>,
    /// Creations, for whoever keeps them over a restart.
    pub made: Rings,
}

impl Default for Recreations {
    fn default() -> Self {
        Self {
            known: Bounded::new(OBJECTS_AT_MOST),
            made: Rings::new(COUNTED_AT_MOST, TOO_MANY, WITHIN_MS),
        }
    }
}

impl Recreations {
    /// Whether this UID is what is remembered: then [`Recreations::seen`] has nothing to say.
    pub fn is_known(&self, key: &ObjectKey, uid: &str) -> bool {
        self.known.get(&id_of(&[&key.to_string()])).is_some_and(|known| *known.uid == *uid)
    }

    /// Under this UID it was written last, by this host or one before: for where nothing is
    /// remembered yet.
    pub fn remember(&mut self, key: &ObjectKey, uid: &Arc<str>) {
        let id = id_of(&[&key.to_string()]);
        if self.known.get(&id).is_none() {
            self.known.set(id, Known { uid: uid.clone(), deleted_by_us: false });
        }
    }

    /// The object is there with this UID. `before`: the UID under which a host before this one
    /// wrote it last, where nothing is remembered.
    pub fn seen(
        &mut self,
        key: &ObjectKey,
        uid: &Arc<str>,
        before: Option<&Arc<str>>,
        maker: &Maker,
        at_ms: u64,
    ) -> Vec<Observation> {
        let id = id_of(&[&key.to_string()]);
        let known = match (self.known.get(&id), before) {
            (Some(known), _) => Some(known.clone()),
            (None, before) => before.map(|uid| Known { uid: uid.clone(), deleted_by_us: false }),
        };
        if known.as_ref().is_some_and(|known| known.uid == *uid) {
            if self.known.get(&id).is_none() {
                self.known.set(id, Known { uid: uid.clone(), deleted_by_us: false });
            }
            return Vec::new();
        }
        self.known.set(id, Known { uid: uid.clone(), deleted_by_us: false });
        let Some(known) = known else { return Vec::new() };
        let (times, since_ms) = self.made.note(id, at_ms);
        let by = match maker {
            Maker::Us => "made anew by this host after somebody had deleted it".to_owned(),
            Maker::Others(name) if name.is_empty() => "made by somebody else".to_owned(),
            Maker::Others(name) => format!("made by {name}, according to managedFields"),
        };
        let subject = || Subject::Object(key.clone());
        let told = |message: String| {
            Observation::new(
                Name::UnexpectedRecreation,
                Severity::Warning,
                subject(),
                message,
                at_ms,
            )
            .with("uidBefore", &*known.uid)
            .with("uidNow", &**uid)
            .with("madeBy", by.clone())
        };
        let mut all = Vec::new();
        if !known.deleted_by_us {
            all.push(told(format!(
                "{key} is another object under the same name, and this host deleted nothing: {by}"
            )));
        }
        if times >= TOO_MANY {
            let seconds = at_ms.saturating_sub(since_ms) / 1000;
            let text = format!("{key} was made anew {times} times within {seconds} s: {by}");
            all.push(told(text).about("rate").with("times", times.to_string()));
        }
        all
    }

    /// We deleted it: what comes under another UID is expected.
    pub fn deleted_by_us(&mut self, key: &ObjectKey) {
        let id = id_of(&[&key.to_string()]);
        if let Some(known) = self.known.get(&id).cloned() {
            self.known.set(id, Known { deleted_by_us: true, ..known });
        }
    }

    /// Nobody declares it any more.
    pub fn forget(&mut self, key: &ObjectKey) {
        self.known.remove(&id_of(&[&key.to_string()]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::GroupKind;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new(GroupKind::new("", "ConfigMap"), "shop", name)
    }

    fn uid(text: &str) -> Arc<str> {
        text.into()
    }

    #[test]
    fn another_uid_without_a_deletion_of_ours_is_told_once_with_who_made_it() {
        let mut all = Recreations::default();
        let mallory = Maker::Others("mallory".into());
        assert!(all.seen(&key("a"), &uid("1"), None, &Maker::Us, 1).is_empty());
        assert!(all.seen(&key("a"), &uid("1"), None, &mallory, 2).is_empty());
        let told = all.seen(&key("a"), &uid("2"), None, &mallory, 3);
        assert_eq!(told.len(), 1);
        assert!(told[0].message.contains("made by mallory"), "{told:?}");
        assert!(all.seen(&key("a"), &uid("2"), None, &mallory, 4).is_empty());
    }

    #[test]
    fn what_we_deleted_ourselves_or_forgot_comes_back_unremarked() {
        let mut all = Recreations::default();
        all.seen(&key("a"), &uid("1"), None, &Maker::Us, 1);
        all.deleted_by_us(&key("a"));
        assert!(all.seen(&key("a"), &uid("2"), None, &Maker::Us, 2).is_empty());
        all.forget(&key("a"));
        assert!(all.seen(&key("a"), &uid("3"), None, &Maker::Us, 3).is_empty());
    }

    #[test]
    fn what_became_another_object_while_no_host_ran_is_told_by_what_was_written_before() {
        let mut all = Recreations::default();
        let told = all.seen(&key("a"), &uid("2"), Some(&uid("1")), &Maker::Others("m".into()), 1);
        assert_eq!(told.len(), 1);
        assert!(all.seen(&key("b"), &uid("1"), Some(&uid("1")), &Maker::Us, 1).is_empty());
    }

    #[test]
    fn creations_above_the_usual_rate_are_told_even_where_we_delete_ourselves() {
        let mut all = Recreations::default();
        all.seen(&key("a"), &uid("0"), None, &Maker::Us, 0);
        let mut told = Vec::new();
        for round in 1..=TOO_MANY {
            all.deleted_by_us(&key("a"));
            let at = u64::try_from(round).unwrap() * 1000;
            told.extend(all.seen(&key("a"), &uid(&round.to_string()), None, &Maker::Us, at));
        }
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0].about, "rate");
    }

    #[test]
    fn memory_is_bounded_whatever_the_number_of_objects() {
        let mut all = Recreations::default();
        for number in 0..OBJECTS_AT_MOST + 100 {
            all.seen(&key(&number.to_string()), &uid("1"), None, &Maker::Us, 1);
        }
        assert_eq!(all.known.len(), OBJECTS_AT_MOST);
    }
}
