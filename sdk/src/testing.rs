//! Runs a plugin natively on JSON text: no sandbox, no cluster.
//!
//! ```
//! # use trimtab_sdk::{Decision, Difference, Reconciler, Snapshot, Verdict};
//! # struct Plain;
//! # impl Reconciler for Plain {
//! #     fn decide(_: &Snapshot<'_>, _: &[Difference<'_>]) -> Verdict {
//! #         Decision::new().apply_desired().into()
//! #     }
//! # }
//! use trimtab_sdk::testing::Case;
//!
//! Case::new()
//!     .desired(r#"{"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"}}"#)
//!     .live(r#"{"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "2"}}"#)
//!     .check::<Plain>(
//!         r#"
//!         changed /data/a "1" <- "2"
//!         apply-desired
//!         "#,
//!     );
//! ```
//!
//! The expectation has one line for each difference (`KIND PATH DESIRED <- LIVE`), action and
//! finding; indentation does not count. `in-sync`, `invalid: HOW`, `unknown: WHY` and `defer TIME: WHY` stand for
//! themselves. `trimtab plugin test` runs the same kind of case in the sandbox. A policy has
//! [`ReviewCase`].

mod review;

pub use review::ReviewCase;

use crate::lookup::{LookupError, Related};
use crate::snapshot::Parts;
use crate::{
    Action, Comparison, Decision, Difference, Finding, NoComparison, ObjectId, Path, Reconciler,
    Snapshot, Unknown, Value, Verdict, json,
};
use std::cell::RefCell;
use std::fmt::Write;

/// The field manager that cases run under, unless they say otherwise.
pub const FIELD_MANAGER: &str = "trimtab";

/// The pass's time in cases, unless they say otherwise: 2026-01-01T00:00:00Z.
pub const NOW_MS: u64 = 1_767_225_600_000;

thread_local! {
    /// What `lookup` answers while a case runs on this thread.
    static RELATED: RefCell<Vec<(Key, String)>> = const { RefCell::new(Vec::new()) };
    /// Why it answers nothing, if it does not.
    static NO_ANSWER: RefCell<Option<LookupError>> = const { RefCell::new(None) };
}

/// Group, kind, namespace and name.
type Key = [String; 4];

/// One case: what the plugin is shown. Everything that is not set is absent.
#[derive(Clone, Debug)]
pub struct Case {
    id: Identity,
    desired: Option<String>,
    live: Option<String>,
    facts: Vec<u8>,
    related: Vec<(Key, String)>,
    no_answer: Option<LookupError>,
    now_ms: u64,
    field_manager: String,
    retries: u32,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            id: Identity::default(),
            desired: None,
            live: None,
            facts: Vec::new(),
            related: Vec::new(),
            no_answer: None,
            now_ms: NOW_MS,
            field_manager: FIELD_MANAGER.to_owned(),
            retries: 0,
        }
    }
}

impl Case {
    /// Nothing desired, nothing live.
    pub fn new() -> Self {
        Self::default()
    }

    /// The object as declared, as JSON text.
    #[must_use]
    pub fn desired(mut self, json: impl Into<String>) -> Self {
        let json = json.into();
        self.id = Identity::of(&json);
        self.desired = Some(json);
        self
    }

    /// The object as the API server has it, as JSON text.
    #[must_use]
    pub fn live(mut self, json: impl Into<String>) -> Self {
        let json = json.into();
        if self.desired.is_none() {
            self.id = Identity::of(&json);
        }
        self.live = Some(json);
        self
    }

    /// What the schema says of the type, as [`crate::comparison::facts`] builds it.
    #[must_use]
    pub fn facts(mut self, facts: impl Into<Vec<u8>>) -> Self {
        self.facts = facts.into();
        self
    }

