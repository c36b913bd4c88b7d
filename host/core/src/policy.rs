//! Policies: what they are asked, what they answer, and what follows from several answers.
//!
//! A policy reviews, and stops or warns; it never writes. Any deny of one that enforces wins. One
//! that fails is read as its grant says, and that is a deny unless the grant says otherwise. The step
//! that asks them before a write is `review.rs`; where desired state enters the engine asks them by
//! [`ask`].

use crate::decision::ActionKind;
use crate::grant::{Mode, Namespaces};
use crate::identity::{Digest, Gvk, ObjectKey};
use crate::masked;
use crate::object::{Desired, Origin, Provenance};
use crate::plugin::{KindPattern, PluginIdentity};
use crate::ports::PluginFault;
use crate::redact::{Redactor, is_sensitive};
use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// Where on an object's way policies are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Point {
    /// An object of desired state enters, before it takes the place of the last good one.
    Enters,
    /// A change is about to be written.
    BeforeWrite,
}

impl Point {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Enters, Self::BeforeWrite];

    /// The word used in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enters => "enters",
            Self::BeforeWrite => "before-write",
        }
    }
}

/// How the failure of a policy is read: a trap, a timeout, an answer that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnError {
    /// As a deny.
    #[default]
    Deny,
    /// As a warning: nothing is stopped.
    Warn,
}

/// What a grant says of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyTerms {
    /// Observe: what it says is recorded and stops nothing.
    pub mode: Mode,
    /// How its failures are read.
    pub on_error: OnError,
    /// Where it is asked.
    pub points: BTreeSet<Point>,
    /// Kinds, narrowing the manifest's claims; `None`: all of them.
    pub kinds: Option<Vec<KindPattern>>,
    /// Namespaces. Where some are named, of objects outside namespaces only these namespaces
    /// themselves are reviewed.
    pub namespaces: Namespaces,
    /// Sources by name; `None`: all.
    pub sources: Option<BTreeSet<String>>,
    /// What it is given as its configuration: one JSON value.
    pub configuration: Arc<[u8]>,
}

impl Default for PolicyTerms {
    /// Those without a grant: it observes.
    fn default() -> Self {
        Self {
            mode: Mode::Observe,
            on_error: OnError::Deny,
            points: Point::ALL.into(),
            kinds: None,
            namespaces: Namespaces::All,
            sources: None,
            configuration: Arc::from(&b"null"[..]),
        }
    }
}

/// A policy in service: which code, over what, under which terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Which code.
    pub plugin: PluginIdentity,
    /// Kinds that it reviews.
    pub claims: Vec<KindPattern>,
    /// What its grant says.
    pub terms: PolicyTerms,
    /// Whether it has a grant: one without sees no value of a Secret.
    pub granted: bool,
}

impl Policy {
    /// Whether it is asked about this object of this source at this point.
    pub fn covers(&self, point: Point, key: &ObjectKey, source: &str) -> bool {
        let any = |kinds: &[KindPattern]| kinds.iter().any(|kind| kind.covers(&key.group_kind));
        let terms = &self.terms;
        terms.points.contains(&point)
            && any(&self.claims)
            && terms.kinds.as_deref().is_none_or(any)
            && terms.sources.as_ref().is_none_or(|sources| sources.contains(source))
            && match (&terms.namespaces, &key.namespace) {
                (Namespaces::All, _) => true,
                (Namespaces::Only(only), Some(namespace)) => only.contains(&**namespace),
                (Namespaces::Only(only), None) => {
                    key.group_kind.group.is_empty()
                        && &*key.group_kind.kind == "Namespace"
                        && only.contains(&*key.name)
                }
            }
    }
}

/// Who vouches for an object, by its source.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Vouched {
    /// Who the commit says its author is.
    pub author: Option<Arc<str>>,
    /// Names of allowed signers whose signatures were verified, the head commit's first.
    pub signers: Vec<Arc<str>>,
}

impl Vouched {
    /// By what a source says of a revision: for one of its files, or for the whole.
    pub fn by(provenance: &Provenance, file: Option<&str>) -> Self {
        let mut signers: Vec<Arc<str>> =
            provenance.signer.iter().map(|signer| signer.principal.clone()).collect();
        for name in file.and_then(|file| provenance.touched.get(file)).into_iter().flatten() {
            if !signers.contains(name) {
                signers.push(name.clone());
            }
        }
        Self { author: provenance.author.clone(), signers }
    }

    /// The same, and those who vouched for the same bytes before.
    pub fn and(mut self, before: &Self) -> Self {
        for name in &before.signers {
            if !self.signers.contains(name) {
                self.signers.push(name.clone());
            }
        }
        self
    }
}

