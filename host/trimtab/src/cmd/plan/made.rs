//! What a plan says: each object that something is to be done about, in order, and the digest over
//! exactly the changes that would be written.

use crate::config::SourceConfig;
use crate::engine::Approvals;
use crate::journal::DifferenceLine;
use crate::made;
use crate::plugins::Registry;
use crate::round::{Looked, Round};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use trimtab_core::approval;
use trimtab_core::decision::ActionKind;
use trimtab_core::gate::Planned;
use trimtab_core::grant::Mode;
use trimtab_core::identity::{Digest, ObjectKey};
use trimtab_core::object::Revision;
use trimtab_core::placing::rank;
use trimtab_core::prune::{self, Seen, Situation, SourceState, Step};
use trimtab_core::record::{Outcome, Record};

/// A plan.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Made {
    /// Over exactly the changes that would be written.
    pub(super) digest: String,
    pub(super) sources: Vec<SourceOf>,
    /// In the order in which they would be done; objects that are as declared are not among them.
    pub(super) changes: Vec<Item>,
    /// Objects that are as declared.
    pub(super) in_sync: usize,
    /// What could not be read or judged.
    #[serde(default)]
    pub(super) errors: Vec<String>,
}

/// One source, as it was read.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SourceOf {
    pub(super) name: String,
    pub(super) revision: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) author: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) signer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) subject: Option<String>,
    /// Why a host would not take this revision as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) would_be_refused: Option<String>,
}

/// One object that something is to be done about, or that cannot be as declared.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Item {
    pub(super) object: String,
    /// `create`, `change`, `recreate`, `adopt`, `delete`, `prune`, `status`; or what stands in the
    /// way: `left`, `refused`, `waiting`, `held`, `kept`, `unclaimed` and the other outcomes.
    pub(super) action: String,
    pub(super) source: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) origin: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) reason: String,
    /// Why nothing of it is written, though it is decided: no grant, observe mode, a person's word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) not_written: String,
    /// Why it waits for a person before it is written.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) approval: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) differences: Vec<DifferenceLine>,
    /// What a deletion takes with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) takes: Vec<String>,
    /// The change, by its digest; none where nothing would be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) digest: Option<String>,
    /// Of a deletion that is held: the set that it is held in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) held: Option<String>,
    /// In which turn it comes.
    #[serde(skip)]
    turn: (u8, u8),
}

impl Item {
    /// Whether something would be written, now or after a person's word.
    pub(super) fn is_one(&self) -> bool {
        self.digest.is_some()
    }
}

impl Made {
    pub(super) fn source(
        &mut self,
        source: &SourceConfig,
        revision: &Revision,
        would_be_refused: Option<String>,
    ) {
        let text = |it: &Option<Arc<str>>| it.as_deref().map(str::to_owned);
        let provenance = &revision.provenance;
        self.sources.push(SourceOf {
            name: source.name.clone(),
            revision: revision.id.to_string(),
            author: text(&provenance.author),
            signer: provenance
                .signer
                .as_ref()
                .map(|it| format!("{} ({})", it.principal, it.fingerprint)),
            subject: text(&provenance.message_subject),
            would_be_refused,
        });
    }

    pub(super) fn error(&mut self, text: String) {
        self.errors.push(text);
    }

    /// What the passes found; `sources` with the terms that a host holds them to.
    pub(super) fn looked(
        &mut self,
        round: &Round,
        sources: &[Arc<SourceConfig>],
        registry: &Registry,
    ) {
        self.errors.extend(round.errors.iter().map(ToString::to_string));
        for refused in &round.refused {
            self.changes.push(Item {
                origin: refused.origin.clone(),
                ..Item::of(&refused.object, "refused", &refused.source, &refused.reason)
            });
        }
        for (manifest, reason) in &round.unplaced {
            let object = format!("{} {}", manifest.gvk, manifest.name);
            self.changes.push(Item {
                origin: manifest.origin.to_string(),
                ..Item::of(&object, "waiting", "", reason)
            });
        }
        for desired in &round.unclaimed {
            let why = format!("no plugin claims {}", desired.key.group_kind);
            self.changes.push(Item {
                origin: desired.origin.to_string(),
                ..Item::of(&desired.key.to_string(), "unclaimed", &desired.source, &why)
            });
        }
        for looked in &round.looked {
            let source = sources.iter().find(|it| *it.name == *looked.desired.source);
            match source.and_then(|source| change(looked, source, registry)) {
                Some(change) => self.changes.push(change),
                None => self.in_sync += 1,
            }
        }
    }

