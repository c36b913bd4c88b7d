//! What is desired now: the last good revision of each source, placed by discovery, and all of them
//! put together.
//!
//! Two sources that declare one object are not obeyed there: it stays with the one that had it, and
//! if none had it nobody applies it. The rest of both is not touched by that.

use crate::config::SourceConfig;
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use trimtab_core::denial::{self, Accounts};
use trimtab_core::identity::{GroupKind, Gvk, ObjectKey};
use trimtab_core::object::{Desired, Manifest, Revision};
use trimtab_core::placing::{self, PlacingError, Scope};
use trimtab_kube::{Kinds, Lookup};

/// Objects by identity, and what of the sources is not among them.
#[derive(Default)]
pub(crate) struct DesiredState {
    pub(crate) objects: HashMap<ObjectKey, Arc<Desired>>,
    /// Manifests whose kind the API server does not serve (yet).
    pub(crate) unplaced: Vec<Unplaced>,
    /// Objects that a source declares and may not have.
    pub(crate) refused: Vec<Refused>,
    /// Objects that are under review: what was in force of them, if anything, stays meanwhile.
    pub(crate) reviewing: HashSet<ObjectKey>,
    /// Service accounts that each source declares.
    pub(crate) accounts: HashMap<Arc<str>, Arc<Accounts>>,
}

/// One source's part.
#[derive(Default)]
pub(crate) struct Placed {
    objects: Vec<(Arc<[u8]>, Arc<Desired>)>,
    unplaced: Vec<Unplaced>,
    refused: Vec<Refused>,
}

/// A manifest that waits for its kind.
#[derive(Clone)]
pub(crate) struct Unplaced {
    pub(crate) source: Arc<str>,
    pub(crate) manifest: Manifest,
    pub(crate) reason: String,
}

/// An object that is not taken from its source, while the rest is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, serde::Deserialize)]
pub(crate) struct Refused {
    /// The source that declares it.
    pub(crate) source: String,
    /// Which object.
    pub(crate) object: String,
    /// Where it is declared.
    pub(crate) origin: String,
    /// Why, and what to do.
    pub(crate) reason: String,
}

/// What changed from one state to the next.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Objects that are new or state something else, or whose source is held to something else.
    pub(crate) changed: Vec<ObjectKey>,
    /// Objects that another source declares from now on.
    pub(crate) handed_over: Vec<ObjectKey>,
    /// Objects that no source declares any more.
    pub(crate) gone: Vec<ObjectKey>,
}

/// Places a revision of one source. What `before` placed of the same bytes under the same
/// configuration is taken from there.
///
/// # Errors
/// Every object that cannot be placed, or that the source declares twice: the revision is refused
/// whole. What lies outside the source's reach is refused alone, and named.
pub(crate) fn place(
    revision: &Revision,
    kinds: &Kinds,
    source: &SourceConfig,
    before: Option<&Placed>,
) -> Result<Placed, Vec<PlacingError>> {
    let known = before.map(|before| before.by_bytes(source)).unwrap_or_default();
    let mut placed = Placed::default();
    let mut errors = Vec::new();
    for manifest in &revision.manifests {
        let scope = match kinds.lookup(&manifest.gvk) {
            Lookup::Found(kind) if kind.namespaced => Scope::Namespaced,
            Lookup::Found(_) => Scope::Cluster,
            Lookup::NotServed => {
                placed.waits(manifest, source, not_served(&manifest.gvk));
                continue;
            }
            Lookup::Unknown(reason) => {
                placed.waits(manifest, source, reason.into());
                continue;
            }
        };
        let same = known.get(&manifest.json.as_ptr()).filter(|old| {
            old.key.namespace.is_some() == (scope == Scope::Namespaced) && old.gvk == manifest.gvk
        });
        let desired = match same {
            Some(old) => Ok(Desired {
                revision: revision.id.clone(),
                origin: manifest.origin.clone(),
                ..(***old).clone()
            }),
            None => {
                placing::place_under(&source.terms, revision, manifest, scope, &source.namespace)
                    .map(|mut desired| {
                        desired.ignore.extend(&source.ignore, &desired.key);
                        desired
                    })
            }
        };
        match desired {
            Ok(desired) => placed.objects.push((manifest.json.clone(), Arc::new(desired))),
            Err(PlacingError::Outside { origin, key, message }) => placed.refused.push(Refused {
                source: source.name.clone(),
                object: key.to_string(),
                origin: origin.to_string(),
                reason: message,
            }),
            Err(error) => errors.push(error),
        }
    }
    errors.extend(placing::duplicates(placed.objects.iter().map(|(_, desired)| desired)));
    if errors.is_empty() { Ok(placed) } else { Err(errors) }
}

impl Placed {
    /// How many objects it has, those that wait or are refused included.
    pub(crate) fn len(&self) -> usize {
        self.objects.len() + self.unplaced.len() + self.refused.len()
    }

