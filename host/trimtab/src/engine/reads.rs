//! Reads of related objects: which kinds are watched for them, and who is to be judged anew when
//! one of what was read changes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use trimtab_core::grant::Power;
use trimtab_core::identity::{GroupKind, Gvk, ObjectKey};
use trimtab_core::plugin::KindPattern;
use trimtab_core::reads::{Read, Reads};
use trimtab_core::redact::is_sensitive;

/// Who read what in its last pass.
#[derive(Debug, Default)]
pub(super) struct Readers {
    reads: HashMap<ObjectKey, Vec<Read>>,
    by_object: HashMap<ObjectKey, HashSet<ObjectKey>>,
    /// By kind, then namespace: looked up without an allocation.
    by_kind: HashMap<GroupKind, HashMap<Arc<str>, HashSet<ObjectKey>>>,
}

impl Readers {
    /// This object's last pass read this, and nothing else.
    pub(super) fn set(&mut self, reader: &ObjectKey, reads: &Reads) {
        self.forget(reader);
        if reads.is_empty() {
            return;
        }
        for read in reads.iter() {
            match read {
                Read::Object(key) => self.by_object.entry(key.clone()).or_default(),
                Read::All(kind, namespace) => {
                    let namespaces = self.by_kind.entry(kind.clone()).or_default();
                    namespaces.entry(namespace.clone()).or_default()
                }
            }
            .insert(reader.clone());
        }
        self.reads.insert(reader.clone(), reads.iter().cloned().collect());
    }

    /// This object is of no interest any more.
    pub(super) fn forget(&mut self, reader: &ObjectKey) {
        for read in self.reads.remove(reader).into_iter().flatten() {
            match read {
                Read::Object(key) => {
                    if let Some(readers) = self.by_object.get_mut(&key) {
                        readers.remove(reader);
                        if readers.is_empty() {
                            self.by_object.remove(&key);
                        }
                    }
                }
                Read::All(kind, namespace) => {
                    let Some(namespaces) = self.by_kind.get_mut(&kind) else { continue };
                    if let Some(readers) = namespaces.get_mut(&namespace) {
                        readers.remove(reader);
                        if readers.is_empty() {
                            namespaces.remove(&namespace);
                        }
                    }
                    if namespaces.is_empty() {
                        self.by_kind.remove(&kind);
                    }
                }
            }
        }
    }

    /// Who read this object, by its name or among all of its kind.
    pub(super) fn of(&self, key: &ObjectKey) -> Vec<ObjectKey> {
        if self.reads.is_empty() {
            return Vec::new();
        }
        let by_kind = self.by_kind.get(&key.group_kind);
        let by_kind = by_kind.and_then(|namespaces| namespaces.get(key.namespace_str()));
        by_kind.into_iter().chain(self.by_object.get(key)).flatten().cloned().collect()
    }

    /// Who read anything of this kind.
    pub(super) fn of_kind(&self, gvk: &Gvk) -> Vec<ObjectKey> {
        let is_it = |read: &Read| {
            let kind = match read {
                Read::Object(key) => &key.group_kind,
                Read::All(kind, _) => kind,
            };
            kind.group == gvk.group && kind.kind == gvk.kind
        };
        let readers = self.reads.iter().filter(|(_, reads)| reads.iter().any(is_it));
        readers.map(|(reader, _)| reader.clone()).collect()
    }
}

/// What is to be watched because plugins may read it.
#[derive(Debug, Default)]
pub(crate) struct ForReads {
    /// Kinds, each with the namespaces (empty: cluster-scoped) of which all objects are wanted.
    pub(crate) whole: HashMap<Gvk, HashSet<Arc<str>>>,
    /// By the kind that is judged: the kinds that have to have an answer before.
    pub(super) before: HashMap<GroupKind, Vec<Gvk>>,
}