/// One change, as a policy sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposed {
    /// What is done.
    pub action: ActionKind,
    /// What it would touch; the empty text: all of the object.
    pub paths: Vec<String>,
    /// Whether there is no live object yet.
    pub creates: bool,
    /// What is applied, where that is content of a plugin's making.
    pub content: Option<Arc<[u8]>>,
}

/// All that a policy is shown.
#[derive(Clone, Debug)]
pub struct Request {
    /// Where on its way the object is.
    pub point: Point,
    /// Which object.
    pub key: ObjectKey,
    /// Its version.
    pub gvk: Gvk,
    /// As declared; `None`: it is declared no more.
    pub desired: Option<Arc<[u8]>>,
    /// As the API server has it.
    pub live: Option<Arc<[u8]>>,
    /// What is about to be written.
    pub change: Option<Proposed>,
    /// The source's name.
    pub source: Arc<str>,
    /// The source's revision.
    pub revision: Arc<str>,
    /// Where it is declared.
    pub origin: Option<Origin>,
    /// Who vouches for it.
    pub vouched: Arc<Vouched>,
    /// Milliseconds since the Unix epoch.
    pub now_ms: u64,
}

impl Request {
    /// Of an object of desired state that enters.
    pub fn enters(desired: &Desired, vouched: Arc<Vouched>, now_ms: u64) -> Self {
        Self {
            point: Point::Enters,
            key: desired.key.clone(),
            gvk: desired.gvk.clone(),
            desired: Some(desired.json.clone()),
            live: None,
            change: None,
            source: desired.source.clone(),
            revision: desired.revision.clone(),
            origin: Some(desired.origin.clone()),
            vouched,
            now_ms,
        }
    }

    /// With the values of a Secret masked.
    fn masked(&self, redactor: &Redactor) -> Result<Self, String> {
        let mask = |json: &Option<Arc<[u8]>>| {
            json.as_deref().map(|json| masked::object(json, redactor)).transpose()
        };
        let mut shown = self.clone();
        shown.desired = mask(&self.desired)?;
        shown.live = mask(&self.live)?;
        if let Some(change) = &mut shown.change {
            change.content = mask(&change.content)?;
        }
        Ok(shown)
    }
}

/// Why a policy says what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The rule's stable name, in kebab-case.
    pub control: String,
    /// For people.
    pub message: String,
    /// The path it is about; `None`: the whole object.
    pub path: Option<String>,
}

/// What a policy answers. Warnings and denials have at least one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing is wrong.
    Allow,
    /// Nothing is stopped, and people are told.
    Warn(Vec<Reason>),
    /// It is stopped.
    Deny(Vec<Reason>),
}

/// The future of a verdict.
pub type Answer<'a> = Pin<Box<dyn Future<Output = Result<Verdict, PluginFault>> + Send + 'a>>;

/// A policy that can be asked: a plugin in its sandbox, or the same code native in tests.
pub trait Reviewer: Send + Sync + fmt::Debug {
    /// Which policy, under which terms.
    fn policy(&self) -> &Policy;

    /// May this be?
    fn review<'a>(&'a self, request: &'a Request) -> Answer<'a>;
}

/// The policies that are in force, and who vouches for the object at hand.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    /// In the order in which they are asked.
    pub reviewers: Arc<[Arc<dyn Reviewer>]>,
    /// Of the object that a pass is about.
    pub vouched: Arc<Vouched>,
}

/// What one policy said, redacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opinion {
    /// Which code said it.
    pub policy: PluginIdentity,
    /// Whether it can stop anything.
    pub mode: Mode,
    /// Where it was asked.
    pub point: Point,
    /// What it said.
    pub said: Said,
}

/// An answer, or how a failure is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// It answered.
    Verdict(Verdict),
    /// It failed.
    Failed {
        /// How.
        fault: String,
        /// How its grant has that read.
        on_error: OnError,
    },
}

impl Opinion {
    /// Whether this stops what it is about.
    pub fn stops(&self) -> bool {
        self.mode == Mode::Enforce
            && matches!(
                self.said,
                Said::Verdict(Verdict::Deny(_)) | Said::Failed { on_error: OnError::Deny, .. }
            )
    }

    /// Whether it failed, so that asking again may help.
    pub fn has_failed(&self) -> bool {
        matches!(self.said, Said::Failed { .. })
    }

    /// Whether people should hear of it.
    pub fn is_notable(&self) -> bool {
        self.said != Said::Verdict(Verdict::Allow)
    }

