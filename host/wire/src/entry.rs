//! What is known of one object of interest: the state machine that news of it goes through.
//!
//! News comes from five sides that race: the watch, a list, a read of that one object, the answer
//! to our own write, and the answer to our own delete. Each step says whether what is known
//! changed. The rules, all of them tested below:
//! - what is older never replaces what is newer (by resourceVersion, where the two can be ordered);
//! - what we wrote is known at once, and its echo from the watch is no news;
//! - what we deleted does not come back: its UID is refused until a later list shows it;
//! - a read that was overtaken by the watch says nothing.

use crate::version;
use std::cmp::Ordering;
use std::sync::Arc;
use trimtab_core::object::{Live, LiveObject};

/// The number of a list of this kind, counted from 1: tells whether it began after something.
pub type ListNumber = u64;

/// An object as some answer showed it.
#[derive(Clone, Debug)]
pub enum Sight {
    /// It decodes.
    Object(LiveObject),
    /// It is there, does not decode, and why.
    Undecodable(Arc<str>),
}

/// What is known of one object.
#[derive(Clone, Debug)]
pub struct Entry {
    state: State,
    /// The newest resourceVersion that spoke of it.
    at: Option<Arc<str>>,
    /// The UID of an object of this key that is known to be deleted.
    gone: Option<Gone>,
    /// The last list when interest began: that list may have passed it by unseen.
    born: ListNumber,
    /// The last list that showed it.
    seen: ListNumber,
    /// Nobody named it: it is kept because its namespace is watched whole.
    unnamed: bool,
}

#[derive(Clone, Debug)]
enum State {
    /// Interest is new: nothing is known yet, or why reading it failed.
    Pending(Option<Arc<str>>),
    Present(LiveObject),
    Absent,
    Undecodable(Arc<str>),
}

#[derive(Clone, Debug)]
struct Gone {
    uid: Arc<str>,
    /// The last list that began before the deletion was known.
    list: ListNumber,
}

impl Entry {
    /// Interest begins; `lists` lists have begun before.
    pub fn new(lists: ListNumber) -> Self {
        Self {
            state: State::Pending(None),
            at: None,
            gone: None,
            born: lists,
            seen: 0,
            unnamed: false,
        }
    }

    /// Whether it is of interest by its name, or only because its namespace is watched whole.
    pub fn set_unnamed(&mut self, unnamed: bool) {
        self.unnamed = unnamed;
    }

    /// Whether it can be forgotten: gone, and nobody named it.
    pub fn is_forgettable(&self) -> bool {
        self.unnamed && matches!(self.state, State::Absent)
    }

    /// As the engine sees it.
    pub fn live(&self) -> Live {
        match &self.state {
            State::Present(object) => Live::Present(object.clone()),
            State::Absent => Live::Absent,
            State::Pending(None) => Live::Unknown("it has not been read yet".into()),
            State::Pending(Some(reason)) => {
                Live::Unknown(format!("it cannot be read: {reason}").into())
            }
            State::Undecodable(reason) => {
                Live::Unknown(format!("it does not decode: {reason}").into())
            }
        }
    }

    /// The object, if it is known to be there.
    pub fn object(&self) -> Option<&LiveObject> {
        match &self.state {
            State::Present(object) => Some(object),
            State::Pending(_) | State::Absent | State::Undecodable(_) => None,
        }
    }

    /// Whether it still waits for its first answer.
    pub fn is_pending(&self) -> bool {
        matches!(self.state, State::Pending(_))
    }

    /// The newest resourceVersion that spoke of it.
    pub fn at(&self) -> Option<&Arc<str>> {
        self.at.as_ref()
    }

    /// The watch showed it.
    pub fn event(&mut self, sight: Sight) -> bool {
        if let Sight::Object(object) = &sight {
            let deleted = self.gone.as_ref().is_some_and(|gone| gone.uid == object.uid);
            if deleted || !self.admits(&object.resource_version) {
                return false;
            }
        }
        self.become_seen(sight)
    }

    /// The watch says that it is deleted.
    pub fn deleted(&mut self, uid: &Arc<str>, at: &Arc<str>, lists: ListNumber) -> bool {
        if self.at.as_ref().is_some_and(|known| version::is_older(at, known)) {
            return false;
        }
        let changed = !matches!(self.state, State::Absent);
        self.become_gone(Some(uid), lists);
        self.at = Some(at.clone());
        changed
    }

