//! The least RBAC that plugins and their grants imply.
//!
//! Takes what plugins claim, what they are granted, and (where it is known) which kinds a source
//! declares; gives rules for the whole cluster and for single namespaces. What has the most say
//! about writes is still the gate: these rules are what the API server holds the host to.

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use trimtab_core::decision::ActionKind;
use trimtab_core::grant::{Grant, Mode, Namespaces, Power};
use trimtab_core::identity::{Digest, GroupKind};
use trimtab_core::placing::Scope;
use trimtab_core::plugin::{KindPattern, PluginIdentity, PluginManifest};
use trimtab_core::redact::is_sensitive;
use trimtab_core::terms::Account;

/// A verb of RBAC, in the order in which rules list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Right {
    Get,
    List,
    Watch,
    Create,
    Patch,
    Delete,
}

impl Right {
    fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Patch => "patch",
            Self::Delete => "delete",
        }
    }
}

/// Every watched kind: the lists and watches are cluster-wide.
const READ: [Right; 3] = [Right::Get, Right::List, Right::Watch];
/// Where the host asks who overwrites a declared value.
const ADMISSION: &str = "admissionregistration.k8s.io";
const ADMISSION_RESOURCES: [&str; 3] = [
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "mutatingwebhookconfigurations",
];

/// One rule of a Role or ClusterRole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Rule {
    api_groups: Vec<String>,
    resources: Vec<String>,
    /// The objects by name; empty: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resource_names: Vec<String>,
    verbs: Vec<&'static str>,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let group = match self.api_groups.first().map(String::as_str) {
            Some("") | None => "core",
            Some(group) => group,
        };
        write!(f, "{group}: {}", self.resources.join(", "))?;
        if !self.resource_names.is_empty() {
            write!(f, " {{{}}}", self.resource_names.join(", "))?;
        }
        write!(f, " [{}]", self.verbs.join(" "))
    }
}

/// How a kind is addressed: plural, and whether its objects are in namespaces.
pub(crate) type Resource = (String, Scope);

/// Where the plural of a kind comes from; `None` where it is not known.
pub(crate) type Resources<'a> = &'a dyn Fn(&GroupKind) -> Option<Resource>;

type Wanted = BTreeMap<(String, String), BTreeSet<Right>>;

/// The rules, and what a person should know of them.
#[derive(Debug, Default)]
pub(crate) struct Needs {
    cluster: Wanted,
    namespaces: BTreeMap<String, Wanted>,
    /// ServiceAccounts that sources act as, by namespace.
    accounts: BTreeMap<String, BTreeSet<String>>,
    /// Groups that go with them.
    groups: BTreeSet<String>,
    /// Why the rules are wider than a person may want, or what they do not cover.
    pub(crate) warnings: BTreeSet<String>,
    /// Kinds whose plural is not known.
    pub(crate) unknown: BTreeSet<GroupKind>,
}

impl Needs {
    /// What these plugins need, as they are granted. `declared`: the kinds of the source, which
    /// wildcards are narrowed to.
    pub(crate) fn of(
        powers: &[Power],
        declared: Option<&BTreeSet<GroupKind>>,
        resources: Resources<'_>,
    ) -> Self {
        let mut needs = Self::default();
        for power in powers {
            needs.add(powers, power, declared, resources);
        }
        for kind in declared.into_iter().flatten() {
            // The host watches what is declared, whether a plugin claims it or not.
            needs.want(&None, &Target::Kind(kind.clone()), &READ, resources);
        }
        for resource in ADMISSION_RESOURCES {
            let rule = needs.cluster.entry((ADMISSION.into(), resource.into())).or_default();
            rule.insert(Right::List);
        }
        let deletes = |power: &Power| {
            let grant = enforced(power);
            grant.is_some_and(|grant| actions(power, grant).any(deletes))
        };
        if powers.iter().any(deletes) {
            // To say which Pods a deletion takes.
            needs.cluster.entry((String::new(), "pods".into())).or_default().insert(Right::List);
        }
        needs
    }

