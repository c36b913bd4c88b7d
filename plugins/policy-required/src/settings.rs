//! The configuration: what has to be stated, by kind and namespace.

use trimtab_sdk::rules::{Bad, Effect, Keys, any, kind};
use trimtab_sdk::{ObjectId, Value};

/// Who has to have a name, where nothing is configured.
const WORKLOADS: [&str; 3] = ["Deployment.apps", "StatefulSet.apps", "DaemonSet.apps"];
/// The name, where nothing is configured: <https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels/>.
const NAME: &str = "app.kubernetes.io/name";
/// The annotation that says whose a namespace is, where nothing is configured.
const OWNER: &str = "owner";
/// Kubernetes' own namespaces, where nothing is configured.
const SYSTEM: [&str; 3] = ["kube-system", "kube-public", "kube-node-lease"];

/// The configuration, read.
pub(crate) struct Settings<'v> {
    pub(crate) labels: Vec<Named<'v>>,
    pub(crate) annotations: Vec<Named<'v>>,
    pub(crate) requests: Vec<&'v str>,
    pub(crate) limits: Vec<&'v str>,
    /// Whether containers that run before the others are asked too.
    pub(crate) init: bool,
    /// The annotation that says whose a namespace is; `None`: nobody asks.
    pub(crate) owner: Option<&'v str>,
    exempt_namespaces: Vec<&'v str>,
    exempt_kinds: Vec<&'v str>,
    pub(crate) effect: Effect,
}

/// A label or an annotation that has to be stated.
pub(crate) struct Named<'v> {
    pub(crate) name: &'v str,
    /// Patterns, one of which the value has to fit.
    pub(crate) values: Vec<&'v str>,
    kinds: Vec<&'v str>,
    namespaces: Vec<&'v str>,
    /// Whether the pods of a workload have to have it as well.
    pub(crate) pods: bool,
    pub(crate) effect: Effect,
}

const KEYS: [&str; 7] =
    ["labels", "annotations", "resources", "owner", "exemptNamespaces", "exemptKinds", "effect"];

impl<'v> Settings<'v> {
    pub(crate) fn read(configuration: &'v Value<'_>) -> Result<Self, Bad> {
        let keys = Keys::of(configuration, &KEYS)?;
        let effect = keys.effect("effect")?.unwrap_or(Effect::Deny);
        let resources = keys.keys("resources", &["requests", "limits", "initContainers"])?;
        let resources = resources.as_ref();
        let of = |key, usual: &[&'v str]| -> Result<Vec<&'v str>, Bad> {
            let stated = resources.map(|resources| resources.texts(key)).transpose()?.flatten();
            Ok(stated.unwrap_or_else(|| usual.to_vec()))
        };
        let init = resources.map(|resources| resources.flag("initContainers")).transpose()?;
        let usual = || Named {
            name: NAME,
            values: vec!["?*"],
            kinds: WORKLOADS.to_vec(),
            namespaces: vec!["*"],
            pods: false,
            effect,
        };
        Ok(Self {
            labels: named(&keys, "labels", effect)?.unwrap_or_else(|| vec![usual()]),
            annotations: named(&keys, "annotations", effect)?.unwrap_or_default(),
            requests: of("requests", &["cpu", "memory"])?,
            limits: of("limits", &["memory"])?,
            init: init.flatten().unwrap_or(true),
            owner: Some(keys.text("owner")?.unwrap_or(OWNER)).filter(|owner| !owner.is_empty()),
            exempt_namespaces: keys.texts("exemptNamespaces")?.unwrap_or_else(|| SYSTEM.to_vec()),
            exempt_kinds: keys.texts("exemptKinds")?.unwrap_or_default(),
            effect,
        })
    }

    pub(crate) fn exempts(&self, id: &ObjectId<'_>) -> bool {
        let namespace =
            if (id.group, id.kind) == ("", "Namespace") { id.name } else { id.namespace };
        any(self.exempt_namespaces.iter().copied(), namespace)
            || self.exempt_kinds.iter().any(|pattern| kind(pattern, id))
    }
}

impl Named<'_> {
    pub(crate) fn asks(&self, id: &ObjectId<'_>) -> bool {
        self.kinds.iter().any(|pattern| kind(pattern, id))
            && any(self.namespaces.iter().copied(), id.namespace)
    }
}

fn named<'v>(
    keys: &Keys<'v, '_>,
    key: &str,
    effect: Effect,
) -> Result<Option<Vec<Named<'v>>>, Bad> {
    let known = ["name", "values", "kinds", "namespaces", "pods", "effect"];
    let Some(list) = keys.list(key, &known)? else { return Ok(None) };
    let read = |one: Keys<'v, '_>| {
        Ok(Named {
            name: one.required("name", one.text("name")?)?,
            values: one.texts("values")?.unwrap_or_else(|| vec!["?*"]),
            kinds: one.required("kinds", one.texts("kinds")?)?,
            namespaces: one.texts("namespaces")?.unwrap_or_else(|| vec!["*"]),
            pods: one.flag("pods")?.unwrap_or(false),
            effect: one.effect("effect")?.unwrap_or(effect),
        })
    };
    list.into_iter().map(read).collect::<Result<_, _>>().map(Some)
}
