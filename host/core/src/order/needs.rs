//! What each declared object needs before it may be applied: read once for each desired state.
//!
//! Takes desired objects and which source depends on which. Of what is not declared nothing is said
//! here: whether it is in the cluster is the caller's to tell.

use crate::identity::{GroupKind, ObjectKey};
use crate::object::Desired;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

/// The annotation that names what an object needs: names with commas between.
///
/// A name is `group/Kind/namespace/name`, or `group/Kind/name` for what has no namespace; the core
/// group is empty (`/Secret/shop/key`). Short forms where a source declares the object:
/// `Kind/namespace/name`, and `Kind/name` in the own namespace or in none. A kind begins with a
/// capital letter, a group does not.
pub const DEPENDS_ON: &str = "trimtab.dev/depends-on";
/// The same as other tools have it; there a namespaced object is
/// `group/namespaces/namespace/Kind/name`. Both forms are read under both names.
pub const DEPENDS_ON_OF_OTHERS: &str = "config.kubernetes.io/depends-on";

/// Names in one annotation: more is a mistake or an attack.
const NAMES_AT_MOST: usize = 100;
/// Objects of a circle that are spelt out.
const CIRCLE_AT_MOST: usize = 10;

/// Something that others need.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dependency {
    /// An object, declared or not.
    Object(ObjectKey),
    /// All of a source.
    Source(Arc<str>),
    /// A name that names nothing, and what to do.
    Unclear(Arc<str>),
}

impl fmt::Display for Dependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(key) => write!(f, "{key}"),
            Self::Source(name) => write!(f, "source {name}"),
            Self::Unclear(why) => f.write_str(why),
        }
    }
}

/// Why something is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The object lies in this namespace.
    Namespace,
    /// This definition makes the object's kind.
    Definition,
    /// The manifest says so.
    Stated,
    /// The configuration says that the object's source depends on this one.
    Source,
}

impl Why {
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Namespace => "its namespace",
            Self::Definition => "which defines its kind",
            Self::Stated => "named by its annotation",
            Self::Source => "named by its source's dependsOn",
        }
    }
}

/// One thing that an object needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// What.
    pub on: Dependency,
    /// Why.
    pub why: Why,
}

/// By source: the sources that it depends on.
pub type SourceNeeds = BTreeMap<Arc<str>, Vec<Arc<str>>>;

/// What every object needs.
#[derive(Debug, Default)]
pub struct Needs {
    of: HashMap<ObjectKey, Vec<Need>>,
    by: HashMap<Dependency, Vec<ObjectKey>>,
    circles: HashMap<ObjectKey, Arc<str>>,
    undeclared: BTreeSet<ObjectKey>,
    definitions: HashMap<GroupKind, ObjectKey>,
    sources: BTreeSet<Arc<str>>,
}

impl Needs {
    /// Reads what desired state needs.
    pub fn read(desired: &HashMap<ObjectKey, Arc<Desired>>, sources: &SourceNeeds) -> Self {
        let definitions = definitions(desired);
        let mut needs = Self::default();
        for (key, object) in desired {
            let mut of = Vec::new();
            if let Some(namespace) = &key.namespace {
                let namespace = ObjectKey::new(GroupKind::new("", "Namespace"), "", namespace);
                if desired.contains_key(&namespace) {
                    of.push(Need { on: Dependency::Object(namespace), why: Why::Namespace });
                }
            }
            if let Some(definition) = definitions.get(&key.group_kind) {
                let on = Dependency::Object(definition.clone());
                of.push(Need { on, why: Why::Definition });
            }
            of.extend(stated(&object.json, key, desired));
            for name in sources.get(&object.source).into_iter().flatten() {
                needs.sources.insert(name.clone());
                of.push(Need { on: Dependency::Source(name.clone()), why: Why::Source });
            }
            if of.is_empty() {
                continue;
            }
            for need in &of {
                if let Dependency::Object(on) = &need.on
                    && !desired.contains_key(on)
                {
                    needs.undeclared.insert(on.clone());
                }
                needs.by.entry(need.on.clone()).or_default().push(key.clone());
            }
            needs.of.insert(key.clone(), of);
        }
        needs.definitions = definitions;
        needs.circles = circles(&needs.of, desired, &needs.sources);
        needs
    }

    /// What this object needs.
    pub fn of(&self, key: &ObjectKey) -> &[Need] {
        self.of.get(key).map_or(&[], Vec::as_slice)
    }

    /// Who needs this.
    pub fn by(&self, on: &Dependency) -> &[ObjectKey] {
        self.by.get(on).map_or(&[], Vec::as_slice)
    }