    /// What left its source, by the inventory.
    pub(super) async fn pruned(
        &mut self,
        round: &Round,
        revisions: &[(Arc<SourceConfig>, Revision)],
        namespace: &str,
    ) {
        let declared: HashMap<&ObjectKey, &Arc<str>> = round
            .looked
            .iter()
            .map(|looked| (&looked.desired.key, &looked.desired.source))
            .chain(round.unclaimed.iter().map(|desired| (&desired.key, &desired.source)))
            .collect();
        let all = match made::read(&round.store, namespace).await {
            Ok(all) => all,
            Err(why) => {
                if revisions.iter().any(|(source, _)| source.terms.prune) {
                    self.error(why);
                }
                return;
            }
        };
        for (config, revision) in revisions {
            let Some(kept) = all.get(config.name.as_str()) else { continue };
            if let Some(why) = &kept.corrupt {
                self.error(why.clone());
                continue;
            }
            let own = |source: &Arc<str>| **source == *config.name;
            let gone: Vec<&ObjectKey> = kept
                .inventory
                .iter()
                .map(|(key, _)| key)
                .filter(|key| !declared.get(key).is_some_and(|source| own(source)))
                .collect();
            if gone.is_empty() {
                continue;
            }
            let mut seen = HashMap::new();
            for key in gone {
                seen.insert(key.clone(), round.store.read_now(key).await.1);
            }
            let whole = round.refused.iter().all(|refused| refused.source != config.name)
                && round.unplaced.is_empty();
            let state = match whole {
                true => SourceState::InForce(revision.id.clone()),
                false => {
                    SourceState::Not("objects of it are refused or wait for their kind".into())
                }
            };
            let declares = declared.values().filter(|source| own(source)).count();
            let mut contents = HashMap::new();
            let plan = loop {
                let now = Situation {
                    inventory: &kept.inventory,
                    state: &state,
                    declares,
                    terms: &config.terms,
                    seen: &seen,
                    contents: &contents,
                };
                let plan = prune::plan(&now, |key| declared.get(key).map(|it| (*it).clone()));
                let look = plan.steps.iter().find_map(|(key, step)| match (step, seen.get(key)) {
                    (Step::Look, Some(Seen::Live(live))) => Some((key.clone(), live.clone())),
                    _ => None,
                });
                let Some((key, live)) = look else { break plan };
                let found = round.store.contents(&key, &live).await;
                contents.insert(key, found);
            };
            for (at, (key, step)) in plan.steps.iter().enumerate() {
                self.changes.extend(deletion(config, key, step, seen.get(key), at));
            }
        }
    }

    /// Puts everything in order, and its digest under it.
    pub(super) fn finish(&mut self) {
        self.changes.sort_by(|a, b| (a.turn, &a.object).cmp(&(b.turn, &b.object)));
        let mut text = String::from("trimtab-plan/v1\n");
        for source in &self.sources {
            text.push_str(&format!("source {} {}\n", source.name, source.revision));
        }
        let mut digests: Vec<&str> =
            self.changes.iter().filter_map(|change| change.digest.as_deref()).collect();
        digests.sort_unstable();
        digests.iter().for_each(|digest| text.push_str(&format!("{digest}\n")));
        self.digest = Digest::of(text.as_bytes()).to_string();
    }

    /// What an approval of the whole plan lets through.
    pub(super) fn approved(&self) -> Approvals {
        let digests = |prunes: bool| {
            let of = move |change: &&Item| (change.action == "prune") == prunes;
            let changes = self.changes.iter().filter(of);
            changes.filter_map(|change| Digest::parse(change.digest.as_deref()?))
        };
        Approvals {
            changes: Arc::new(digests(false).collect()),
            deletions: digests(true).collect(),
            only: false,
        }
    }

    /// Sets of deletions that are held: source and digest.
    pub(super) fn held(&self) -> Vec<(String, String)> {
        let mut held: Vec<(String, String)> = self
            .changes
            .iter()
            .filter_map(|change| Some((change.source.clone(), change.held.clone()?)))
            .collect();
        held.sort();
        held.dedup();
        held
    }

    /// What is other now than in that plan, object by object.
    pub(super) fn moved_since(&self, then: &Self) -> String {
        let mut text = String::new();
        for (now, before) in self.sources.iter().filter_map(|now| {
            let before = then.sources.iter().find(|it| it.name == now.name)?;
            (before.revision != now.revision).then_some((now, before))
        }) {
            text.push_str(&format!(
                "  source {}: revision {} then, {} now\n",
                now.name, before.revision, now.revision
            ));
        }
        let by_object = |plan: &Self| -> BTreeMap<String, (String, Option<String>)> {
            let of = |it: &Item| (it.object.clone(), (it.action.clone(), it.digest.clone()));
            plan.changes.iter().filter(|it| it.is_one()).map(of).collect()
        };
        let (before, now) = (by_object(then), by_object(self));
        for (object, (action, digest)) in &now {
            match before.get(object) {
                Some((_, same)) if same == digest => {}
                Some(_) => {
                    text.push_str(&format!("  {object}: {action}, in another way than then\n"))
                }
                None => text.push_str(&format!("  {object}: {action} now, and nothing then\n")),
            }
        }
        for (object, (action, _)) in before.iter().filter(|(object, _)| !now.contains_key(*object))
        {
            text.push_str(&format!("  {object}: {action} then, and nothing now\n"));
        }
        if text.is_empty() {
            text.push_str("  what is planned is the same, and the order of sources is another\n");
        }
        text.push_str(&format!("the plan is now {}", self.digest));
        text
    }
}