    /// What the inventory takes: its ConfigMaps, in this namespace.
    pub(crate) fn keep_inventory(&mut self, namespace: &str) {
        let wanted = self.namespaces.entry(namespace.to_owned()).or_default();
        let rights = [Right::Get, Right::List, Right::Create, Right::Patch];
        wanted.entry((String::new(), "configmaps".into())).or_default().extend(rights);
    }

    /// What Events about findings take, on objects wherever they are.
    pub(crate) fn tell_findings(&mut self) {
        let rule = self.cluster.entry(("events.k8s.io".into(), "events".into())).or_default();
        rule.extend([Right::Create, Right::Patch]);
    }

    /// What pruning takes for kinds that are declared now. Kinds that left the source before are not
    /// among them, and what else a namespace holds is not to be seen.
    pub(crate) fn prune(&mut self, declared: &BTreeSet<GroupKind>, resources: Resources<'_>) {
        for kind in declared {
            let target = Target::Kind(kind.clone());
            self.want(&None, &target, &[Right::Get, Right::Delete], resources);
        }
        let namespace = GroupKind::new("", "Namespace");
        if declared.contains(&namespace) {
            self.warnings.insert(
                "a namespace is pruned by itself only where every kind in it may be listed; else its deletion waits for `trimtab source approve`".into(),
            );
        }
    }

    fn add(
        &mut self,
        powers: &[Power],
        power: &Power,
        declared: Option<&BTreeSet<GroupKind>>,
        resources: Resources<'_>,
    ) {
        let name = &power.plugin.name;
        let serves = |target: &Target| match target {
            Target::Kind(kind) => serving(powers, kind).is_some_and(|it| std::ptr::eq(it, power)),
            _ => true,
        };
        let claimed = targets(&power.manifest.claims, declared);
        for target in claimed.iter().filter(|target| serves(target)) {
            // A dry run is authorised like the write that it rehearses, in observe mode too.
            let observes = [&READ[..], &[Right::Patch]].concat();
            let one = matches!(target, Target::Kind(_));
            // Of a wildcard that a grant narrows, the grant says which kinds: below.
            if !covers(power.grant.as_ref(), target) && (one || power.grant.is_none()) {
                self.want(&None, target, &observes, resources);
            }
        }
        let reads = targets(&both(&power.manifest.reads, power.readable()), declared);
        let secret = |target: &&Target| matches!(target, Target::Kind(kind) if is_sensitive(kind));
        for target in reads.iter().filter(|target| power.grant.is_some() || !secret(target)) {
            self.want(&None, target, &READ, resources);
        }
        let Some(grant) = &power.grant else { return };
        let granted = targets(&both(&power.manifest.claims, &grant.kinds), declared);
        for target in granted.iter().filter(|target| serves(target)) {
            if !matches!(target, Target::Kind(_)) {
                self.warnings.insert(format!(
                    "plugin {name} is granted {target}: narrow the grant's kinds, or give --source, and the rules name what is declared"
                ));
            }
            self.grant(power, grant, target, resources);
        }
    }

    fn grant(&mut self, power: &Power, grant: &Grant, target: &Target, resources: Resources<'_>) {
        self.want(&None, target, &READ, resources);
        let mut verbs = vec![Right::Patch];
        if grant.mode == Mode::Observe {
            return self.want(&None, target, &verbs, resources);
        }
        if actions(power, grant).any(creates) {
            verbs.push(Right::Create);
        }
        if actions(power, grant).any(deletes) {
            verbs.push(Right::Delete);
        }
        let status = actions(power, grant).any(|action| action == ActionKind::PatchStatus);
        let scope = match target {
            Target::Kind(kind) => resources(kind).map(|(_, scope)| scope),
            _ => None,
        };
        let mut places: Vec<Option<String>> = Vec::new();
        if scope != Some(Scope::Namespaced) && grant.cluster_scoped {
            places.push(None);
        }
        match &grant.namespaces {
            _ if scope == Some(Scope::Cluster) => {}
            Namespaces::All => places.push(None),
            Namespaces::Only(names) => places.extend(names.iter().cloned().map(Some)),
        }
        if places.is_empty() {
            // Cluster-scoped and not granted: it observes.
            self.want(&None, target, &[Right::Patch], resources);
        }
        for place in &places {
            self.want(place, target, &verbs, resources);
            if status {
                self.want_sub(place, target, "/status", &[Right::Patch], resources);
            }
        }
    }

