//! Order in the loop: who is let go, how what others need stands, and what is said of what waits.
//! The rules are `trimtab_core::order`'s.

use super::Engine;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use trimtab_core::grant::Mode;
use trimtab_core::health::{Readiness, readiness};
use trimtab_core::identity::{Gvk, ObjectKey};
use trimtab_core::object::{Desired, Live};
use trimtab_core::order::needs::{Dependency, Needs, SourceNeeds};
use trimtab_core::order::{Order, Standing, Wait};
use trimtab_kube::Lookup;

/// How often what waits is judged anew without an event: a source's readiness has none.
const JUDGE_EVERY: Duration = Duration::from_secs(1);
/// From when on it is told that an object waits: most are let go at once.
const TELL_AFTER: Duration = Duration::from_secs(5);

/// What was said of what waits.
pub(super) struct Waits {
    judged_at: Instant,
    /// By object: whether it was told that it waits, or that it waits long.
    told: HashMap<ObjectKey, bool>,
}

impl Waits {
    pub(super) fn new(now: Instant) -> Self {
        Self { judged_at: now, told: HashMap::new() }
    }

    /// How long until something has to be judged or told.
    pub(super) fn due(&self, order: &Order) -> Option<Duration> {
        order.some_blocked().then(|| JUDGE_EVERY.saturating_sub(self.judged_at.elapsed()))
    }
}

impl Engine {
    /// Desired state is another: so is what it needs.
    pub(super) fn take_needs(&mut self) {
        let sources: SourceNeeds = self
            .config
            .sources
            .iter()
            .filter(|source| !source.depends_on.is_empty())
            .map(|source| {
                let on = source.depends_on.iter().map(|name| Arc::from(name.as_str())).collect();
                (Arc::from(source.name.as_str()), on)
            })
            .collect();
        self.order.set_needs(Needs::read(&self.desired.objects, &sources));
    }

    /// These objects are to be looked at in their turn. What is in force and what is only observed
    /// waits for nothing else.
    pub(super) fn add_to_order(&mut self, keys: impl IntoIterator<Item = ObjectKey>) {
        for key in keys {
            let waits = self.desired.objects.get(&key).is_some_and(|desired| {
                self.would_be_written(desired) && self.force(desired).is_err()
            });
            self.order.add(key, waits);
        }
    }

    pub(super) fn release_order(&mut self) {
        if self.order.some_blocked() && self.waits.judged_at.elapsed() >= JUDGE_EVERY {
            self.waits.judged_at = Instant::now();
            self.order.stir_all();
        }
        let mut order = std::mem::take(&mut self.order);
        let released = order.release(self.started.elapsed(), |on| self.standing(on));
        self.order = order;
        for key in released {
            self.look_afresh(&key);
        }
    }

    /// Whether a pass may write this object: its source and its plugin's grant both enforce.
    pub(super) fn would_be_written(&self, desired: &Desired) -> bool {
        let registry = self.parts.registry.borrow();
        desired.terms.mode == Mode::Enforce
            && registry
                .for_kind(&desired.key.group_kind)
                .is_some_and(|served| served.power.mode_for(&desired.key) == Mode::Enforce)
    }

    /// Whether an object is in force as declared: by its last pass, or by what the inventory
    /// remembers of the host that ran before.
    pub(super) fn force(&self, desired: &Desired) -> Result<(), String> {
        if let Some(state) = self.keys.get(&desired.key)
            && state.has_ended()
        {
            return state.in_force(desired.digest);
        }
        match self.made.entry(&desired.source, &desired.key) {
            Some(entry) if entry.has(desired.digest) => Ok(()),
            _ => Err("not applied yet".into()),
        }
    }

    fn standing(&self, on: &Dependency) -> Standing {
        match on {
            Dependency::Object(key) => self.standing_of(key),
            Dependency::Source(name) => self.standing_of_source(name),
            Dependency::Unclear(why) => {
                Standing { in_force: Err(why.to_string()), readiness: None }
            }
        }
    }

    fn standing_of(&self, key: &ObjectKey) -> Standing {
        if let Some(desired) = self.desired.objects.get(key) {
            return Standing {
                in_force: self.force(desired),
                readiness: self.readiness(key, &desired.gvk),
            };
        }
        let kinds = self.parts.store.kinds();
        let readiness = match kinds.as_deref().map(|kinds| kinds.preferred(&key.group_kind)) {
            Some(Lookup::Found(kind)) => self.readiness(key, &kind.gvk),
            Some(Lookup::NotServed) => {
                Some(Readiness::InProgress("the API server does not serve its kind".into()))
            }
            Some(Lookup::Unknown(why)) => Some(Readiness::Unknown(why.into())),
            None => Some(Readiness::Unknown("discovery has not been read yet".into())),
        };
        Standing { in_force: Ok(()), readiness }
    }

