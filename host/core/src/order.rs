//! Who waits for whom when desired state is taken up.
//!
//! Two rules, both for objects that are new or changed, and neither for the correction of drift:
//!
//! - **Turns.** Kinds that others need come first ([`crate::placing::rank`]), webhooks and API
//!   services last. The next turn begins when every object of the one before had its first pass,
//!   however that ended, so that a failing object delays the rest by one pass and never for ever.
//! - **Needs.** An object waits for its namespace to be active and for its kind's definition to be
//!   established where the same desired state declares them, for what its annotation names to be in
//!   force and ready, and for the sources that its own source depends on ([`needs`]). What waits so
//!   delays no turn: only what needs *it* waits with it.
//!
//! Nothing is ever dropped for waiting long: [`PATIENCE`] changes the words alone. Takes the time as
//! an argument. Where to start: [`Order::release`].

pub mod needs;

use self::needs::{Dependency, Need, Needs, Why};
use crate::health::Readiness;
use crate::identity::ObjectKey;
use crate::placing::rank;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::time::Duration;

/// From when on somebody should look at what waits.
pub const PATIENCE: Duration = Duration::from_secs(300);
/// Links of a chain that are spelt out.
const LINKS_AT_MOST: usize = 8;

/// How something that others need stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Whether it is as declared, and if not, why; what nobody declares is.
    pub in_force: Result<(), String>,
    /// Its readiness; `None`: it is not in the cluster.
    pub readiness: Option<Readiness>,
}

impl Standing {
    /// In force and ready.
    pub const MET: Self = Self { in_force: Ok(()), readiness: Some(Readiness::Ready) };

    /// What is missing for a need of this sort, if something is.
    fn missing(&self, why: Why) -> Option<String> {
        let health = match &self.readiness {
            Some(Readiness::Ready) => None,
            Some(other) => Some(other.to_string()),
            None => Some("not in the cluster".to_owned()),
        };
        match (&self.in_force, why) {
            // It may hold what it has to hold even where its own manifest is not in force.
            (_, Why::Namespace | Why::Definition) | (Ok(()), _) => health,
            (Err(what), _) => Some(what.clone()),
        }
    }
}

/// What an object waits for, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// What waits.
    pub key: ObjectKey,
    /// The whole chain: what it waits for and why, and what that waits for.
    pub words: String,
    /// How long.
    pub since: Duration,
    /// Whether it is longer than [`PATIENCE`].
    pub overdue: bool,
}

/// Objects that wait for their first pass, or are in it.
#[derive(Debug, Default)]
pub struct Order {
    needs: Needs,
    /// Wait for their turn.
    turns: BTreeMap<u8, BTreeSet<ObjectKey>>,
    /// Had their turn and wait for what they need; since when.
    blocked: BTreeMap<ObjectKey, Duration>,
    /// Of the blocked, those whose needs may be met by now.
    stirred: BTreeSet<ObjectKey>,
    /// Let go, and their first pass has not ended.
    under_way: BTreeSet<ObjectKey>,
    /// Wait for their turn alone, whatever they need: nothing is written of them.
    free: BTreeSet<ObjectKey>,
}

impl Order {
    /// What desired state needs now. What waits is judged anew by it.
    pub fn set_needs(&mut self, needs: Needs) {
        self.needs = needs;
        self.stirred.extend(self.blocked.keys().cloned());
    }

    /// What desired state needs.
    pub fn needs(&self) -> &Needs {
        &self.needs
    }

    /// This object is to be looked at in its turn. `waits`: and not before what it needs is there.
    pub fn add(&mut self, key: ObjectKey, waits: bool) {
        if self.blocked.contains_key(&key) {
            if waits {
                return;
            }
            self.blocked.remove(&key);
        }
        if waits {
            self.free.remove(&key);
        } else {
            self.free.insert(key.clone());
        }
        self.turns.entry(rank(&key.group_kind)).or_default().insert(key);
    }

    /// The objects that may be looked at now. `standing` tells how what they need stands; it is
    /// asked once for each.
    pub fn release(
        &mut self,
        now: Duration,
        standing: impl Fn(&Dependency) -> Standing,
    ) -> Vec<ObjectKey> {
        let mut known = HashMap::new();
        let mut released = Vec::new();
        for key in std::mem::take(&mut self.stirred) {
            if self.blocked.contains_key(&key) && self.unmet(&key, &standing, &mut known).is_none()
            {
                self.blocked.remove(&key);
                released.push(key);
            }
        }
        self.under_way.extend(released.iter().cloned());
        while self.under_way.is_empty() {
            let Some((_, keys)) = self.turns.pop_first() else { break };
            // Who needs whom within one turn: all of it counts as waiting before any is judged.
            self.under_way.clone_from(&keys);
            let waits: Vec<ObjectKey> = keys
                .iter()
                .filter(|key| {
                    !self.free.contains(*key) && self.unmet(key, &standing, &mut known).is_some()
                })
                .cloned()
                .collect();
            for key in waits {
                self.under_way.remove(&key);
                self.blocked.insert(key, now);
            }
            released.extend(self.under_way.iter().cloned());
        }
        released
    }