impl Item {
    fn of(object: &str, action: &str, source: &str, reason: &str) -> Self {
        Self {
            object: object.to_owned(),
            action: action.to_owned(),
            source: source.to_owned(),
            origin: String::new(),
            reason: reason.to_owned(),
            not_written: String::new(),
            approval: String::new(),
            differences: vec![],
            takes: vec![],
            digest: None,
            held: None,
            turn: (0, u8::MAX),
        }
    }
}

/// What a pass would do; `None`: the object is as declared.
fn change(looked: &Looked, source: &SourceConfig, registry: &Registry) -> Option<Item> {
    let record = &looked.record;
    if record.outcome.converged() {
        return None;
    }
    let is_planned = matches!(record.outcome, Outcome::Observed);
    let action = match is_planned {
        true => word(&record.planned),
        false => record.outcome.as_str(),
    };
    let reason = match is_planned {
        true => String::new(),
        false => why(record),
    };
    let not_written = match is_planned {
        true => not_written(record, source, registry),
        false => String::new(),
    };
    let digest = (is_planned && not_written.is_empty()).then(|| approval::digest(record));
    let asks = source.terms.approval.asks(&record.key, &record.planned, None);
    Some(Item {
        origin: record.origin.to_string(),
        approval: asks.filter(|_| digest.is_some()).unwrap_or_default(),
        not_written,
        differences: record.differences.iter().map(Into::into).collect(),
        takes: record.planned.iter().flat_map(|planned| planned.takes.clone()).collect(),
        digest: digest.map(|digest| digest.to_string()),
        turn: (0, rank(&record.key.group_kind)),
        ..Item::of(&record.key.to_string(), action, &record.source, &reason)
    })
}

fn why(record: &Record) -> String {
    let mut words = vec![record.outcome.message()];
    words.extend(record.refusals.iter().map(ToString::to_string));
    words.retain(|word| !word.is_empty());
    words.join("; ")
}

fn word(planned: &[Planned]) -> &'static str {
    let any = |kind| planned.iter().any(|it| it.action == kind);
    if any(ActionKind::Recreate) {
        "recreate"
    } else if any(ActionKind::Delete) {
        "delete"
    } else if planned.iter().any(|it| it.creates) {
        "create"
    } else if any(ActionKind::Adopt) {
        "adopt"
    } else if planned.iter().all(|it| it.action == ActionKind::PatchStatus) {
        "status"
    } else {
        "change"
    }
}

/// Why a host would not write what is decided.
fn not_written(record: &Record, source: &SourceConfig, registry: &Registry) -> String {
    let power = registry.for_kind(&record.key.group_kind).map(|served| &served.power);
    let name = &record.plugin.name;
    if source.suspend {
        return format!("source {} is suspended", source.name);
    }
    if source.terms.mode == Mode::Observe {
        return format!("source {} observes", source.name);
    }
    match power {
        Some(power) if power.grant.is_none() => format!("plugin {name} has no grant: it observes"),
        Some(power) if power.mode_for(&record.key) == Mode::Observe => {
            format!("the grant of plugin {name} says observe")
        }
        _ => String::new(),
    }
}

/// What becomes of one object that its source declares no more.
fn deletion(
    config: &SourceConfig,
    key: &ObjectKey,
    step: &Step,
    seen: Option<&Seen>,
    at: usize,
) -> Option<Item> {
    let (action, reason, held) = match step {
        Step::Forget(_) => return None,
        Step::Delete | Step::Look => ("prune", String::new(), None),
        Step::Wait(why) => ("prune", why.clone(), None),
        Step::Going(what) => ("going", what.clone(), None),
        Step::Held(held) => ("held", held.reason.clone(), Some(held.digest.to_string())),
        Step::Keep(why) => ("kept", why.clone(), None),
    };
    let observes = config.terms.mode == Mode::Observe || config.suspend;
    let uid = match seen {
        Some(Seen::Live(live)) => Some(&*live.uid),
        _ => None,
    };
    let writes = matches!(action, "prune" | "held") && !observes;
    let digest = uid.filter(|_| writes).map(|uid| approval::deletion(&config.name, key, uid));
    let by_rule = config.terms.approval.deletes && digest.is_some();
    Some(Item {
        approval: match (&held, by_rule) {
            (Some(_), _) => "a person has to allow it".into(),
            (None, true) => "deletions of its source wait for a person".into(),
            (None, false) => String::new(),
        },
        not_written: match matches!(action, "prune" | "held") && observes {
            true => format!("source {} observes", config.name),
            false => String::new(),
        },
        digest: digest.map(|digest| digest.to_string()),
        held,
        turn: (1, u8::try_from(at).unwrap_or(u8::MAX)),
        ..Item::of(&key.to_string(), action, &config.name, &reason)
    })
}