    /// The word for it: `allow`, `warn`, `deny` or `failed`.
    pub fn word(&self) -> &'static str {
        match &self.said {
            Said::Verdict(Verdict::Allow) => "allow",
            Said::Verdict(Verdict::Warn(_)) => "warn",
            Said::Verdict(Verdict::Deny(_)) => "deny",
            Said::Failed { .. } => "failed",
        }
    }

    /// Its reasons.
    pub fn reasons(&self) -> &[Reason] {
        match &self.said {
            Said::Verdict(Verdict::Warn(reasons) | Verdict::Deny(reasons)) => reasons,
            _ => &[],
        }
    }
}

impl fmt::Display for Opinion {
    /// `policy NAME VERSION: CONTROL: MESSAGE (PATH); …`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "policy {} {}: ", self.policy.name, self.policy.version)?;
        if let Said::Failed { fault, .. } = &self.said {
            return write!(f, "it {fault}");
        }
        for (index, Reason { control, message, path }) in self.reasons().iter().enumerate() {
            let between = if index == 0 { "" } else { "; " };
            write!(f, "{between}{control}: {message}")?;
            if let Some(path) = path.as_ref().filter(|path| !path.is_empty()) {
                write!(f, " ({path})")?;
            }
        }
        Ok(())
    }
}

/// What is stopped, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// Which policies deny it, by which controls, and why.
    pub reason: String,
    /// Only failures stop it, so that it is tried again.
    pub failed: bool,
}

/// What follows from what all said: any deny wins. `None`: nothing is stopped.
pub fn denied(opinions: &[Opinion]) -> Option<Denied> {
    let stopping: Vec<&Opinion> = opinions.iter().filter(|opinion| opinion.stops()).collect();
    if stopping.is_empty() {
        return None;
    }
    let reasons: Vec<String> = stopping.iter().map(ToString::to_string).collect();
    let failed = stopping.iter().all(|opinion| opinion.has_failed());
    Some(Denied { reason: format!("denied by {}", reasons.join("; and by ")), failed })
}

/// Asks every policy that covers this, one after the other. The answers are redacted.
pub async fn ask(
    reviewers: &[Arc<dyn Reviewer>],
    request: &Request,
    redactor: &Redactor,
) -> Vec<Opinion> {
    let mut opinions = Vec::new();
    for reviewer in reviewers {
        let policy = reviewer.policy();
        if !policy.covers(request.point, &request.key, &request.source) {
            continue;
        }
        let answer = if policy.granted || !is_sensitive(&request.key.group_kind) {
            reviewer.review(request).await
        } else {
            match request.masked(redactor) {
                Ok(masked) => reviewer.review(&masked).await,
                Err(why) => Err(PluginFault::Unavailable(why)),
            }
        };
        let said = match answer {
            Ok(verdict) => Said::Verdict(shown(verdict, request, redactor)),
            Err(fault) => Said::Failed {
                fault: redactor.text(&request.key.group_kind, fault.to_string()),
                on_error: policy.terms.on_error,
            },
        };
        opinions.push(Opinion {
            policy: policy.plugin.clone(),
            mode: policy.terms.mode,
            point: request.point,
            said,
        });
    }
    opinions
}

/// Of an object that holds secrets the rules' names alone: words and paths could carry values out.
fn shown(verdict: Verdict, request: &Request, redactor: &Redactor) -> Verdict {
    let kind = &request.key.group_kind;
    let reason = |reason: Reason| Reason {
        control: redactor.name(reason.control),
        message: redactor.text(kind, reason.message),
        path: reason.path.filter(|_| !is_sensitive(kind)).map(|path| redactor.name(path)),
    };
    let all = |reasons: Vec<Reason>| reasons.into_iter().map(reason).collect();
    match verdict {
        Verdict::Allow => Verdict::Allow,
        Verdict::Warn(reasons) => Verdict::Warn(all(reasons)),
        Verdict::Deny(reasons) => Verdict::Deny(all(reasons)),
    }
}

/// What a verdict on an object that enters depends on: while it is the same, so is the verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnteringKey {
    /// Of the object's bytes.
    pub desired: Digest,
    /// Its source.
    pub source: Arc<str>,
    /// Who vouches for it.
    pub vouched: Arc<Vouched>,
    /// Of all policies with their terms: [`stamp`].
    pub policies: Digest,
}