    fn readiness(&self, key: &ObjectKey, gvk: &Gvk) -> Option<Readiness> {
        match self.parts.store.live(key, gvk) {
            Live::Present(live) => Some(readiness(gvk, &live.json)),
            Live::Absent => None,
            Live::Unknown(why) => Some(Readiness::Unknown(why.to_string())),
        }
    }

    /// A source is there when all that it declares is in force and ready.
    fn standing_of_source(&self, name: &str) -> Standing {
        let missing = |why: String| Standing { in_force: Err(why), readiness: None };
        let Some(entry) = self.sources.get(name) else {
            return missing("it is not configured".into());
        };
        if entry.in_force.is_none() {
            let why = entry.problem.as_ref().map(|problem| format!(": {}", problem.text));
            return missing(format!("nothing of it is in force{}", why.unwrap_or_default()));
        }
        if let Some(waits) = self.desired.unplaced.iter().find(|it| &*it.source == name) {
            let manifest = &waits.manifest;
            return missing(format!("{} {} waits for its kind", manifest.gvk, manifest.name));
        }
        let own = self.desired.objects.values().filter(|desired| &*desired.source == name);
        for desired in own {
            let Standing { in_force, readiness } = self.standing_of(&desired.key);
            let why = match (in_force, readiness) {
                (Err(why), _) => why,
                (Ok(()), Some(Readiness::Ready)) => continue,
                (Ok(()), Some(other)) => other.to_string(),
                (Ok(()), None) => "not in the cluster".into(),
            };
            return missing(format!("{} is {why}", desired.key));
        }
        Standing::MET
    }

    fn waiting(&self) -> Vec<Wait> {
        self.order.waits(self.started.elapsed(), |on| self.standing(on))
    }

    /// What waits, for people.
    pub(super) fn waiting_words(&self) -> HashMap<ObjectKey, String> {
        self.waiting().into_iter().map(|wait| (wait.key, wait.words)).collect()
    }

    /// Why a kind is not served yet, where the definition that makes it is declared.
    pub(super) fn kind_words(&self) -> BTreeMap<Gvk, String> {
        let kinds: HashSet<&Gvk> =
            self.desired.unplaced.iter().map(|unplaced| &unplaced.manifest.gvk).collect();
        let words = |gvk: &Gvk| {
            let definition = self.order.needs().definition_of(&gvk.group_kind())?;
            let Standing { in_force, readiness } = self.standing_of(definition);
            let what = match (in_force, readiness) {
                (Err(why), _) => why,
                (Ok(()), Some(Readiness::Ready)) => {
                    "established, and the API server does not name the kind yet".into()
                }
                (Ok(()), Some(other)) => other.to_string(),
                (Ok(()), None) => "not in the cluster".into(),
            };
            Some(format!("waits for {definition} (which defines its kind): {what}"))
        };
        kinds.into_iter().filter_map(|gvk| Some((gvk.clone(), words(gvk)?))).collect()
    }

    /// Tells once what waits for more than a moment, and once more when that is long.
    pub(super) fn tell_waits(&mut self) {
        if !self.order.some_blocked() {
            return self.waits.told.clear();
        }
        // Judged anew just now: the words are fresh once a second.
        if self.waits.judged_at.elapsed() > Duration::from_millis(50) {
            return;
        }
        let due = |told: &HashMap<ObjectKey, bool>, wait: &Wait| {
            wait.since >= TELL_AFTER && told.get(&wait.key).is_none_or(|long| wait.overdue && !long)
        };
        let waiting = self.waiting();
        self.waits.told.retain(|key, _| self.order.is_blocked(key));
        for wait in waiting {
            if !due(&self.waits.told, &wait) {
                continue;
            }
            let text = format!("{} {}", wait.key, wait.words);
            if wait.overdue {
                tracing::warn!("{text}");
                self.note_host("waits-long", &text);
            } else {
                tracing::info!("{text}");
                self.note_host("waits", &text);
            }
            self.waits.told.insert(wait.key, wait.overdue);
        }
    }
}