    fn want(
        &mut self,
        place: &Option<String>,
        target: &Target,
        verbs: &[Right],
        resources: Resources<'_>,
    ) {
        self.want_sub(place, target, "", verbs, resources);
    }

    fn want_sub(
        &mut self,
        place: &Option<String>,
        target: &Target,
        sub: &str,
        verbs: &[Right],
        resources: Resources<'_>,
    ) {
        let (group, plural) = match target {
            Target::All => ("*".to_owned(), "*".to_owned()),
            Target::Group(group) => (group.clone(), "*".to_owned()),
            Target::Kind(kind) => match resources(kind) {
                Some((plural, _)) => (kind.group.to_string(), plural),
                None => {
                    self.unknown.insert(kind.clone());
                    return;
                }
            },
        };
        let wanted = match place {
            None => &mut self.cluster,
            Some(namespace) => self.namespaces.entry(namespace.clone()).or_default(),
        };
        wanted.entry((group, plural + sub)).or_default().extend(verbs);
    }

    /// What sources need that act as ServiceAccounts; `all`: every source does, and the host itself
    /// writes nothing.
    pub(crate) fn act_as<'a>(&mut self, accounts: impl Iterator<Item = &'a Account>, all: bool) {
        for account in accounts {
            let names = self.accounts.entry(account.namespace().to_owned()).or_default();
            names.insert(account.name().to_owned());
            self.groups.extend(account.groups());
        }
        if all {
            for wanted in self.namespaces.values_mut().chain([&mut self.cluster]) {
                wanted.retain(|_, rights| {
                    rights.retain(|right| READ.contains(right));
                    !rights.is_empty()
                });
            }
            self.namespaces.retain(|_, wanted| !wanted.is_empty());
        }
    }

    /// Rules for the whole cluster.
    pub(crate) fn cluster(&self) -> Vec<Rule> {
        let mut all = rules(&self.cluster);
        all.extend(impersonate("groups", &self.groups));
        all
    }

    /// Rules for each namespace that a grant names, or that has an account which is acted as.
    pub(crate) fn namespaces(&self) -> BTreeMap<&str, Vec<Rule>> {
        let mut all: BTreeMap<&str, Vec<Rule>> =
            self.namespaces.iter().map(|(name, wanted)| (name.as_str(), rules(wanted))).collect();
        for (namespace, names) in &self.accounts {
            all.entry(namespace).or_default().extend(impersonate("serviceaccounts", names));
        }
        all
    }
}

/// What a plugin would need if all that its manifest declares were granted.
pub(crate) fn of_manifest(manifest: &PluginManifest) -> Vec<Rule> {
    let identity = PluginIdentity {
        name: manifest.name.clone(),
        version: manifest.version.clone(),
        digest: Digest::of(b""),
    };
    let grant = Grant {
        plugin: manifest.name.clone(),
        digest: identity.digest,
        mode: Mode::Enforce,
        kinds: vec![KindPattern::Any],
        namespaces: Namespaces::All,
        cluster_scoped: true,
        actions: manifest.actions.clone(),
        predecessors: BTreeSet::new(),
        terms: Default::default(),
        origin: String::new(),
    };
    let power = Power { plugin: identity, manifest: manifest.clone(), grant: Some(grant) };
    let schemas = crate::schemas::Schemas::default();
    let resources = |kind: &GroupKind| {
        let unknown = || (format!("<plural of {}>", kind.kind), Scope::Namespaced);
        Some(schemas.resource(kind).unwrap_or_else(unknown))
    };
    Needs::of(&[power], None, &resources).cluster()
}

/// One kind, a group's, or all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    Kind(GroupKind),
    Group(String),
    All,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(kind) => kind.fmt(f),
            Self::Group(group) => write!(f, "every kind of {group:?}"),
            Self::All => f.write_str("every kind"),
        }
    }
}

