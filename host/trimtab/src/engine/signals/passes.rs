//! What passes and desired state show: recreations, edits, fights, refusals, values that policy
//! denies, and values of Secrets in words.

use crate::engine::{Engine, KeyState, Passed};
use crate::timestamp::now_ms;
use std::sync::Arc;
use trimtab_core::decision::Severity;
use trimtab_core::denial::{self, Denial};
use trimtab_core::gate::Planned;
use trimtab_core::identity::ObjectKey;
use trimtab_core::object::{Desired, Live, LiveObject};
use trimtab_core::policy::Opinion;
use trimtab_core::record::{Record, Trigger};
use trimtab_core::redact::Redactor;
use trimtab_core::signals::misplaced::Side;
use trimtab_core::signals::recreation::Maker;
use trimtab_core::signals::rollback::{self, By, Denied, Denies as _, HardDenials};
use trimtab_core::signals::{Name, Observation, Subject, contest, trust};

impl Engine {
    /// What a pass that ended shows. Before its outcome is taken up, which changes what was in force.
    pub(in crate::engine) fn signal_pass(&mut self, passed: &Passed) {
        let Passed { key, record, live, .. } = passed;
        let now = record.at_ms;
        let left = record.written();
        let desired = self.desired.objects.get(key).cloned();
        let entry = desired.as_ref().and_then(|it| self.made.entry(&it.source, key));
        let is_start = record.trigger == Trigger::Start;
        let was_in_force = entry.is_some_and(|entry| entry.has(record.desired_digest));
        let before = entry.filter(|_| is_start).and_then(|entry| entry.uid.clone());

        if record.after.is_some() && record.planned.iter().any(Planned::deletes) {
            self.signals.recreations.deleted_by_us(key);
        }
        let mut seen = Vec::new();
        for (object, by_us) in versions(live, left.as_ref(), record) {
            if self.signals.recreations.is_known(key, &object.uid) {
                continue;
            }
            let maker = if by_us { Maker::Us } else { Maker::Others(first_manager(object)) };
            let all = self.signals.recreations.seen(key, &object.uid, before.as_ref(), &maker, now);
            seen.extend(all);
        }
        for seen in seen {
            self.signal_recreation(key, seen);
        }
        for edit in self.signals.edits.pass(record, left.as_ref(), was_in_force) {
            self.signal_edit(edit);
        }
        let rounds = self.keys.get(key).and_then(KeyState::rounds);
        let mut all: Vec<Observation> = contest::of_record(record, rounds).into_iter().collect();
        all.extend(trust::of_record(record));
        all.extend(quoted(record));
        if denial::runs_pods(&key.group_kind) {
            all.extend(self.signal_values(record, live, left.as_ref()));
        }
        self.signal_all(all);
    }

