//! How plugins behave: what each pass says of its plugin, and what a plugin's standing means for
//! the objects that it serves. The rules are `trimtab_core::quarantine`'s.

use super::settled::KeyState;
use super::{Engine, Passed};
use crate::plugins::{FaultCounts, Held, Served, Status, read_held, write_held};
use crate::timestamp::{now_ms, rfc3339};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use trimtab_core::decision::{Comparison, Difference, Verdict};
use trimtab_core::identity::{Digest, ObjectKey};
use trimtab_core::ports::{Judge, PluginFault};
use trimtab_core::quarantine::{FaultSort, Health, May, Standing, Turn};
use trimtab_core::record::{Outcome, Trigger};
use trimtab_core::snapshot::Snapshot;
use trimtab_wasm::Judgement;

/// How often new counts are written for people.
const TELL_EVERY: Duration = Duration::from_secs(5);
/// How often it is looked whether a person released a plugin, while one is held.
pub(super) const LOOK_FOR_RELEASE_EVERY: Duration = Duration::from_secs(1);

/// The health of every build in service.
pub(super) struct Healths {
    by_digest: HashMap<Digest, Health>,
    /// Who is not called, as it is on disk.
    kept: Vec<Held>,
    /// There are counts that were not written yet.
    untold: bool,
    told_at: Instant,
}

impl Healths {
    pub(super) fn new(now: Instant) -> Self {
        Self { by_digest: HashMap::new(), kept: Vec::new(), untold: false, told_at: now }
    }

    /// Goes on where the host before this one ended.
    ///
    /// # Errors
    /// It is not known whom that host did not call.
    pub(super) fn resume(&mut self, state: &Path) -> anyhow::Result<()> {
        self.by_digest.extend(read_held(state, now_ms())?);
        Ok(())
    }

    /// Keeps on disk who is not called, where that changed.
    fn keep(&mut self, state: &Path) {
        let mut held: Vec<Held> =
            self.by_digest.iter().filter_map(|(digest, health)| Held::of(digest, health)).collect();
        held.sort();
        if held == self.kept {
            return;
        }
        match write_held(state, &held) {
            Ok(()) => self.kept = held,
            Err(error) => tracing::warn!(
                "who is quarantined cannot be written, and would be called after a restart: {error:#}"
            ),
        }
    }

    /// Whether some plugin is not called at present.
    pub(super) fn some_held(&self) -> bool {
        self.by_digest.values().any(|health| *health.standing() != Standing::Serving)
    }
}

/// The plugin's judgement, with what came of it noted; or the reason why it is not asked.
pub(super) struct Watched {
    judgement: Result<Judgement, String>,
    noted: Mutex<Option<Result<(), FaultSort>>>,
}

impl Watched {
    pub(super) fn new(judgement: Result<Judgement, String>) -> Self {
        Self { judgement, noted: Mutex::default() }
    }

    /// What came of it; `None`: the plugin was not asked, or what came is not its doing.
    pub(super) fn into_noted(self) -> Option<Result<(), FaultSort>> {
        self.noted.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn plugin(&self) -> Result<&Judgement, PluginFault> {
        self.judgement.as_ref().map_err(|why| PluginFault::Held(why.clone()))
    }

    fn note<T>(&self, answer: Result<T, PluginFault>) -> Result<T, PluginFault> {
        let noted = match &answer {
            Ok(_) => Some(Ok(())),
            Err(fault) => FaultSort::of(fault).map(Err),
        };
        *self.noted.lock().unwrap_or_else(PoisonError::into_inner) = noted;
        answer
    }
}

impl Judge for Watched {
    async fn compare(&self, snapshot: &Snapshot) -> Result<Comparison, PluginFault> {
        self.note(self.plugin()?.compare(snapshot).await)
    }

    async fn decide(
        &self,
        snapshot: &Snapshot,
        differences: &[Difference],
    ) -> Result<Verdict, PluginFault> {
        self.note(self.plugin()?.decide(snapshot, differences).await)
    }

