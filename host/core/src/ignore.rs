//! Ignore rules: fields of an object that are somebody else's to set.
//!
//! A rule stands in the configuration, for all objects of a source or some, or in an annotation of
//! the desired object. Rules count once the object exists: an absent one is made as it is declared.
//! From then on an ignored field is no drift and is never written, whatever a plugin decides:
//! the host applies the rules itself, to what a plugin is shown ([`shown`]) and to everything that
//! the gate makes a write or a dry run of ([`Places`]). Objects without rules cost nothing here.

mod places;

use crate::decision::Action;
use crate::grant::Refusal;
use crate::identity::ObjectKey;
use crate::object::{Desired, Live, LiveObject};
use crate::ownership::FIELD_MANAGER;
use crate::plugin::KindPattern;
use crate::snapshot::Snapshot;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use trimtab_json::{Object, Path, Value};

pub(crate) use self::places::Places;

/// The annotation of a desired object that holds rules, one a line.
pub const ANNOTATION: &str = "trimtab.dev/ignore";

/// One rule, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    text: String,
    place: String,
    rule: trimtab_compare::Rule,
    object: Option<ObjectKey>,
}

impl Rule {
    /// Reads `PATH`, `PATH by MANAGER` or `by MANAGER`; `place` says where that stands.
    ///
    /// # Errors
    /// A sentence that says what is wrong with the text, and where it stands.
    pub fn parse(text: &str, place: &str) -> Result<Self, String> {
        let text = text.trim();
        let wrong = |why: &str| {
            format!(
                "{place}: ignore rule {text:?}: {why}: write PATH, PATH by MANAGER or by MANAGER"
            )
        };
        let (path, manager) = match text.strip_prefix("by ") {
            Some(manager) => ("", Some(manager.trim())),
            None => match text.rsplit_once(" by ") {
                Some((path, manager)) => (path.trim(), Some(manager.trim())),
                None => (text, None),
            },
        };
        if path.is_empty() && manager.is_none() {
            return Err(wrong("it names neither a path nor a field manager"));
        }
        if path.contains(char::is_whitespace) {
            return Err(wrong("there is a space in its path"));
        }
        if manager == Some("") {
            return Err(wrong("no field manager follows \"by\""));
        }
        if manager == Some(FIELD_MANAGER) {
            return Err(wrong("that field manager is Trimtab itself, which sets what is declared"));
        }
        let rule = trimtab_compare::Rule::path(path).map_err(|error| wrong(&error.to_string()))?;
        let rule = manager.map_or(rule.clone(), |manager| rule.by(manager));
        Ok(Self { text: text.to_owned(), place: place.to_owned(), rule, object: None })
    }

    /// As a rule that stands in this object itself.
    #[must_use]
    pub fn of(self, object: &ObjectKey) -> Self {
        Self { object: Some(object.clone()), ..self }
    }

    /// The object that it stands in, if it does.
    pub fn object(&self) -> Option<&ObjectKey> {
        self.object.as_ref()
    }

    /// The rule's text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where it stands.
    pub fn place(&self) -> &str {
        &self.place
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.text, self.place)
    }
}

/// A rule of a source, and the objects that it is for. An empty list means all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scoped {
    /// The rule.
    pub rule: Arc<Rule>,
    /// Kinds.
    pub kinds: Vec<KindPattern>,
    /// Namespaces by name.
    pub namespaces: Vec<String>,
    /// Objects by name.
    pub names: Vec<String>,
}

impl Scoped {
    /// A rule for every object.
    pub fn everywhere(rule: Rule) -> Self {
        Self { rule: Arc::new(rule), kinds: vec![], namespaces: vec![], names: vec![] }
    }

    /// Whether the rule is for this object.
    pub fn covers(&self, key: &ObjectKey) -> bool {
        let names = |list: &[String], name: &str| {
            list.is_empty() || list.iter().any(|wanted| wanted == name)
        };
        (self.kinds.is_empty() || self.kinds.iter().any(|kind| kind.covers(&key.group_kind)))
            && names(&self.namespaces, key.namespace_str())
            && names(&self.names, &key.name)
    }
}

/// The rules of one object.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    rules: Vec<Arc<Rule>>,
    problem: Option<Arc<str>>,
}

impl Rules {
    /// The rules in the annotation of a desired object; what cannot be read refuses the object.
    pub(crate) fn annotated(metadata: &Object<'_>, key: &ObjectKey) -> Self {
        let Some(value) = metadata.get("annotations").and_then(|all| all.get(ANNOTATION)) else {
            return Self::default();
        };
        let place = format!("annotation {ANNOTATION} of {key}");
        let Some(text) = value.as_str() else {
            let what = value.type_name();
            let problem = format!("{place}: it is {what} and must be text, one rule a line");
            return Self { rules: vec![], problem: Some(problem.into()) };
        };
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let rules: Result<_, String> = lines
            .map(|line| Rule::parse(line, &place).map(|rule| Arc::new(rule.of(key))))
            .collect();
        match rules {
            Ok(rules) => Self { rules, problem: None },
            Err(problem) => Self { rules: vec![], problem: Some(problem.into()) },
        }
    }

