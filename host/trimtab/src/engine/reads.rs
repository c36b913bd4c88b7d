//! Reads of related objects: which kinds are watched for them, and who is to be judged anew when
//! one of what was read changes.

use crate::plugins::Registry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use trimtab_core::identity::{GroupKind, Gvk, ObjectKey};
use trimtab_core::object::Desired;
use trimtab_core::plugin::KindPattern;
use trimtab_core::reads::{Read, Reads};
use trimtab_core::redact::is_sensitive;
use trimtab_kube::{Kinds, Lookup};

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
pub(super) struct ForReads {
    /// Kinds, each with the namespaces (empty: cluster-scoped) of which all objects are wanted.
    pub(super) whole: HashMap<Gvk, HashSet<Arc<str>>>,
    /// By the kind that is judged: the kinds that have to have an answer before.
    pub(super) before: HashMap<GroupKind, Vec<Gvk>>,
}

impl ForReads {
    /// Kinds that the manifest of an object's plugin names one by one and its grant reaches, in
    /// the object's own namespace. Secrets never: they are read where a source declares them.
    pub(super) fn of<'d>(
        objects: impl Iterator<Item = &'d Arc<Desired>>,
        registry: &Registry,
        kinds: &Kinds,
    ) -> Self {
        let mut wanted = Self::default();
        let mut done: HashSet<(&GroupKind, Option<&str>)> = HashSet::new();
        for desired in objects {
            let key = &desired.key;
            if !done.insert((&key.group_kind, key.namespace.as_deref())) {
                continue;
            }
            let Some(served) = registry.for_kind(&key.group_kind) else { continue };
            for read in &served.power.manifest.reads {
                let KindPattern::Exact(read) = read else { continue };
                let Lookup::Found(kind) = kinds.preferred(read) else { continue };
                let namespace = match &key.namespace {
                    Some(namespace) if kind.namespaced => namespace.clone(),
                    None if kind.namespaced => continue,
                    _ => Arc::default(),
                };
                let related = ObjectKey::new(read.clone(), &namespace, "");
                if is_sensitive(read) || served.power.reaches(&related).is_err() {
                    continue;
                }
                let before = wanted.before.entry(key.group_kind.clone()).or_default();
                if !before.contains(&kind.gvk) {
                    before.push(kind.gvk.clone());
                }
                wanted.whole.entry(kind.gvk.clone()).or_default().insert(namespace);
            }
        }
        wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
}