    /// This object had a pass, or is of no interest any more.
    pub fn passed(&mut self, key: &ObjectKey) {
        self.under_way.remove(key);
        self.blocked.remove(key);
        self.stirred.remove(key);
        self.free.remove(key);
        self.turns.retain(|_, keys| {
            keys.remove(key);
            !keys.is_empty()
        });
        self.stir(&Dependency::Object(key.clone()));
    }

    /// Something that others need may stand otherwise now.
    pub fn stir(&mut self, dependency: &Dependency) {
        if self.blocked.is_empty() {
            return;
        }
        for key in self.needs.by(dependency) {
            if self.blocked.contains_key(key) {
                self.stirred.insert(key.clone());
            }
        }
    }

    /// Everything that waits may be judged anew: for what no event tells of.
    pub fn stir_all(&mut self) {
        self.stirred.extend(self.blocked.keys().cloned());
    }

    /// Whether this object must not be looked at yet.
    pub fn holds(&self, key: &ObjectKey) -> bool {
        self.blocked.contains_key(key)
            || self.turns.get(&rank(&key.group_kind)).is_some_and(|keys| keys.contains(key))
    }

    /// Whether this object waits for what it needs.
    pub fn is_blocked(&self, key: &ObjectKey) -> bool {
        self.blocked.contains_key(key)
    }

    /// What waits for what it needs.
    pub fn blocked(&self) -> impl Iterator<Item = &ObjectKey> {
        self.blocked.keys()
    }

    /// Whether some object waits for what it needs.
    pub fn some_blocked(&self) -> bool {
        !self.blocked.is_empty()
    }

    /// Whether nothing waits for its turn or is in its first pass; what is blocked aside.
    pub fn is_through(&self) -> bool {
        self.turns.is_empty() && self.under_way.is_empty() && self.stirred.is_empty()
    }

    /// What waits for what it needs, and why.
    pub fn waits(&self, now: Duration, standing: impl Fn(&Dependency) -> Standing) -> Vec<Wait> {
        let mut known = HashMap::new();
        self.blocked
            .iter()
            .map(|(key, since)| {
                let since = now.saturating_sub(*since);
                let words = self.chain(key, now, &standing, &mut known);
                Wait { key: key.clone(), words, since, overdue: since > PATIENCE }
            })
            .collect()
    }

    /// The first of what this object needs that is not there, with what is missing of it.
    fn unmet(
        &self,
        key: &ObjectKey,
        standing: &impl Fn(&Dependency) -> Standing,
        known: &mut HashMap<Dependency, Standing>,
    ) -> Option<(&Need, String)> {
        self.needs.of(key).iter().find_map(|need| {
            if let Dependency::Unclear(why) = &need.on {
                return Some((need, why.to_string()));
            }
            if let Dependency::Object(on) = &need.on
                && (self.under_way.contains(on) || self.holds(on))
            {
                return Some((need, "not applied yet".to_owned()));
            }
            let now = known.entry(need.on.clone()).or_insert_with(|| standing(&need.on));
            now.missing(need.why).map(|missing| (need, missing))
        })
    }

    fn chain(
        &self,
        key: &ObjectKey,
        now: Duration,
        standing: &impl Fn(&Dependency) -> Standing,
        known: &mut HashMap<Dependency, Standing>,
    ) -> String {
        if let Some(circle) = self.needs.circle(key) {
            return format!(
                "needs itself, and is never applied so: {circle}; take one of these needs out"
            );
        }
        let mut words = String::new();
        let mut here = key;
        for link in 0..LINKS_AT_MOST {
            let Some((need, missing)) = self.unmet(here, standing, known) else { break };
            let since =
                now.saturating_sub(self.blocked.get(here).copied().unwrap_or(now)).as_secs();
            let begin = if link == 0 { "waits for" } else { ", which waits for" };
            let on = match &need.on {
                Dependency::Object(on) => on,
                Dependency::Source(name) => {
                    let _ = write!(words, "{begin} source {name}: {missing} for {since} s");
                    break;
                }
                Dependency::Unclear(_) => {
                    let _ = write!(words, "{begin} what cannot be told: {missing}");
                    break;
                }
            };
            let _ = write!(words, "{begin} {on} ({})", need.why.words());
            if let Some(circle) = self.needs.circle(on) {
                let _ = write!(words, ", which needs itself: {circle}");
            } else if self.blocked.contains_key(on) && link + 1 < LINKS_AT_MOST {
                here = on;
                continue;
            } else {
                let _ = write!(words, ": {missing} for {since} s");
            }
            break;
        }
        words
    }
}

#[cfg(test)]
mod tests;