    /// An object that [`crate::lookup`] finds, as JSON text. Every other is known to be
    /// absent.
    ///
    /// # Panics
    /// If the text is not JSON.
    #[must_use]
    pub fn related(mut self, group: &str, json: impl Into<String>) -> Self {
        let json = json.into();
        let value = json::parse(json.as_bytes())
            .unwrap_or_else(|error| panic!("a related object of the case: {error}"));
        let text = |names: &[&str]| value.str_at(names).unwrap_or_default().to_owned();
        let key = [
            group.to_owned(),
            text(&["kind"]),
            text(&["metadata", "namespace"]),
            text(&["metadata", "name"]),
        ];
        self.related.push((key, json));
        self
    }

    /// Every read is answered with this error: what a plugin does without its reads.
    #[must_use]
    pub fn no_answer(mut self, error: LookupError) -> Self {
        self.no_answer = Some(error);
        self
    }

    /// The pass's time, in milliseconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub fn now_ms(mut self, now_ms: u64) -> Self {
        self.now_ms = now_ms;
        self
    }

    /// How many passes failed in a row before.
    #[must_use]
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// Runs `compare` and, if there are differences, `decide`; gives what came of it as text.
    ///
    /// # Panics
    /// If the case has neither desired nor live.
    pub fn run<T: Reconciler>(&self) -> String {
        RELATED.with_borrow_mut(|related| related.clone_from(&self.related));
        NO_ANSWER.set(self.no_answer.clone());
        let mut out = String::new();
        match self.answer::<T>(&mut out) {
            Ok(()) => {}
            Err(NoComparison::Invalid(how)) => line(&mut out, format_args!("invalid: {how}")),
            Err(NoComparison::Unknown(why)) => line(&mut out, format_args!("unknown: {why}")),
        }
        RELATED.with_borrow_mut(Vec::clear);
        NO_ANSWER.set(None);
        out
    }

    /// Runs the case and compares what came of it with the expectation.
    ///
    /// # Panics
    /// If they differ, with both.
    pub fn check<T: Reconciler>(&self, expected: &str) {
        let found = self.run::<T>();
        let lines = expected.lines().map(str::trim).filter(|line| !line.is_empty());
        let expected = lines.fold(String::new(), |all, line| all + line + "\n");
        assert!(found == expected, "expected:\n{expected}\nfound:\n{found}");
    }

    /// Runs `compare` alone and gives the differences' paths: what a benchmark of the same code
    /// in the sandbox is compared with.
    ///
    /// # Errors
    /// What the plugin answers instead of a comparison.
    pub fn compare<T: Reconciler>(&self) -> Result<Vec<Path>, NoComparison> {
        let snapshot = self.snapshot()?;
        let Comparison { differences } = T::compare(&snapshot)?;
        Ok(differences.into_iter().map(|difference| difference.path).collect())
    }

    fn snapshot(&self) -> Result<Snapshot<'_>, Unknown> {
        let Identity { group, version, kind, namespace, name } = &self.id;
        Snapshot::read(Parts {
            id: ObjectId { group, version, kind, namespace, name },
            desired: self.desired.as_deref().map(str::as_bytes),
            live: self.live.as_deref().map(str::as_bytes),
            facts: &self.facts,
            now_ms: self.now_ms,
            field_manager: &self.field_manager,
            retries: self.retries,
        })
    }

    fn answer<T: Reconciler>(&self, out: &mut String) -> Result<(), NoComparison> {
        assert!(
            self.desired.is_some() || self.live.is_some(),
            "the case has neither desired nor live"
        );
        let snapshot = self.snapshot()?;
        let Comparison { differences } = T::compare(&snapshot)?;
        if differences.is_empty() {
            line(out, format_args!("in-sync"));
            return Ok(());
        }
        for difference in &differences {
            show_difference(out, difference);
        }
        show_verdict(out, &T::decide(&snapshot, &differences));
        Ok(())
    }
}

/// The object's identity, from its own words.
#[derive(Clone, Debug, Default)]
struct Identity {
    group: String,
    version: String,
    kind: String,
    namespace: String,
    name: String,
}

impl Identity {
    /// What is no JSON has no identity; the plugin's answer says so.
    fn of(json: &str) -> Self {
        let object = json::parse(json.as_bytes()).unwrap_or_default();
        let text = |names: &[&str]| object.str_at(names).unwrap_or_default().to_owned();
        let api_version = text(&["apiVersion"]);
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: text(&["kind"]),
            namespace: text(&["metadata", "namespace"]),
            name: text(&["metadata", "name"]),
        }
    }
}