    /// List `number` shows it.
    pub fn listed(&mut self, sight: Sight, number: ListNumber) -> bool {
        self.seen = number;
        if let Sight::Object(object) = &sight {
            let deleted = self
                .gone
                .as_ref()
                .is_some_and(|gone| gone.uid == object.uid && number <= gone.list);
            if deleted || !self.admits(&object.resource_version) {
                return false;
            }
        }
        self.become_seen(sight)
    }

    /// List `number` has ended at this version, and may not have shown it.
    pub fn list_ended(&mut self, number: ListNumber, at: &Arc<str>) -> bool {
        let passed_by = self.born >= number;
        let newer = self.at.as_ref().is_some_and(|known| version::is_older(at, known));
        if self.seen == number || passed_by || newer {
            return false;
        }
        let changed = !matches!(self.state, State::Absent);
        self.become_gone(None, number);
        self.at = Some(at.clone());
        changed
    }

    /// List `number` has ended without it, but held an item whose name could not be read.
    pub fn list_ended_unsure(&mut self, number: ListNumber) -> bool {
        if self.seen == number || self.born >= number {
            return false;
        }
        self.become_seen(Sight::Undecodable(
            "the list does not show it, but holds an object whose name cannot be read".into(),
        ))
    }

    /// It was read alone; `None`: it is not there. `asked` is what [`Entry::at`] was before.
    pub fn read(
        &mut self,
        answer: Option<Sight>,
        asked: Option<&Arc<str>>,
        lists: ListNumber,
    ) -> bool {
        match answer {
            Some(sight) => self.event(sight),
            None if self.at.as_ref() != asked => false,
            None => {
                let changed = !matches!(self.state, State::Absent);
                self.become_gone(None, lists);
                changed
            }
        }
    }

    /// Reading it alone failed.
    pub fn read_failed(&mut self, reason: Arc<str>) -> bool {
        match &mut self.state {
            State::Pending(known) => {
                let changed = known.is_none();
                *known = Some(reason);
                changed
            }
            _ => false,
        }
    }

    /// The answer to our own write.
    pub fn written(&mut self, object: LiveObject) {
        let deleted = self.gone.as_ref().is_some_and(|gone| gone.uid == object.uid);
        if !deleted && self.admits(&object.resource_version) {
            self.become_seen(Sight::Object(object));
        }
    }

    /// The server says that the object with this UID is gone: the answer to our own delete.
    pub fn deleted_by_us(&mut self, uid: &Arc<str>, lists: ListNumber) {
        match &self.state {
            State::Present(object) if object.uid != *uid => {}
            _ => self.become_gone(Some(uid), lists),
        }
    }

    /// The cluster was restored to an earlier state: its versions begin anew.
    pub fn forget_version(&mut self) {
        self.at = None;
        self.gone = None;
    }

    /// Whether news at this version is not older than what is known, nor the same.
    fn admits(&self, incoming: &str) -> bool {
        match &self.at {
            None => true,
            Some(known) => match version::compare(incoming, known) {
                Some(Ordering::Greater) => true,
                // Two versions that have no order: the newer arrival is all there is to go by.
                None => true,
                // The same version again heals what was not known of it.
                Some(Ordering::Equal) => {
                    matches!(self.state, State::Pending(_) | State::Undecodable(_))
                }
                Some(Ordering::Less) => false,
            },
        }
    }

    fn become_seen(&mut self, sight: Sight) -> bool {
        match sight {
            Sight::Object(object) => {
                self.at = Some(object.resource_version.clone());
                self.gone = None;
                self.state = State::Present(object);
                true
            }
            Sight::Undecodable(reason) => {
                let changed = !matches!(&self.state, State::Undecodable(known) if *known == reason);
                self.state = State::Undecodable(reason);
                changed
            }
        }
    }

    fn become_gone(&mut self, uid: Option<&Arc<str>>, list: ListNumber) {
        let uid = match (&self.state, uid) {
            (_, Some(uid)) => Some(uid.clone()),
            (State::Present(object), None) => Some(object.uid.clone()),
            _ => None,
        };
        if let Some(uid) = uid {
            self.gone = Some(Gone { uid, list });
        }
        self.state = State::Absent;
    }
}

#[cfg(test)]
#[path = "entry_tests.rs"]
mod tests;