    /// Needed objects that no source declares: to be watched for those that need them.
    pub fn undeclared(&self) -> &BTreeSet<ObjectKey> {
        &self.undeclared
    }

    /// The declared definition that makes this kind.
    pub fn definition_of(&self, kind: &GroupKind) -> Option<&ObjectKey> {
        self.definitions.get(kind)
    }

    /// Sources that others depend on.
    pub fn sources(&self) -> &BTreeSet<Arc<str>> {
        &self.sources
    }

    /// The way from this object through what it needs back to itself, if there is one.
    pub fn circle(&self, key: &ObjectKey) -> Option<&str> {
        self.circles.get(key).map(|circle| &**circle)
    }
}

/// The definitions that desired state declares, by the kind that they make.
fn definitions(desired: &HashMap<ObjectKey, Arc<Desired>>) -> HashMap<GroupKind, ObjectKey> {
    let definition = GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition");
    desired
        .values()
        .filter(|object| object.key.group_kind == definition)
        .filter_map(|object| {
            let tree = trimtab_json::parse(&object.json).ok()?;
            let kind = GroupKind::new(
                tree.str_at(&["spec", "group"])?,
                tree.str_at(&["spec", "names", "kind"])?,
            );
            Some((kind, object.key.clone()))
        })
        .collect()
}

/// What an object's annotations name.
fn stated<T>(json: &[u8], key: &ObjectKey, desired: &HashMap<ObjectKey, T>) -> Vec<Need> {
    // Most objects name nothing, and need no tree for that.
    let names_some = std::str::from_utf8(json).is_ok_and(|it| it.contains("/depends-on"));
    if !names_some {
        return Vec::new();
    }
    let Ok(tree) = trimtab_json::parse(json) else { return Vec::new() };
    let mut needs = Vec::new();
    for annotation in [DEPENDS_ON, DEPENDS_ON_OF_OTHERS] {
        let Some(value) = tree.at(&["metadata", "annotations", annotation]) else { continue };
        let text = value.as_str().unwrap_or_default();
        let names: Vec<&str> = text.split(',').map(str::trim).collect();
        if names.len() > NAMES_AT_MOST {
            let why = format!(
                "{annotation} names {} objects, more than {NAMES_AT_MOST}: name fewer",
                names.len()
            );
            needs.push(unclear(why));
            continue;
        }
        for name in names {
            let need = match named(name, key, desired) {
                Ok(key) => Need { on: Dependency::Object(key), why: Why::Stated },
                Err(why) => unclear(format!("{annotation} has {name:?}, {why}")),
            };
            if !needs.contains(&need) {
                needs.push(need);
            }
        }
    }
    needs
}

fn unclear(why: String) -> Need {
    Need { on: Dependency::Unclear(why.into()), why: Why::Stated }
}

/// The objects that a live object's annotations name, short forms among these objects. What names
/// nothing is left out: its object is to be deleted.
pub(crate) fn named_by<T>(
    live: &[u8],
    key: &ObjectKey,
    others: &HashMap<ObjectKey, T>,
) -> Vec<ObjectKey> {
    let objects = stated(live, key, others).into_iter().filter_map(|need| match need.on {
        Dependency::Object(on) => Some(on),
        Dependency::Source(_) | Dependency::Unclear(_) => None,
    });
    objects.collect()
}

/// The object that a name names.
fn named<T>(
    name: &str,
    from: &ObjectKey,
    desired: &HashMap<ObjectKey, T>,
) -> Result<ObjectKey, String> {
    const FORMS: &str = "which names no object: write group/Kind/namespace/name, or group/Kind/name for what has no namespace";
    let parts: Vec<&str> = name.split('/').collect();
    let is_kind = |part: &str| part.bytes().next().is_some_and(|it| it.is_ascii_uppercase());
    let whole = |group: &str, kind: &str, namespace: &str, name: &str| {
        if kind.is_empty() || name.is_empty() || !is_kind(kind) {
            return Err(FORMS.to_owned());
        }
        Ok(ObjectKey::new(GroupKind::new(group, kind), namespace, name))
    };
    match parts[..] {
        [group, "namespaces", namespace, kind, name] => whole(group, kind, namespace, name),
        [group, kind, namespace, name] if !is_kind(group) => whole(group, kind, namespace, name),
        [group, kind, name] if !is_kind(group) => whole(group, kind, "", name),
        [kind, namespace, name] if is_kind(kind) => declared(desired, |key| {
            *key.group_kind.kind == *kind && key.namespace_str() == namespace && *key.name == *name
        }),
        [kind, name] if is_kind(kind) => declared(desired, |key| {
            let here = key.namespace.is_none() || key.namespace == from.namespace;
            *key.group_kind.kind == *kind && here && *key.name == *name
        }),
        _ => Err(FORMS.to_owned()),
    }
}