/// Patterns as targets; wildcards become what is declared, where that is known.
fn targets(patterns: &[KindPattern], declared: Option<&BTreeSet<GroupKind>>) -> BTreeSet<Target> {
    let mut targets = BTreeSet::new();
    for pattern in patterns {
        match (pattern, declared) {
            (KindPattern::Exact(kind), _) => {
                targets.insert(Target::Kind(kind.clone()));
            }
            (pattern, Some(declared)) => {
                let covered = declared.iter().filter(|kind| pattern.covers(kind));
                targets.extend(covered.cloned().map(Target::Kind));
            }
            (KindPattern::Group(group), None) => {
                targets.insert(Target::Group(group.clone()));
            }
            (KindPattern::Any, None) => {
                targets.insert(Target::All);
            }
        }
    }
    targets
}

/// What both lists cover, pattern by pattern.
fn both(first: &[KindPattern], second: &[KindPattern]) -> Vec<KindPattern> {
    let mut all = Vec::new();
    for a in first {
        for b in second {
            let narrower = match (a, b) {
                (KindPattern::Any, other) | (other, KindPattern::Any) => Some(other),
                (pattern, KindPattern::Exact(kind)) if pattern.covers(kind) => Some(b),
                (KindPattern::Exact(kind), pattern) if pattern.covers(kind) => Some(a),
                (a, b) if a == b => Some(a),
                _ => None,
            };
            all.extend(narrower.cloned());
        }
    }
    all
}

/// Whether the grant names all of this.
fn covers(grant: Option<&Grant>, target: &Target) -> bool {
    let kinds = grant.map(|grant| grant.kinds.as_slice()).unwrap_or_default();
    kinds.iter().any(|pattern| match (target, pattern) {
        (_, KindPattern::Any) => true,
        (Target::Kind(kind), pattern) => pattern.covers(kind),
        (Target::Group(group), KindPattern::Group(granted)) => group == granted,
        _ => false,
    })
}

/// The plugin that claims this kind most closely.
fn serving<'p>(powers: &'p [Power], kind: &GroupKind) -> Option<&'p Power> {
    let specificity = |power: &&Power| power.manifest.claim_for(kind).map(KindPattern::specificity);
    powers.iter().filter(|power| specificity(power).is_some()).max_by_key(specificity)
}

fn enforced(power: &Power) -> Option<&Grant> {
    power.grant.as_ref().filter(|grant| grant.mode == Mode::Enforce)
}

/// Actions that both manifest and grant name.
fn actions<'p>(power: &'p Power, grant: &'p Grant) -> impl Iterator<Item = ActionKind> + 'p {
    power.manifest.actions.intersection(&grant.actions).copied()
}

fn creates(action: ActionKind) -> bool {
    matches!(action, ActionKind::ApplyDesired | ActionKind::ApplyContent | ActionKind::Recreate)
}

fn deletes(action: ActionKind) -> bool {
    matches!(action, ActionKind::Delete | ActionKind::Recreate)
}

/// The rule to act as these, if there are some.
fn impersonate(resource: &str, names: &BTreeSet<String>) -> Option<Rule> {
    (!names.is_empty()).then(|| Rule {
        api_groups: vec![String::new()],
        resources: vec![resource.to_owned()],
        resource_names: names.iter().cloned().collect(),
        verbs: vec!["impersonate"],
    })
}

/// One rule for resources of one group with the same verbs, in a fixed order.
fn rules(wanted: &Wanted) -> Vec<Rule> {
    let mut grouped: BTreeMap<(&str, &BTreeSet<Right>), Vec<String>> = BTreeMap::new();
    for ((group, resource), verbs) in wanted {
        grouped.entry((group, verbs)).or_default().push(resource.clone());
    }
    let rule = |((group, verbs), resources): ((&str, &BTreeSet<Right>), Vec<String>)| Rule {
        api_groups: vec![group.to_owned()],
        resources,
        resource_names: Vec::new(),
        verbs: verbs.iter().map(|verb| verb.as_str()).collect(),
    };
    grouped.into_iter().map(rule).collect()
}

#[cfg(test)]
mod tests;