    fn secrets_read(&self) -> Vec<Arc<[u8]>> {
        self.judgement.as_ref().map(Judgement::secrets_read).unwrap_or_default()
    }
}

/// Why a pass does not ask its plugin, and when to look again; `None`: when somebody did something.
pub(super) struct Hold {
    pub(super) why: String,
    pub(super) again: Option<Duration>,
}

impl Engine {
    /// Whether this plugin may be asked now.
    pub(super) fn hold(&mut self, served: &Served) -> Option<Hold> {
        let health = self.healths.by_digest.entry(served.power.plugin.digest).or_default();
        let May::Wait(again) = health.may(now_ms()) else { return None };
        let why = why(&served.power.plugin.name, health)?;
        Some(Hold { why, again })
    }

    /// What an ended pass says of its plugin.
    pub(super) fn note_health(&mut self, passed: &Passed) {
        let Passed { key, record, noted, .. } = passed;
        let Some(health) = self.healths.by_digest.get_mut(&record.plugin.digest) else { return };
        // What the gate finds in an answer is the plugin's fault too.
        let noted = match (noted, &record.outcome) {
            (Some(Ok(())), Outcome::Fault(_)) => Some(Err(FaultSort::Invalid)),
            (noted, _) => *noted,
        };
        let text = match &noted {
            Some(Err(_)) => format!("{key}: {}", record.outcome.message()),
            _ => String::new(),
        };
        let answer = noted.map(|noted| noted.map_err(|sort| (sort, text.as_str())));
        let turn = health.ended(key, answer, now_ms());
        // Its first pass: it is no longer merely loaded.
        let first = noted.is_some() && health.counts().passes == 1;
        self.healths.untold |= noted.is_some();
        match (turn, first) {
            (Turn::Same, true) => self.tell_plugins(),
            _ => self.take_turn(record.plugin.digest, &record.plugin.name, turn),
        }
    }

    fn take_turn(&mut self, digest: Digest, name: &str, turn: Turn) {
        let why = self.healths.by_digest.get(&digest).and_then(|health| why(name, health));
        match turn {
            Turn::Same => return,
            Turn::Quarantined(_) | Turn::Refused => {
                // One that was meant for an earlier quarantine.
                let _ = std::fs::remove_file(release_file(&self.options.state, name));
                tracing::error!("{}", why.unwrap_or_default());
            }
            Turn::Serving => {
                tracing::info!("plugin {name} is called again");
                self.look_at_held(digest);
            }
        }
        self.tell_plugins();
    }

    /// Objects that waited for this plugin are looked at now.
    fn look_at_held(&mut self, digest: Digest) {
        let registry = self.parts.registry.borrow().clone();
        let waited = |(key, state): (&ObjectKey, &mut KeyState)| {
            let served = registry.for_kind(&key.group_kind)?;
            let its = state.held && served.power.plugin.digest == digest;
            its.then(|| {
                state.touched(Trigger::Plugin);
                key.clone()
            })
        };
        let keys: Vec<ObjectKey> = self.keys.iter_mut().filter_map(waited).collect();
        for key in keys {
            self.look_afresh(&key);
        }
    }

    /// Takes up what a person released.
    pub(super) fn take_releases(&mut self) {
        if !self.healths.some_held() {
            return;
        }
        let registry = self.parts.registry.borrow().clone();
        for served in registry.served() {
            let plugin = &served.power.plugin;
            if std::fs::remove_file(release_file(&self.options.state, &plugin.name)).is_err() {
                continue;
            }
            let health = self.healths.by_digest.get_mut(&plugin.digest);
            if health.is_some_and(Health::release) {
                self.take_turn(plugin.digest, &plugin.name, Turn::Serving);
            }
        }
    }

