//! Edits and recreations that wait for what the API server's audit log has of them.

use crate::engine::Engine;
use crate::timestamp::now_ms;
use trimtab_core::identity::ObjectKey;
use trimtab_core::signals::Observation;
use trimtab_core::signals::edit::Edit;
use trimtab_core::signals::witness::{self, ApiWrite, Place, Seen, Witness};
use trimtab_kube::Lookup;

/// How long one waits for its line in the API server's audit log, in milliseconds.
const WITNESS_WITHIN_MS: u64 = 3_000;
/// How long before an edit was seen its request may have been answered, in milliseconds.
const BEFORE_MS: u64 = 1_000;
/// How many wait at once; of more the oldest are told without.
const WAITING_AT_MOST: usize = 1024;

/// Something that was found and for which the audit log is asked.
pub(super) enum Waiting {
    Edit { until_ms: u64, edit: Edit },
    Recreation { until_ms: u64, key: ObjectKey, seen: Observation },
}

impl Waiting {
    pub(super) fn until_ms(&self) -> u64 {
        match self {
            Self::Edit { until_ms, .. } | Self::Recreation { until_ms, .. } => *until_ms,
        }
    }
}

impl Engine {
    pub(super) fn signal_edit(&mut self, edit: Edit) {
        if self.signals.witness.is_none() {
            return self.signal_all(edit.told(None));
        }
        let until_ms = now_ms() + WITNESS_WITHIN_MS;
        self.wait_for_witness(Waiting::Edit { until_ms, edit });
    }

    pub(super) fn signal_recreation(&mut self, key: &ObjectKey, seen: Observation) {
        if self.signals.witness.is_none() {
            return self.signal_all(vec![seen]);
        }
        let until_ms = now_ms() + WITNESS_WITHIN_MS;
        self.wait_for_witness(Waiting::Recreation { until_ms, key: key.clone(), seen });
    }

    fn wait_for_witness(&mut self, waiting: Waiting) {
        self.signals.waiting.push_back(waiting);
        self.ask_witness();
        while self.signals.waiting.len() > WAITING_AT_MOST {
            if let Some(oldest) = self.signals.waiting.pop_front() {
                self.tell_waiting(oldest, true);
            }
        }
    }

    /// Tells of those whose request is in the audit log by now, or that waited long enough.
    pub(super) fn ask_witness(&mut self) {
        for waiting in std::mem::take(&mut self.signals.waiting) {
            let over = waiting.until_ms() <= now_ms();
            if let Some(waiting) = self.tell_waiting(waiting, over) {
                self.signals.waiting.push_back(waiting);
            }
        }
    }

    /// Gives it back where it is still to wait.
    fn tell_waiting(&mut self, waiting: Waiting, over: bool) -> Option<Waiting> {
        let told = match &waiting {
            Waiting::Edit { edit, .. } => {
                let at = edit.manager.as_ref().and_then(|it| witness::ms_of(&it.time));
                let request = self.witness_of(&edit.key, |witness, place| {
                    witness.edit(place, edit.manager.as_ref(), at.unwrap_or(edit.at_ms)).cloned()
                });
                // One by another manager or from before is another edit: the right one may still come.
                let since = at.unwrap_or(edit.at_ms.saturating_sub(BEFORE_MS));
                let by_it = request.as_ref().is_some_and(|request| {
                    let by = edit.manager.as_ref().is_none_or(|it| it.name == request.manager);
                    by && request.at_ms + BEFORE_MS >= since
                });
                match request {
                    Some(request) if by_it || over => {
                        edit.told(Some(&Seen::Request(Box::new(request))))
                    }
                    _ if over => edit.told(Some(&Seen::Nothing)),
                    _ => return Some(waiting),
                }
            }
            Waiting::Recreation { key, seen, .. } => {
                let at = seen.at_ms;
                let request =
                    self.witness_of(key, |witness, place| witness.deletion(place, at).cloned());
                match request {
                    Some(request) => {
                        let mut seen = seen.clone();
                        seen.message = format!(
                            "{}; deleted by {} (audit id {})",
                            seen.message, request.user, request.audit_id
                        );
                        vec![
                            seen.with("deletedBy", request.user)
                                .with("auditId", request.audit_id)
                                .with("userAgent", request.agent),
                        ]
                    }
                    None if over => vec![seen.clone()],
                    None => return Some(waiting),
                }
            }
        };
        self.signal_all(told);
        None
    }

    fn witness_of(
        &self,
        key: &ObjectKey,
        ask: impl Fn(&Witness, Place<'_>) -> Option<ApiWrite>,
    ) -> Option<ApiWrite> {
        let kinds = self.parts.store.kinds()?;
        let Lookup::Found(kind) = kinds.preferred(&key.group_kind) else { return None };
        let place = Place {
            group: &key.group_kind.group,
            resource: &kind.plural,
            namespace: key.namespace_str(),
            name: &key.name,
        };
        ask(self.signals.witness.as_ref()?, place)
    }
}