/// What [`crate::lookup::get`] answers natively.
pub(crate) fn lookup(
    group: &str,
    kind: &str,
    namespace: &str,
    name: &str,
) -> Result<Option<Related>, LookupError> {
    NO_ANSWER.with_borrow(|error| error.clone().map_or(Ok(()), Err))?;
    Ok(RELATED.with_borrow(|related| {
        let found = related.iter().find(|(key, _)| *key == [group, kind, namespace, name]);
        found.map(|(_, json)| Related::from(json.clone().into_bytes()))
    }))
}

/// What [`crate::lookup::find`] answers natively.
pub(crate) fn find(group: &str, kind: &str, namespace: &str) -> Result<Vec<Related>, LookupError> {
    NO_ANSWER.with_borrow(|error| error.clone().map_or(Ok(()), Err))?;
    Ok(RELATED.with_borrow(|related| {
        let mut found: Vec<_> =
            related.iter().filter(|(key, _)| key[..3] == [group, kind, namespace]).collect();
        found.sort_by(|a, b| a.0.cmp(&b.0));
        found.into_iter().map(|(_, json)| Related::from(json.clone().into_bytes())).collect()
    }))
}

fn show_difference(out: &mut String, difference: &Difference<'_>) {
    let Difference { path, kind, desired, live, immutable: _ } = difference;
    let path = shown_path(path);
    match (desired.as_deref().map(text), live.as_deref().map(text)) {
        (Some(desired), Some(live)) => {
            line(out, format_args!("{kind} {path} {desired} <- {live}"));
        }
        (Some(desired), None) => line(out, format_args!("{kind} {path} {desired}")),
        (None, Some(live)) => line(out, format_args!("{kind} {path} <- {live}")),
        (None, None) => line(out, format_args!("{kind} {path}")),
    }
}

fn show_verdict(out: &mut String, verdict: &Verdict) {
    match verdict {
        Verdict::Unknown(reason) => line(out, format_args!("unknown: {reason}")),
        Verdict::Defer { reason, after } => line(out, format_args!("defer {after:?}: {reason}")),
        Verdict::Decided(Decision { actions, conditions, findings, look_again_after }) => {
            for action in actions {
                show_action(out, action);
            }
            for condition in conditions {
                let crate::Condition { type_, status, reason, message } = condition;
                line(out, format_args!("condition {type_}={status:?} {reason}: {message}"));
            }
            for Finding { name, severity, path, .. } in findings {
                let at = path.as_ref().map(|path| format!(" {}", shown_path(path)));
                line(out, format_args!("finding {severity} {name}{}", at.unwrap_or_default()));
            }
            if let Some(after) = look_again_after {
                line(out, format_args!("look-again-after {after:?}"));
            }
        }
    }
}

fn show_action(out: &mut String, action: &Action) {
    let name = action.name();
    let list = |paths: &[Path]| {
        paths.iter().fold(String::new(), |all, path| all + " " + &shown_path(path))
    };
    match action {
        Action::ApplyDesired { without } if !without.is_empty() => {
            line(out, format_args!("{name} without{}", list(without)));
        }
        Action::RemoveFields(paths) => line(out, format_args!("{name}{}", list(paths))),
        Action::ApplyContent(value) | Action::PatchStatus(value) => {
            line(out, format_args!("{name} {}", text(value)));
        }
        Action::Leave(reason) => line(out, format_args!("{name}: {reason}")),
        Action::ApplyDesired { .. } | Action::Recreate | Action::Delete | Action::Adopt => {
            line(out, format_args!("{name}"));
        }
    }
}

/// The root path as a person can see it.
fn shown_path(path: &Path) -> String {
    if path.is_root() { "(root)".to_owned() } else { path.to_string() }
}

fn text(value: &Value<'_>) -> String {
    let mut out = Vec::new();
    json::write(value, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{text}");
}