/// Changes whenever a policy, or what its grant says, does.
pub fn stamp(reviewers: &[Arc<dyn Reviewer>]) -> Digest {
    let all: Vec<&Policy> = reviewers.iter().map(|reviewer| reviewer.policy()).collect();
    Digest::of(format!("{all:?}").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::GroupKind;

    fn policy(terms: PolicyTerms) -> Policy {
        let plugin =
            PluginIdentity { name: "p".into(), version: "1.0.0".into(), digest: Digest::of(b"p") };
        Policy { plugin, claims: vec![KindPattern::Any], terms, granted: true }
    }

    fn opinion(mode: Mode, said: Said) -> Opinion {
        let plugin = policy(PolicyTerms::default()).plugin;
        Opinion { policy: plugin, mode, point: Point::Enters, said }
    }

    fn every_opinion() -> Vec<Opinion> {
        let reason =
            || Reason { control: "c".into(), message: "m".into(), path: Some("/spec".into()) };
        let failed = |on_error| Said::Failed { fault: "trapped".into(), on_error };
        let said = [
            Said::Verdict(Verdict::Allow),
            Said::Verdict(Verdict::Warn(vec![reason()])),
            Said::Verdict(Verdict::Deny(vec![reason()])),
            failed(OnError::Deny),
            failed(OnError::Warn),
        ];
        let both = [Mode::Observe, Mode::Enforce];
        both.into_iter()
            .flat_map(|mode| said.iter().map(move |said| opinion(mode, said.clone())))
            .collect()
    }

    #[test]
    fn any_deny_wins_whatever_the_others_say_and_in_whatever_order() {
        let all = every_opinion();
        // Every list of up to three opinions: 10 + 100 + 1000 of them, in every order.
        let mut lists: Vec<Vec<Opinion>> = vec![vec![]];
        for length in 1..=3 {
            let longer: Vec<Vec<Opinion>> = lists
                .iter()
                .filter(|list| list.len() == length - 1)
                .flat_map(|list| {
                    all.iter().map(move |one| list.iter().chain([one]).cloned().collect())
                })
                .collect();
            lists.extend(longer);
        }
        assert_eq!(lists.len(), 1111);
        for list in lists {
            let stopped = list.iter().any(|it| {
                it.mode == Mode::Enforce
                    && match &it.said {
                        Said::Verdict(verdict) => matches!(verdict, Verdict::Deny(_)),
                        Said::Failed { on_error, .. } => *on_error == OnError::Deny,
                    }
            });
            let result = denied(&list);
            assert_eq!(result.is_some(), stopped, "{list:?}");
            let real = list.iter().any(|it| it.stops() && !it.has_failed());
            assert_eq!(result.is_some_and(|it| !it.failed), real, "{list:?}");
        }
    }

    #[test]
    fn what_stops_is_named_with_policy_control_and_path() {
        let list: Vec<Opinion> = every_opinion().into_iter().filter(Opinion::stops).collect();
        let reason = denied(&list).unwrap().reason;
        assert_eq!(
            reason,
            "denied by policy p 1.0.0: c: m (/spec); and by policy p 1.0.0: it trapped"
        );
    }

    #[test]
    fn a_policy_covers_what_claims_and_grant_both_name() {
        let key = |kind: &str, namespace: &str, name: &str| {
            ObjectKey::new(GroupKind::new("", kind), namespace, name)
        };
        let (map, space) = (key("ConfigMap", "shop", "a"), key("Namespace", "", "shop"));
        let all = policy(PolicyTerms::default());
        for point in Point::ALL {
            assert!(all.covers(point, &map, "x") && all.covers(point, &space, "x"));
        }
        let narrow = policy(PolicyTerms {
            points: [Point::BeforeWrite].into(),
            kinds: Some(vec![KindPattern::parse("ConfigMap").unwrap()]),
            sources: Some(["x".to_owned()].into()),
            ..PolicyTerms::default()
        });
        assert!(narrow.covers(Point::BeforeWrite, &map, "x"));
        assert!(!narrow.covers(Point::Enters, &map, "x"));
        assert!(!narrow.covers(Point::BeforeWrite, &map, "y"));
        assert!(!narrow.covers(Point::BeforeWrite, &space, "x"));
        let named = Namespaces::Only(["shop".to_owned()].into());
        let placed = policy(PolicyTerms { namespaces: named, ..PolicyTerms::default() });
        assert!(
            placed.covers(Point::Enters, &map, "x") && placed.covers(Point::Enters, &space, "x")
        );
        let others = [
            key("ConfigMap", "other", "a"),
            key("Namespace", "", "other"),
            key("Node", "", "shop"),
        ];
        assert!(others.iter().all(|key| !placed.covers(Point::Enters, key, "x")));
        let claims = vec![KindPattern::parse("Secret").unwrap()];
        assert!(!Policy { claims, ..all }.covers(Point::Enters, &map, "x"));
    }
}