    /// Values in a live object that policy denies, and that desired does not ask for.
    fn signal_values(
        &mut self,
        record: &Record,
        live: &Live,
        left: Option<&LiveObject>,
    ) -> Vec<Observation> {
        let key = &record.key;
        let managers = || {
            let all = record.differences.iter().flat_map(|difference| &difference.managers);
            let mut names: Vec<&str> = all.map(|manager| manager.name.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            names.join(", ")
        };
        let mut all = Vec::new();
        if let (Some(live), false) = (live.object(), record.differences.is_empty()) {
            let ours = match self.desired.objects.get(key) {
                Some(desired) => self.denied(key, &desired.json),
                None => return all,
            };
            let mut denied = self.denied(key, &live.json);
            denied.retain(|it| !ours.contains(it));
            let who = managers();
            all = self.signals.rollbacks.seen(key, denied, By::Managers(&who), record.at_ms);
        }
        if record.differences.is_empty() || left.is_some() {
            let nobody = By::Managers("");
            all.extend(self.signals.rollbacks.seen(key, Vec::new(), nobody, record.at_ms));
        }
        all
    }

    /// What policy denies in this object; nothing where the grant lifts it.
    fn denied(&self, key: &ObjectKey, json: &[u8]) -> Vec<Denied> {
        let registry = self.parts.registry.borrow();
        let grant = registry.for_kind(&key.group_kind).and_then(|it| it.power.grant.as_ref());
        if grant.is_some_and(|grant| grant.terms.allow.contains(&Denial::PrivilegedPods)) {
            return Vec::new();
        }
        match trimtab_json::parse(json) {
            Ok(object) => HardDenials.denied(key, &object),
            Err(_) => Vec::new(),
        }
    }

    /// What policies said of an object that enters: a denial is a signal, and so is one that returns.
    pub(in crate::engine) fn signal_entering(&mut self, desired: &Desired, opinions: &[Opinion]) {
        let (from, now) = ((&*desired.source, &*desired.revision), now_ms());
        let mut all = trust::of_opinions(&desired.key, from, opinions, now);
        let denied = rollback::of_opinions(opinions);
        let by = By::Entering(from.0, from.1);
        all.extend(self.signals.rollbacks.seen(&desired.key, denied, by, now));
        self.signal_all(all);
    }

    /// An object that is not there was written under this UID last.
    pub(in crate::engine) fn signal_absent(&mut self, key: &ObjectKey, uid: &Arc<str>) {
        self.signals.recreations.remember(key, uid);
    }

    /// What came into desired state, or left it.
    pub(in crate::engine) fn signal_desired(&mut self, changed: &[ObjectKey], gone: &[ObjectKey]) {
        for key in gone {
            self.signals.forget(key);
        }
        for key in changed {
            self.signals.look_at(key, Side::Desired);
            let Some(desired) = self.desired.objects.get(key).cloned() else { continue };
            if denial::runs_pods(&key.group_kind) {
                let denied = self.denied(key, &desired.json);
                let by = By::Source(&desired.source, &desired.revision);
                let seen = self.signals.rollbacks.seen(key, denied, by, now_ms());
                self.signal_all(seen);
            }
        }
    }
}

/// The objects that a pass saw under its name, each with whether this host made it.
fn versions<'o>(
    live: &'o Live,
    left: Option<&'o LiveObject>,
    record: &Record,
) -> impl Iterator<Item = (&'o LiveObject, bool)> {
    let seen = live.object();
    // What a plugin's own deletion makes anew is told where it is too often.
    let deletes = record.planned.iter().any(Planned::deletes);
    let left = left.filter(|left| !deletes && seen.is_none_or(|seen| seen.uid != left.uid));
    seen.map(|seen| (seen, false)).into_iter().chain(left.map(|left| (left, true)))
}

/// The manager of an object's oldest entry in managedFields.
fn first_manager(live: &LiveObject) -> String {
    let Ok(object) = trimtab_json::parse(&live.json) else { return String::new() };
    let entries = object.at(&["metadata", "managedFields"]).and_then(|it| it.as_array());
    let times = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| Some((entry.str_at(&["time"])?, entry.str_at(&["manager"])?)));
    times.min_by_key(|(time, _)| *time).map(|(_, name)| name.to_owned()).unwrap_or_default()
}

/// A value of a Secret in what a plugin said, or in what the API server answered.
fn quoted(record: &Record) -> Option<Observation> {
    let message = record.outcome.message();
    let said = record.findings.iter().map(|finding| &finding.message);
    let said = said.chain(record.conditions.iter().map(|condition| &condition.message));
    let in_words = said.chain([&message]).any(|text| Redactor::hid(text));
    let severity = Severity::Warning;
    in_words.then(|| {
        let text = format!(
            "{}: a value of a Secret stood in what plugin {} or the API server said of it, and was taken out",
            record.key, record.plugin.name
        );
        let subject = Subject::Object(record.key.clone());
        Observation::new(Name::MisplacedSecret, severity, subject, text, record.at_ms)
            .about("words")
            .with("plugin", record.plugin.name.clone())
    })
}
