//! The configuration: which level where, by which version of the controls, and who is exempt.

use crate::{Level, NEWEST};
use trimtab_sdk::rules::{Bad, Effect, Keys, any, glob, kind};
use trimtab_sdk::{ObjectId, Value};

/// Versions before this one have other rules for pods of Windows.
const OLDEST: u32 = 25;

/// The configuration, read.
pub(crate) struct Settings<'v> {
    default: Level,
    namespaces: Vec<(&'v str, Level)>,
    minor: u32,
    exempt: Vec<Exempt<'v>>,
    effect: Effect,
    unseen: Effect,
}

/// Patterns that all have to fit.
struct Exempt<'v> {
    namespaces: Vec<&'v str>,
    kinds: Vec<&'v str>,
    names: Vec<&'v str>,
    controls: Vec<&'v str>,
}

const KEYS: [&str; 6] = ["default", "namespaces", "version", "exempt", "effect", "unseen"];

impl<'v> Settings<'v> {
    pub(crate) fn read(configuration: &'v Value<'_>) -> Result<Self, Bad> {
        let keys = Keys::of(configuration, &KEYS)?;
        let mut namespaces = Vec::new();
        for one in keys.list("namespaces", &["match", "level"])?.unwrap_or_default() {
            let pattern = one.required("match", one.text("match")?)?;
            namespaces.push((pattern, one.required("level", level(&one, "level")?)?));
        }
        let mut exempt = Vec::new();
        let known = ["namespaces", "kinds", "names", "controls"];
        for one in keys.list("exempt", &known)?.unwrap_or_default() {
            let patterns = |key| Ok(one.texts(key)?.unwrap_or_else(|| vec!["*"]));
            exempt.push(Exempt {
                namespaces: patterns("namespaces")?,
                kinds: patterns("kinds")?,
                names: patterns("names")?,
                controls: patterns("controls")?,
            });
        }
        Ok(Self {
            default: level(&keys, "default")?.unwrap_or(Level::Baseline),
            namespaces,
            minor: version(&keys)?,
            exempt,
            effect: keys.effect("effect")?.unwrap_or(Effect::Deny),
            unseen: keys.effect("unseen")?.unwrap_or(Effect::Warn),
        })
    }

    /// The level of the object's namespace: of the first pattern that fits.
    pub(crate) fn level(&self, id: &ObjectId<'_>) -> Level {
        let found = self.namespaces.iter().find(|(pattern, _)| glob(pattern, id.namespace));
        found.map_or(self.default, |(_, level)| *level)
    }

    /// The minor version of Kubernetes whose controls are asked for.
    pub(crate) fn minor(&self) -> u32 {
        self.minor
    }

    pub(crate) fn effect(&self) -> Effect {
        self.effect
    }

    pub(crate) fn unseen(&self) -> Effect {
        self.unseen
    }

    pub(crate) fn exempts(&self, id: &ObjectId<'_>, control: &str) -> bool {
        self.exempt.iter().any(|exempt| {
            any(exempt.namespaces.iter().copied(), id.namespace)
                && any(exempt.names.iter().copied(), id.name)
                && any(exempt.controls.iter().copied(), control)
                && exempt.kinds.iter().any(|pattern| kind(pattern, id))
        })
    }
}

fn level(keys: &Keys<'_, '_>, key: &str) -> Result<Option<Level>, Bad> {
    let levels = [Level::Privileged, Level::Baseline, Level::Restricted];
    let word = keys.word(key, &["privileged", "baseline", "restricted"])?;
    Ok(word.and_then(|word| levels.get(word).copied()))
}

fn version(keys: &Keys<'_, '_>) -> Result<u32, Bad> {
    let text = keys.text("version")?.unwrap_or("latest");
    if text == "latest" {
        return Ok(NEWEST);
    }
    let minor = text.strip_prefix("v1.").and_then(|minor| minor.parse().ok());
    minor.filter(|minor| *minor >= OLDEST).ok_or_else(|| {
        let wanted = format!("\"latest\" or a version from \"v1.{OLDEST}\" on");
        Bad::new(keys.path("version"), format!("{wanted} is wanted, and this is {text:?}"))
    })
}