    /// Writes new counts, now and then.
    pub(super) fn tell_counts(&mut self) {
        if self.healths.untold && self.healths.told_at.elapsed() >= TELL_EVERY {
            self.tell_plugins();
        }
    }

    /// Writes the plugin list, and tells the journal what is other in it.
    pub(super) fn tell_plugins(&mut self) {
        self.healths.untold = false;
        self.healths.told_at = Instant::now();
        let registry = self.parts.registry.borrow().clone();
        self.healths.by_digest.retain(|digest, _| {
            registry.served().iter().any(|served| served.power.plugin.digest == *digest)
        });
        self.healths.keep(&self.options.state);
        let mut status = registry.status();
        self.describe(&mut status);
        if let Err(error) = crate::plugins::write_status(&self.options.state, &status) {
            tracing::warn!("the plugin list cannot be written: {error:#}");
        }
        self.signal_plugins(&self.plugins.changed(&status));
        for line in self.plugins.changes(&status) {
            if let Err(error) = self.parts.journal.plugin(line) {
                tracing::error!("{error}");
            }
        }
        self.plugins = status;
    }

    fn describe(&self, status: &mut Status) {
        for plugin in &mut status.plugins {
            let in_service = plugin.state != "refused";
            let asked = |health: &&Health| health.counts().passes > 0;
            let health = Digest::parse(&plugin.digest)
                .and_then(|digest| self.healths.by_digest.get(&digest));
            if in_service && health.filter(asked).is_none() {
                plugin.state = "loaded".into();
            }
            if let Some(health) = health {
                let counts = health.counts();
                plugin.passes = counts.passes;
                plugin.faults = FaultCounts {
                    traps: counts.traps,
                    deadlines: counts.deadlines,
                    limits: counts.limits,
                    invalid: counts.invalid,
                    impure: counts.impure,
                };
                plugin.last_fault = health.last_fault().map(str::to_owned);
                let state = match health.standing() {
                    Standing::Serving => None,
                    Standing::Quarantined { .. } => Some("quarantined"),
                    Standing::Refused => Some("refused"),
                };
                if let Some(state) = state {
                    plugin.state = state.into();
                    plugin.reason = why(&plugin.name, health).unwrap_or_default();
                }
            }
            let serves = matches!(plugin.state.as_str(), "observing" | "enforcing");
            if let Some(suspension) = self.suspended_plugins.get(&plugin.name).filter(|_| serves) {
                let name = &plugin.name;
                plugin.state = "suspended".into();
                plugin.reason = format!(
                    "it is not asked since {}: `trimtab plugin resume {name}` ends that",
                    rfc3339(suspension.since_ms)
                );
            }
            let before = self.plugins.plugins.iter().find(|old| {
                (&old.file, &old.state, &old.digest)
                    == (&plugin.file, &plugin.state, &plugin.digest)
            });
            plugin.since = match before {
                Some(before) => before.since.clone(),
                None => rfc3339(now_ms()),
            };
        }
    }
}

/// Why a plugin is not called; the same text as long as it is not.
fn why(name: &str, health: &Health) -> Option<String> {
    let last = health.last_fault().unwrap_or_default();
    match health.standing() {
        Standing::Serving => None,
        Standing::Quarantined { until_ms, pause, .. } => Some(format!(
            "plugin {name} is quarantined for {} until {}, after faults in a row; the last: {last}; put in a build that is right, or run `trimtab plugin release {name}`",
            text(*pause),
            rfc3339(*until_ms),
        )),
        Standing::Refused => Some(format!(
            "plugin {name} is refused, it is not pure: {last}; put in a build that is right, or run `trimtab plugin release {name}`"
        )),
    }
}

fn text(pause: Duration) -> String {
    format!("{} min", pause.as_secs() / 60)
}

/// Where `trimtab plugin release` says it.
pub(crate) fn release_file(state: &Path, plugin: &str) -> std::path::PathBuf {
    state.join(format!("release-{plugin}"))
}