    /// What a revision of this source may have in common, by where its bytes lie: they are shared
    /// with the revision before where the source knows that a file is the same.
    fn by_bytes(&self, source: &SourceConfig) -> HashMap<*const u8, &Arc<Desired>> {
        let same =
            |(_, desired): &&(Arc<[u8]>, Arc<Desired>)| Arc::ptr_eq(&desired.terms, &source.terms);
        let own = self.objects.iter().filter(same);
        own.map(|(json, desired)| (json.as_ptr(), desired)).collect()
    }

    /// What could be placed of it.
    pub(crate) fn objects(&self) -> impl Iterator<Item = &Arc<Desired>> {
        self.objects.iter().map(|(_, desired)| desired)
    }

    fn waits(&mut self, manifest: &Manifest, source: &SourceConfig, reason: String) {
        let source = source.name.as_str().into();
        self.unplaced.push(Unplaced { source, manifest: manifest.clone(), reason });
    }
}

impl DesiredState {
    /// All sources together. `holder` says which source had an object until now.
    pub(crate) fn of<'p>(
        sources: impl Iterator<Item = &'p Placed>,
        holder: impl Fn(&ObjectKey) -> Option<Arc<str>>,
    ) -> Self {
        let mut state = Self::default();
        let mut rivals: HashMap<ObjectKey, Vec<Arc<Desired>>> = HashMap::new();
        for placed in sources {
            state.unplaced.extend(placed.unplaced.iter().cloned());
            state.refused.extend(placed.refused.iter().cloned());
            for (_, desired) in &placed.objects {
                let before = state.objects.insert(desired.key.clone(), desired.clone());
                if let Some(before) = before {
                    let all = rivals.entry(desired.key.clone()).or_insert_with(|| vec![before]);
                    all.push(desired.clone());
                }
            }
        }
        for (key, all) in rivals {
            let holder = holder(&key);
            let held = all.iter().find(|it| holder.as_ref() == Some(&it.source));
            match held {
                Some(held) => state.objects.insert(key, held.clone()),
                None => state.objects.remove(&key),
            };
            let refused = all.iter().filter(|it| held.is_none_or(|held| !Arc::ptr_eq(it, held)));
            state.refused.extend(refused.map(|it| refusal(it, &all, held)));
        }
        state.refused.sort();
        state.accounts = accounts(state.objects.values());
        state
    }

    /// Takes out what `silent` says another source has of which nothing is in force: whether that
    /// still declares it is not known.
    pub(crate) fn leave_to(&mut self, silent: impl Fn(&Desired) -> Option<Arc<str>>) {
        let theirs = self.objects.extract_if(|_, desired| silent(desired).is_some());
        let refused = theirs.filter_map(|(key, desired)| {
            let owner = silent(&desired)?;
            let reason = format!(
                "it was made for source {owner}, of which nothing is in force now: it is left alone until that can be read or is taken out of the configuration"
            );
            let (source, origin) = (desired.source.to_string(), desired.origin.to_string());
            Some(Refused { source, object: key.to_string(), origin, reason })
        });
        self.refused.extend(refused);
        self.refused.sort();
        self.accounts = accounts(self.objects.values());
    }

    /// In place of what is declared of an object: what was in force before, or nothing.
    pub(crate) fn withhold(&mut self, key: &ObjectKey, last_good: Option<&Arc<Desired>>) {
        let Some(declared) = self.objects.remove(key) else { return };
        let Some(old) = last_good.filter(|old| old.source == declared.source) else { return };
        let kept = match Arc::ptr_eq(&old.terms, &declared.terms) {
            true => old.clone(),
            // What it says is of before; what its source is held to is of now.
            false => Arc::new(Desired { terms: declared.terms.clone(), ..(**old).clone() }),
        };
        self.objects.insert(key.clone(), kept);
    }

    /// To be called when objects were withheld.
    pub(crate) fn count_accounts(&mut self) {
        self.accounts = accounts(self.objects.values());
    }

    /// Service accounts that this source declares.
    pub(crate) fn accounts(&self, source: &str) -> Arc<Accounts> {
        self.accounts.get(source).cloned().unwrap_or_default()
    }

    /// What is different in `next`.
    pub(crate) fn changes(&self, next: &Self) -> Changes {
        let differs = |(key, desired): &(&ObjectKey, &Arc<Desired>)| {
            let Some(old) = self.objects.get(*key) else { return true };
            // Whose account is foreign depends on which are declared.
            let accounts = denial::runs_pods(&key.group_kind)
                && self.accounts.get(&old.source) != next.accounts.get(&desired.source);
            accounts || old.digest != desired.digest || !Arc::ptr_eq(&old.terms, &desired.terms)
        };
        let mut changed: Vec<ObjectKey> =
            next.objects.iter().filter(differs).map(|(key, _)| key.clone()).collect();
        changed.sort();
        let other_source = |key: &&ObjectKey| {
            let (old, new) = (self.objects.get(*key), next.objects.get(*key));
            old.zip(new).is_some_and(|(old, new)| old.source != new.source)
        };
        let handed_over = changed.iter().filter(other_source).cloned().collect();
        let gone = |key: &&ObjectKey| !next.objects.contains_key(*key);
        let mut gone: Vec<ObjectKey> = self.objects.keys().filter(gone).cloned().collect();
        gone.sort();
        Changes { changed, handed_over, gone }
    }
}