impl ForReads {
    /// Kinds that the manifest of an object's plugin names one by one and its grant reaches, in
    /// the object's own namespace. Secrets never: they are read where a source declares them.
    ///
    /// `power_for` gives what serves a kind; `served` the version in which a kind is served and
    /// whether its objects belong to namespaces.
    pub(crate) fn of<'d, 'p>(
        objects: impl Iterator<Item = &'d ObjectKey>,
        power_for: impl Fn(&GroupKind) -> Option<&'p Power>,
        served: impl Fn(&GroupKind) -> Option<(Gvk, bool)>,
    ) -> Self {
        let mut wanted = Self::default();
        let mut done: HashSet<(&GroupKind, Option<&str>)> = HashSet::new();
        for key in objects {
            if !done.insert((&key.group_kind, key.namespace.as_deref())) {
                continue;
            }
            let Some(power) = power_for(&key.group_kind) else { continue };
            for read in &power.manifest.reads {
                let KindPattern::Exact(read) = read else { continue };
                let Some((gvk, namespaced)) = served(read) else { continue };
                let namespace = match &key.namespace {
                    Some(namespace) if namespaced => namespace.clone(),
                    None if namespaced => continue,
                    _ => Arc::default(),
                };
                let related = ObjectKey::new(read.clone(), &namespace, "");
                if is_sensitive(read) || !power.may_read(&related) {
                    continue;
                }
                let before = wanted.before.entry(key.group_kind.clone()).or_default();
                if !before.contains(&gvk) {
                    before.push(gvk.clone());
                }
                wanted.whole.entry(gvk).or_default().insert(namespace);
            }
        }
        wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use trimtab_core::grant::{Grant, Mode, Namespaces};
    use trimtab_core::identity::Digest;
    use trimtab_core::plugin::{PluginIdentity, PluginManifest};
    use trimtab_core::reads::Seen;

    fn key(kind: &str, name: &str) -> ObjectKey {
        ObjectKey::new(GroupKind::new("", kind), "s", name)
    }

    #[test]
    fn who_read_an_object_is_found_by_its_name_and_among_all_of_its_kind() {
        let mut readers = Readers::default();
        let mut reads = Reads::default();
        reads.add(Read::Object(key("Service", "a")), Seen::Absent);
        readers.set(&key("Deployment", "by-name"), &reads);
        let mut reads = Reads::default();
        reads.add(Read::All(GroupKind::new("", "Service"), "s".into()), Seen::Unknown);
        readers.set(&key("Deployment", "all"), &reads);
        let found = |key: &ObjectKey| {
            let mut found: Vec<_> = readers.of(key).iter().map(ToString::to_string).collect();
            found.sort();
            found
        };
        assert_eq!(found(&key("Service", "a")), ["Deployment s/all", "Deployment s/by-name"]);
        assert_eq!(found(&key("Service", "b")), ["Deployment s/all"]);
        assert!(found(&key("Secret", "a")).is_empty());
        assert_eq!(readers.of_kind(&Gvk::from_api_version("v1", "Service")).len(), 2);

        // The next pass read nothing.
        readers.set(&key("Deployment", "all"), &Reads::default());
        readers.forget(&key("Deployment", "by-name"));
        assert!(readers.of(&key("Service", "a")).is_empty());
        assert!(readers.by_kind.is_empty() && readers.by_object.is_empty());
    }

    /// A plugin that reads these kinds, and may reach these.
    fn power(reads: &[&str], granted: &[&str]) -> Power {
        let patterns = |list: &[&str]| -> Vec<KindPattern> {
            list.iter().map(|it| KindPattern::parse(it).unwrap()).collect()
        };
        let digest = Digest::of(b"x");
        let (name, version) = ("reader".to_owned(), "0.1.0".to_owned());
        Power {
            plugin: PluginIdentity { name: name.clone(), version: version.clone(), digest },
            manifest: PluginManifest {
                name: name.clone(),
                version,
                description: String::new(),
                wit: "0.1.0".into(),
                claims: vec![KindPattern::Any],
                reads: patterns(reads),
                actions: BTreeSet::new(),
            },
            grant: Some(Grant {
                plugin: name,
                digest,
                mode: Mode::Enforce,
                kinds: patterns(granted),
                namespaces: Namespaces::Only(["s".to_owned()].into()),
                cluster_scoped: true,
                predecessors: BTreeSet::new(),
                terms: Default::default(),
                actions: BTreeSet::new(),
                origin: "test".into(),
            }),
        }
    }

    /// What is watched because of this plugin, for an object in each of these namespaces.
    fn watched(power: &Power, namespaces: &[&str]) -> Vec<String> {
        let keys = namespaces.iter().map(|it| ObjectKey::new(GroupKind::new("", "A"), it, "a"));
        let keys: Vec<ObjectKey> = keys.collect();
        let served = |kind: &GroupKind| {
            let gvk =
                Gvk { group: kind.group.clone(), version: "v1".into(), kind: kind.kind.clone() };
            (&*kind.kind != "Gone").then(|| (gvk, &*kind.kind != "Node"))
        };
        let ForReads { whole, before } = ForReads::of(keys.iter(), |_| Some(power), served);
        assert_eq!(whole.is_empty(), before.is_empty());
        let shown = |(gvk, names): (&Gvk, &HashSet<Arc<str>>)| {
            names.iter().map(|name| format!("{} in {name:?}", gvk.kind)).collect::<Vec<_>>()
        };
        let mut shown: Vec<String> = whole.iter().flat_map(shown).collect();
        shown.sort();
        shown
    }

    #[test]
    fn what_a_plugin_may_read_is_watched_where_its_objects_are() {
        let power = power(&["Service", "Node"], &["*"]);
        assert_eq!(watched(&power, &["s", "s"]), [r#"Node in """#, r#"Service in "s""#]);
        assert_eq!(watched(&power, &["other"]), [r#"Node in """#], "not granted there");
        assert_eq!(watched(&power, &[""]), [r#"Node in """#], "it is in no namespace itself");
    }

    #[test]
    fn secrets_patterns_and_what_is_not_granted_or_served_are_never_watched_for_a_plugin() {
        for (reads, granted) in [
            (&["Secret"][..], &["*"][..]),
            (&["*", "*.apps"], &["*"]),
            (&["Gone"], &["*"]),
            (&["Service"], &["Deployment.apps"]),
        ] {
            assert!(watched(&power(reads, granted), &["s"]).is_empty(), "{reads:?}");
        }
        let mut ungranted = power(&["Service"], &["*"]);
        ungranted.grant = None;
        assert!(watched(&ungranted, &["s"]).is_empty());
    }
}