/// The one declared object that a short form means.
fn declared<T>(
    desired: &HashMap<ObjectKey, T>,
    is_meant: impl Fn(&ObjectKey) -> bool,
) -> Result<ObjectKey, String> {
    let mut meant: Vec<&ObjectKey> = desired.keys().filter(|key| is_meant(key)).collect();
    meant.sort();
    match meant[..] {
        [only] => Ok(only.clone()),
        [] => Err("which no source declares: correct it, or write its group, as in group/Kind/namespace/name".into()),
        [first, second, ..] => {
            Err(format!("which may be {first} or {second}: write its group, as in group/Kind/namespace/name"))
        }
    }
}

/// For each object that needs itself: the way round.
fn circles(
    of: &HashMap<ObjectKey, Vec<Need>>,
    desired: &HashMap<ObjectKey, Arc<Desired>>,
    sources: &BTreeSet<Arc<str>>,
) -> HashMap<ObjectKey, Arc<str>> {
    let mut next: HashMap<Dependency, Vec<Dependency>> = HashMap::with_capacity(of.len());
    for (key, needs) in of {
        let on = needs.iter().map(|need| need.on.clone()).collect();
        next.insert(Dependency::Object(key.clone()), on);
    }
    // A source is there when all of it is.
    for object in desired.values().filter(|object| sources.contains(&object.source)) {
        let source = Dependency::Source(object.source.clone());
        next.entry(source).or_default().push(Dependency::Object(object.key.clone()));
    }
    let left = in_circles(&next);
    let mut starts: Vec<&Dependency> = left.iter().collect();
    starts.sort();
    let mut circles: HashMap<ObjectKey, Arc<str>> = HashMap::new();
    for start in starts {
        let Dependency::Object(key) = start else { continue };
        if circles.contains_key(key) {
            continue;
        }
        let Some(way) = way_round(start, &next, &left) else { continue };
        let words: Arc<str> = spelt(&way).into();
        for node in way {
            if let Dependency::Object(key) = node {
                circles.entry(key.clone()).or_insert_with(|| words.clone());
            }
        }
    }
    circles
}

/// What is left when everything that needs nothing, and everything that nothing needs, is taken
/// away again and again.
fn in_circles(next: &HashMap<Dependency, Vec<Dependency>>) -> HashSet<Dependency> {
    let mut left: HashSet<Dependency> = next.keys().cloned().collect();
    loop {
        let needed: HashSet<&Dependency> = left
            .iter()
            .filter_map(|node| next.get(node))
            .flatten()
            .filter(|on| left.contains(*on))
            .collect();
        let needs = |node: &Dependency| {
            next.get(node).is_some_and(|on| on.iter().any(|on| left.contains(on)))
        };
        let stays: HashSet<Dependency> =
            left.iter().filter(|node| needed.contains(node) && needs(node)).cloned().collect();
        if stays.len() == left.len() {
            return left;
        }
        left = stays;
    }
}

/// The shortest way from a node back to itself, both ends included.
fn way_round<'n>(
    start: &'n Dependency,
    next: &'n HashMap<Dependency, Vec<Dependency>>,
    left: &HashSet<Dependency>,
) -> Option<Vec<&'n Dependency>> {
    let mut from: HashMap<&Dependency, &Dependency> = HashMap::new();
    let mut front = vec![start];
    while !front.is_empty() && !from.contains_key(start) {
        let mut beyond = Vec::new();
        for node in front {
            for on in next.get(node).into_iter().flatten().filter(|on| left.contains(*on)) {
                if !from.contains_key(on) {
                    from.insert(on, node);
                    beyond.push(on);
                }
            }
        }
        front = beyond;
    }
    let mut way = vec![start];
    let mut here = *from.get(start)?;
    while here != start {
        way.push(here);
        here = from.get(here)?;
    }
    way.push(start);
    way.reverse();
    Some(way)
}

fn spelt(way: &[&Dependency]) -> String {
    let names: Vec<String> = way.iter().take(CIRCLE_AT_MOST).map(ToString::to_string).collect();
    let more = if way.len() > CIRCLE_AT_MOST { ", and so on" } else { "" };
    format!("{}{more}", names.join(" needs "))
}
