//! The configuration: what is protected from what, who may, and what takes two persons.

use trimtab_sdk::rules::{Bad, Effect, Keys, any, kind};
use trimtab_sdk::{ObjectId, Step, Value};

/// Kubernetes' own namespaces: protected from all, where nothing is configured.
const SYSTEM: [&str; 3] = ["kube-system", "kube-public", "kube-node-lease"];
/// What takes others' objects or data with it, or guards them: protected from deletion, where nothing is
/// configured.
const PRECIOUS: [&str; 5] = [
    "Namespace",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition.apiextensions.k8s.io",
    "*.admissionregistration.k8s.io",
];
/// What hands out power: rights, what the API server asks before a write, and what it serves.
const POWER: [&str; 4] = [
    "*.rbac.authorization.k8s.io",
    "*.admissionregistration.k8s.io",
    "CustomResourceDefinition.apiextensions.k8s.io",
    "APIService.apiregistration.k8s.io",
];

/// What an object is protected from.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum On {
    /// Being made or changed, made anew included.
    Change,
    /// Being deleted, to be made anew included.
    Delete,
}

/// The configuration, read.
pub(crate) struct Settings<'v> {
    pub(crate) protected: Vec<Rule<'v>>,
    pub(crate) two_persons: Rule<'v>,
}

/// Which objects, from what, and who may.
pub(crate) struct Rule<'v> {
    pub(crate) scope: Scope<'v>,
    pub(crate) on: Vec<On>,
    /// Patterns of signers' names.
    pub(crate) signers: Vec<&'v str>,
    pub(crate) effect: Effect,
}

/// Patterns that all have to fit.
pub(crate) struct Scope<'v> {
    kinds: Vec<&'v str>,
    namespaces: Vec<&'v str>,
    names: Vec<&'v str>,
}

impl Scope<'_> {
    /// A namespace lies in itself.
    pub(crate) fn holds(&self, id: &ObjectId<'_>) -> bool {
        let namespace =
            if (id.group, id.kind) == ("", "Namespace") { id.name } else { id.namespace };
        self.kinds.iter().any(|pattern| kind(pattern, id))
            && any(self.namespaces.iter().copied(), namespace)
            && any(self.names.iter().copied(), id.name)
    }
}

impl<'v> Settings<'v> {
    pub(crate) fn read(configuration: &'v Value<'_>) -> Result<Self, Bad> {
        let keys = Keys::of(configuration, &["protected", "twoPersons", "effect"])?;
        let effect = keys.effect("effect")?.unwrap_or(Effect::Deny);
        let known = ["kinds", "namespaces", "names", "on", "signers", "effect"];
        let protected = match keys.list("protected", &known)? {
            Some(list) => list.iter().map(|one| rule(one, effect)).collect::<Result<_, _>>()?,
            None => usual(effect),
        };
        let two = keys.keys("twoPersons", &known)?;
        let two = two.as_ref();
        let list = |key, usual: &[&'v str]| -> Result<Vec<&'v str>, Bad> {
            let stated = two.map(|two| two.texts(key)).transpose()?.flatten();
            Ok(stated.unwrap_or_else(|| usual.to_vec()))
        };
        let scope = Scope {
            kinds: list("kinds", &POWER)?,
            namespaces: list("namespaces", &["*"])?,
            names: list("names", &["*"])?,
        };
        let own = two.map(|two| two.effect("effect")).transpose()?.flatten();
        let two_persons = Rule {
            scope,
            on: two.map(on).transpose()?.flatten().unwrap_or_else(|| vec![On::Change]),
            signers: list("signers", &["*"])?,
            effect: own.unwrap_or(effect),
        };
        Ok(Self { protected, two_persons })
    }
}

fn usual<'v>(effect: Effect) -> Vec<Rule<'v>> {
    let rule = |kinds: &[&'static str], namespaces: &[&'static str], on: &[On]| Rule {
        scope: Scope { kinds: kinds.to_vec(), namespaces: namespaces.to_vec(), names: vec!["*"] },
        on: on.to_vec(),
        signers: Vec::new(),
        effect,
    };
    vec![rule(&["*"], &SYSTEM, &[On::Change, On::Delete]), rule(&PRECIOUS, &["*"], &[On::Delete])]
}

fn rule<'v>(one: &Keys<'v, '_>, effect: Effect) -> Result<Rule<'v>, Bad> {
    let list =
        |key| -> Result<Vec<&'v str>, Bad> { Ok(one.texts(key)?.unwrap_or_else(|| vec!["*"])) };
    Ok(Rule {
        scope: Scope {
            kinds: list("kinds")?,
            namespaces: list("namespaces")?,
            names: list("names")?,
        },
        on: on(one)?.unwrap_or_else(|| vec![On::Change, On::Delete]),
        signers: one.texts("signers")?.unwrap_or_default(),
        effect: one.effect("effect")?.unwrap_or(effect),
    })
}

fn on(keys: &Keys<'_, '_>) -> Result<Option<Vec<On>>, Bad> {
    let Some(words) = keys.texts("on")? else { return Ok(None) };
    let word = |(index, word): (usize, &str)| match word {
        "change" => Ok(On::Change),
        "delete" => Ok(On::Delete),
        other => Err(Bad::new(
            keys.path("on").join(Step::Index(index)),
            format!("{other:?} is none of change, delete"),
        )),
    };
    words.into_iter().enumerate().map(word).collect::<Result<_, _>>().map(Some)
}
