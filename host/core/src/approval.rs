//! What waits for a person: changes that a source's configuration names, and whatever lies outside
//! of a plan where a person approved that plan and nothing else.
//!
//! A change is known by a digest over exactly what a pass is going to write and what it saw before:
//! `trimtab plan` shows it, and it is the same in the pass that does it, or the world has moved.

use crate::decision::ActionKind;
use crate::gate::Planned;
use crate::identity::{Digest, ObjectKey};
use crate::record::{Outcome, Record};
use std::collections::HashSet;
use std::sync::Arc;

/// Which changes of a source wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Deletions, of what left the source too.
    pub deletes: bool,
    /// Objects that would be deleted and made anew.
    pub recreations: bool,
    /// Objects of RBAC.
    pub rbac: bool,
    /// All of a revision that changes more objects than this.
    pub more_than: Option<u32>,
}

/// What a person approved.
#[derive(Clone, Debug, Default)]
pub struct Approved {
    /// Changes by [`digest`].
    pub changes: Arc<HashSet<Digest>>,
    /// Nothing else may be written.
    pub only: bool,
    /// How many objects the revision changes that brought this one; `None`: it brought no change.
    pub many: Option<u32>,
}

impl Approved {
    /// Whether what this record plans may be written now.
    ///
    /// # Errors
    /// The outcome that says what it waits for.
    pub fn lets(&self, rules: &Rules, record: &Record) -> Result<(), Outcome> {
        let reason = match rules.asks(&record.key, &record.planned, self.many) {
            Some(reason) => reason,
            None if self.only => "it is not part of the plan that was approved".to_owned(),
            None => return Ok(()),
        };
        let change = digest(record);
        match self.changes.contains(&change) {
            true => Ok(()),
            false => Err(Outcome::AwaitingApproval { reason, change }),
        }
    }
}

impl Rules {
    /// Why these actions wait for a person, if they do.
    pub fn asks(&self, key: &ObjectKey, planned: &[Planned], many: Option<u32>) -> Option<String> {
        let any = |kind| planned.iter().any(|it| it.action == kind);
        if self.deletes && any(ActionKind::Delete) {
            return Some("deletions of its source wait for a person".into());
        }
        if self.recreations && any(ActionKind::Recreate) {
            return Some("recreations of its source wait for a person".into());
        }
        if self.rbac && &*key.group_kind.group == "rbac.authorization.k8s.io" {
            return Some("RBAC of its source waits for a person".into());
        }
        let (limit, many) = (self.more_than?, many?);
        (many > limit).then(|| {
            format!("its revision changes {many} objects, and more than {limit} wait for a person")
        })
    }
}

/// The digest over exactly what a pass is going to write: the object and its live UID, the bytes
/// that are declared, the actions, every difference with both values (Secret values as the host's
/// fingerprints), and the code that decided it.
pub fn digest(record: &Record) -> Digest {
    let mut text = Vec::new();
    let mut add = |part: &[u8]| {
        text.extend_from_slice(&(part.len() as u64).to_le_bytes());
        text.extend_from_slice(part);
    };
    add(record.key.to_string().as_bytes());
    add(record.gvk.api_version().as_bytes());
    add(record.source.as_bytes());
    add(record.desired_digest.to_string().as_bytes());
    add(record.live_uid.as_deref().unwrap_or_default().as_bytes());
    add(record.plugin.digest.to_string().as_bytes());
    for planned in &record.planned {
        add(b"action");
        add(planned.action.to_string().as_bytes());
        add(if planned.creates { b"creates" } else { b"" });
        planned.paths.iter().for_each(|path| add(path.as_bytes()));
    }
    for difference in &record.differences {
        add(b"difference");
        add(difference.path.as_bytes());
        add(difference.desired.as_deref().unwrap_or_default());
        add(difference.live.as_deref().unwrap_or_default());
    }
    Digest::of(&text)
}

/// The digest of one deletion of what left its source.
pub fn deletion(source: &str, key: &ObjectKey, uid: &str) -> Digest {
    Digest::of(format!("prune\0{source}\0{key}\0{uid}").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::GroupKind;

    fn planned(action: ActionKind) -> Vec<Planned> {
        vec![Planned { action, paths: vec![], creates: false, takes: vec![] }]
    }

    #[test]
    fn what_a_source_names_waits_and_nothing_else() {
        let role = ObjectKey::new(GroupKind::new("rbac.authorization.k8s.io", "Role"), "n", "r");
        let map = ObjectKey::new(GroupKind::new("", "ConfigMap"), "n", "c");
        let (apply, recreate) = (planned(ActionKind::ApplyDesired), planned(ActionKind::Recreate));
        let rules = Rules { recreations: true, rbac: true, more_than: Some(2), ..Rules::default() };
        assert!(rules.asks(&map, &apply, Some(2)).is_none());
        assert!(rules.asks(&map, &apply, None).is_none());
        assert!(rules.asks(&map, &apply, Some(3)).is_some());
        assert!(rules.asks(&map, &recreate, None).is_some());
        assert!(rules.asks(&role, &apply, None).is_some());
        assert!(rules.asks(&map, &planned(ActionKind::Delete), None).is_none());
        assert!(Rules::default().asks(&role, &recreate, Some(9)).is_none());
    }
}