fn accounts<'d>(
    objects: impl Iterator<Item = &'d Arc<Desired>>,
) -> HashMap<Arc<str>, Arc<Accounts>> {
    let kind = GroupKind::new("", "ServiceAccount");
    let mut all: HashMap<Arc<str>, Accounts> = HashMap::new();
    for desired in objects.filter(|desired| desired.key.group_kind == kind) {
        all.entry(desired.source.clone()).or_default().insert(desired.key.clone());
    }
    all.into_iter().map(|(source, accounts)| (source, Arc::new(accounts))).collect()
}

/// Why this declaration of an object that several sources declare is not obeyed.
fn refusal(it: &Desired, all: &[Arc<Desired>], held: Option<&Arc<Desired>>) -> Refused {
    let places: Vec<String> =
        all.iter().map(|each| format!("source {} ({})", each.source, each.origin)).collect();
    let (key, places) = (&it.key, places.join(" and "));
    let end = match held {
        Some(held) => format!("it stays with {}, which had it before", held.source),
        None => "none of them had it before, and it is applied for neither".to_owned(),
    };
    Refused {
        source: it.source.to_string(),
        object: key.to_string(),
        origin: it.origin.to_string(),
        reason: format!("declared twice, by {places}: {end}; take it out of all but one"),
    }
}

fn not_served(gvk: &Gvk) -> String {
    format!(
        "the API server serves no {gvk}: apply its CustomResourceDefinition, or correct apiVersion and kind"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_core::identity::Digest;
    use trimtab_core::object::Origin;

    fn placed(source: &str, names: &[&str]) -> Placed {
        let terms = Arc::default();
        let object = |name: &&str| {
            let json: Arc<[u8]> = format!("{source} {name}").into_bytes().into();
            let desired = Desired {
                key: ObjectKey::new(GroupKind::new("", "ConfigMap"), "n", name),
                gvk: Gvk::from_api_version("v1", "ConfigMap"),
                digest: Digest::of(&json),
                json: json.clone(),
                source: source.into(),
                revision: "r".into(),
                origin: Origin { file: format!("{source}.yaml").into(), line: 1 },
                ignore: Default::default(),
                terms: Arc::clone(&terms),
            };
            (json, Arc::new(desired))
        };
        Placed { objects: names.iter().map(object).collect(), ..Placed::default() }
    }

    fn sources(state: &DesiredState) -> Vec<(String, String)> {
        let mut all: Vec<_> = state
            .objects
            .iter()
            .map(|(key, desired)| (key.name.to_string(), desired.source.to_string()))
            .collect();
        all.sort();
        all
    }

    fn pair(name: &str, source: &str) -> (String, String) {
        (name.into(), source.into())
    }

    #[test]
    fn an_object_of_two_sources_is_nobodys_and_both_are_named_and_the_rest_flows() {
        let (a, b) = (placed("a", &["one", "both"]), placed("b", &["both", "two"]));
        let state = DesiredState::of([&a, &b].into_iter(), |_| None);
        assert_eq!(sources(&state), [pair("one", "a"), pair("two", "b")]);
        assert_eq!(state.refused.len(), 2);
        for refused in &state.refused {
            assert!(refused.reason.contains("source a (a.yaml:1) and source b (b.yaml:1)"));
        }
    }

    #[test]
    fn an_object_stays_with_the_source_that_had_it_and_is_handed_over_when_that_drops_it() {
        let (a, b) = (placed("a", &["both"]), placed("b", &["both"]));
        let first = DesiredState::of([&b].into_iter(), |_| None);
        let holder = |key: &ObjectKey| first.objects.get(key).map(|it| it.source.clone());
        let second = DesiredState::of([&a, &b].into_iter(), holder);
        assert_eq!(sources(&second), [pair("both", "b")]);
        assert_eq!(second.refused[0].source, "a");
        assert_eq!(first.changes(&second), Changes::default());
        let third = DesiredState::of([&a].into_iter(), |_| None);
        let changes = second.changes(&third);
        assert_eq!((changes.handed_over.len(), changes.gone.len()), (1, 0));
        assert_eq!(sources(&third), [pair("both", "a")]);
    }

    #[test]
    fn what_was_made_for_a_source_that_is_silent_goes_to_no_other() {
        let a = placed("a", &["one", "theirs"]);
        let mut state = DesiredState::of([&a].into_iter(), |_| None);
        state.leave_to(|desired| (&*desired.key.name == "theirs").then(|| "b".into()));
        assert_eq!(sources(&state), [pair("one", "a")]);
        assert!(state.refused[0].source == "a" && state.refused[0].reason.contains("source b"));
    }

    #[test]
    fn what_a_source_is_held_to_counts_as_a_change_of_all_that_it_declares() {
        let (a, other) = (placed("a", &["one"]), placed("a", &["one"]));
        let old = DesiredState::of([&a].into_iter(), |_| None);
        assert_eq!(old.changes(&DesiredState::of([&a].into_iter(), |_| None)), Changes::default());
        let new = DesiredState::of([&other].into_iter(), |_| None);
        assert_eq!(old.changes(&new).changed.len(), 1);
    }
}