    /// Adds the source's rules for this object.
    pub fn extend(&mut self, source: &[Scoped], key: &ObjectKey) {
        let theirs = source.iter().filter(|scoped| scoped.covers(key));
        self.rules.extend(theirs.map(|scoped| scoped.rule.clone()));
    }

    /// Why the object's own rules cannot be read, if they cannot: then it is refused.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Whether there is nothing to ignore.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.problem.is_none()
    }

    /// The rules.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Rule>> {
        self.rules.iter()
    }
}

/// A rule of an object, and how many places of it the rule led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matched {
    /// The rule.
    pub rule: Arc<Rule>,
    /// Places in desired and live together, each counted once.
    pub places: usize,
}

/// An object as a plugin is shown it.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// Desired, where it is another than declared.
    pub desired: Option<Arc<[u8]>>,
    /// Live, where it is another than the server's.
    pub live: Option<Arc<[u8]>>,
    /// What each rule led to.
    pub matched: Vec<Matched>,
}

/// How desired and live are shown: where live has an ignored field, desired states just that; where
/// it has none, desired states none. So nothing of it differs, and what surrounds it stays whole:
/// lists keep their length and required fields their values. Only what lies in a place of which
/// desired states nothing at all is taken out of live instead.
///
/// # Errors
/// A rule that cannot be read; an object that does not parse.
pub fn shown(desired: &Desired, live: Option<&[u8]>, facts: &[u8]) -> Result<Shown, String> {
    let rules = &desired.ignore;
    if let Some(problem) = rules.problem() {
        return Err(problem.to_owned());
    }
    if rules.is_empty() {
        return Ok(Shown::default());
    }
    let read = |json| trimtab_json::parse(json).map_err(|error| error.to_string());
    let live = live.map(read).transpose()?;
    let mut wanted = read(&desired.json)?;
    let places = Places::of(rules, &wanted, live.as_ref(), facts);
    let matched = places.matched(rules);
    let Some(live) = live.filter(|_| !places.is_empty()) else {
        return Ok(Shown { matched, ..Shown::default() });
    };
    let seen = places.show(&mut wanted, &live);
    let text = |value: &Value<'_>| {
        let mut bytes = Vec::new();
        trimtab_json::write(value, &mut bytes);
        Arc::from(bytes)
    };
    Ok(Shown { desired: Some(text(&wanted)), live: seen.as_ref().map(text), matched })
}

/// The snapshot as a plugin is shown it, and what the rules led to.
///
/// # Errors
/// See [`shown`].
pub(crate) fn snapshot(snapshot: &Snapshot) -> Result<(Cow<'_, Snapshot>, Vec<Matched>), String> {
    if snapshot.desired.ignore.is_empty() {
        return Ok((Cow::Borrowed(snapshot), vec![]));
    }
    let live = snapshot.live_object();
    let Shown { desired, live: seen, matched } =
        shown(&snapshot.desired, live.map(|live| &*live.json), &snapshot.facts)?;
    let Some(json) = desired else { return Ok((Cow::Borrowed(snapshot), matched)) };
    let mut view = snapshot.clone();
    view.desired = Arc::new(Desired { json, ..Desired::clone(&snapshot.desired) });
    if let (Some(json), Some(live)) = (seen, live) {
        view.live = Live::Present(LiveObject { json, ..live.clone() });
    }
    Ok((Cow::Owned(view), matched))
}

/// Where the object's rules lead.
///
/// # Errors
/// Desired bytes that do not parse.
pub(crate) fn places(snapshot: &Snapshot, live: &Value<'_>) -> Result<Places, String> {
    let Desired { ignore, json, .. } = &*snapshot.desired;
    if ignore.is_empty() {
        return Ok(Places::default());
    }
    let desired = trimtab_json::parse(json).map_err(|error| error.to_string())?;
    Ok(Places::of(ignore, &desired, Some(live), &snapshot.facts))
}

/// The action without the removal of what is ignored, if anything is left of it, and the refusal
/// of that part. (What is applied loses it without a word: it is what was declared.)
///
/// # Errors
/// An object that does not parse.
pub(crate) fn permitted(
    action: &Action,
    snapshot: &Snapshot,
) -> Result<(Option<Action>, Option<Refusal>), String> {
    let (Action::RemoveFields(paths), Some(live)) = (action, snapshot.live_object()) else {
        return Ok((Some(action.clone()), None));
    };
    if snapshot.desired.ignore.is_empty() {
        return Ok((Some(action.clone()), None));
    }
    let live = trimtab_json::parse(&live.json).map_err(|error| error.to_string())?;
    let places = places(snapshot, &live)?;
    let is_ignored =
        |text: &&String| Path::parse(text).is_ok_and(|path| places.cover(&path, &live));
    let (ignored, kept): (Vec<&String>, Vec<&String>) = paths.iter().partition(is_ignored);
    if ignored.is_empty() {
        return Ok((Some(action.clone()), None));
    }
    let list: Vec<&str> = ignored.into_iter().map(String::as_str).collect();
    let refusal = Refusal {
        reason: "FieldIgnored",
        message: format!("an ignore rule keeps {} as it is", list.join(", ")),
    };
    let kept: Vec<String> = kept.into_iter().cloned().collect();
    let left = (!kept.is_empty()).then_some(Action::RemoveFields(kept));
    Ok((left, Some(refusal)))
}

#[cfg(test)]
mod tests;
