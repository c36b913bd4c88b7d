//! What a pass read beside its snapshot, and what it saw: the part of an answer's inputs that
//! only the plugin knows.
//!
//! A pass that read nothing has an empty [`Reads`], which costs neither memory nor time.

use crate::identity::{Digest, GroupKind, ObjectKey};
use crate::object::{Live, LiveObject};
use std::sync::Arc;

/// What a plugin asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Read {
    /// One object.
    Object(ObjectKey),
    /// Every object of a kind in a namespace (empty for a cluster-scoped kind).
    All(GroupKind, Arc<str>),
}

/// What the host knew of it then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The object, at this resourceVersion.
    Present(Arc<str>),
    /// It is known not to be there.
    Absent,
    /// All of them: a digest over their UIDs and resourceVersions.
    All(Digest),
    /// The host could not say.
    Unknown,
}

impl Seen {
    /// Of one object.
    pub fn of(live: &Live) -> Self {
        match live {
            Live::Present(object) => Self::Present(object.resource_version.clone()),
            Live::Absent => Self::Absent,
            Live::Unknown(_) => Self::Unknown,
        }
    }

    /// Of a whole list, in the order of names; an error: the host does not know.
    pub fn of_all<E>(found: Result<&[LiveObject], &E>) -> Self {
        let Ok(objects) = found else { return Self::Unknown };
        let mut text = String::new();
        for LiveObject { uid, resource_version, .. } in objects {
            text.extend([&**uid, " ", &**resource_version, "\n"]);
        }
        Self::All(Digest::of(text.as_bytes()))
    }
}

/// What a pass read. Of what it read twice, the first answer counts: if the two differ, the pass
/// answers for a state that is over, and is not remembered as one that is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads(Vec<(Read, Seen)>);

impl Reads {
    /// Another read.
    pub fn add(&mut self, read: Read, seen: Seen) {
        if !self.0.iter().any(|(known, _)| *known == read) {
            self.0.push((read, seen));
        }
    }

    /// Whether nothing was read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What was read.
    pub fn iter(&self) -> impl Iterator<Item = &Read> {
        self.0.iter().map(|(read, _)| read)
    }

    /// Whether all that was read is as it was.
    pub fn still(&self, mut now: impl FnMut(&Read) -> Seen) -> bool {
        self.0.iter().all(|(read, seen)| now(read) == *seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str, version: &str) -> LiveObject {
        LiveObject {
            json: Arc::default(),
            uid: format!("u-{name}").into(),
            resource_version: version.into(),
            deleting: false,
        }
    }

    fn all(objects: &[LiveObject]) -> Seen {
        Seen::of_all(Ok::<_, &()>(objects))
    }

    #[test]
    fn a_list_is_another_one_as_soon_as_one_of_it_changes_comes_or_goes() {
        let (a, b) = (object("a", "1"), object("b", "2"));
        let both = all(&[a.clone(), b.clone()]);
        assert_eq!(both, all(&[a.clone(), b.clone()]));
        for other in [&[a.clone()][..], &[], &[a.clone(), object("b", "3")], &[b, a]] {
            assert_ne!(both, all(other));
        }
        assert_ne!(all(&[]), Seen::of_all(Err(&"not listed")), "unknown is never empty");
    }

    #[test]
    fn of_what_was_read_twice_the_first_answer_counts() {
        let read = Read::Object(ObjectKey::new(GroupKind::new("", "Service"), "s", "a"));
        let mut reads = Reads::default();
        assert!(reads.is_empty() && reads.still(|_| Seen::Unknown));
        reads.add(read.clone(), Seen::Absent);
        reads.add(read.clone(), Seen::Present("5".into()));
        assert_eq!(reads.iter().collect::<Vec<_>>(), [&read]);
        assert!(reads.still(|_| Seen::Absent));
        assert!(!reads.still(|_| Seen::Present("5".into())));
    }
}
