//! Where desired state enters: policies review each object before it takes the place of the last
//! good one.
//!
//! Takes desired state as it was put together, and leaves in it what the policies let in. What is
//! denied, or not answered yet, is as it was in force before, or not there; the rest flows. Verdicts
//! are kept for as long as all that they depend on is the same ([`EnteringKey`]).

use super::Engine;
use super::desired::{DesiredState, Refused};
use super::entered::Entered;
use crate::journal::ReviewLine;
use crate::timestamp::now_ms;
use futures::StreamExt as _;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::{JoinError, JoinSet};
use trimtab_core::identity::ObjectKey;
use trimtab_core::object::Desired;
use trimtab_core::policy::{self, Denied, EnteringKey, Opinion, Point, Policies, Request, Vouched};

/// Objects that one task reviews.
const OBJECTS_A_TASK: usize = 64;
/// Of these, reviews at once: the sandbox has its own turns.
const AT_ONCE: usize = 8;
/// While reviews go on, what was answered is put in force this often.
const PUT_IN_FORCE_EVERY: Duration = Duration::from_millis(250);
/// How soon a policy that failed is asked again.
const AGAIN_AFTER: Duration = Duration::from_secs(30);

/// What is known of objects that entered or were held up.
#[derive(Default)]
pub(super) struct Entrance {
    known: HashMap<ObjectKey, Known>,
    under_way: HashMap<ObjectKey, EnteringKey>,
    /// Reviews under way.
    pub(super) tasks: JoinSet<Vec<Done>>,
    put_at: Option<Instant>,
    entered: Entered,
}

/// A verdict, and what it is for.
struct Known {
    key: EnteringKey,
    opinions: Vec<Opinion>,
    denied: Option<Denied>,
    again_at: Option<Instant>,
}

/// A review that ended.
pub(super) struct Done {
    desired: Arc<Desired>,
    key: EnteringKey,
    opinions: Vec<Opinion>,
}

impl Entrance {
    /// With what the host before this one let in.
    pub(super) fn resumed(state: &std::path::Path) -> Self {
        Self { entered: Entered::read(state), ..Self::default() }
    }

    /// Nothing is under review.
    pub(super) fn is_quiet(&self) -> bool {
        self.under_way.is_empty()
    }

    /// How long until a policy that failed is asked again.
    pub(super) fn due(&self) -> Option<Duration> {
        let at = self.known.values().filter_map(|known| known.again_at).min()?;
        Some(at.saturating_duration_since(Instant::now()))
    }
}

impl Engine {
    /// What policies review writes of this object with.
    pub(super) fn policies_for(&self, desired: &Desired) -> Policies {
        let reviewers = self.parts.registry.borrow().reviewers.clone();
        if reviewers.is_empty() {
            return Policies::default();
        }
        Policies { reviewers, vouched: self.vouched(desired) }
    }

    /// Who vouches for an object: of one that was let in those who did then, for as long as it says
    /// the same.
    fn vouched(&self, desired: &Desired) -> Arc<Vouched> {
        if let Some(vouched) = self.entrance.entered.of(desired) {
            return vouched;
        }
        let now = self.vouched_now(&desired.source, Some(&desired.origin.file));
        let known = self.entrance.known.get(&desired.key).map(|known| &known.key);
        match known.filter(|it| it.desired == desired.digest && it.source == desired.source) {
            // Whoever vouched for these very bytes before still does.
            Some(before) => Arc::new((*now).clone().and(&before.vouched)),
            None => now,
        }
    }

    /// Who vouches for a file of what is in force of a source; without a file, for the whole.
    pub(super) fn vouched_now(&self, source: &str, file: Option<&str>) -> Arc<Vouched> {
        let in_force = self.sources.get(source).and_then(|entry| entry.in_force.as_ref());
        let Some(in_force) = in_force else { return Arc::default() };
        Arc::new(Vouched::by(&in_force.revision.provenance, file))
    }

    /// Leaves in `next` what policies let in, and has the rest reviewed.
    pub(super) fn enter(&mut self, next: &mut DesiredState) {
        let registry = self.parts.registry.borrow().clone();
        let covered = |desired: &Desired| {
            let covers = |policy: &policy::Policy| {
                policy.covers(Point::Enters, &desired.key, &desired.source)
            };
            registry.reviewers.iter().any(|reviewer| covers(reviewer.policy()))
        };
        let (mut unknown, mut withheld, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
        for desired in next.objects.values().filter(|desired| covered(desired)) {
            seen.insert(desired.key.clone());
            let key = EnteringKey {
                desired: desired.digest,
                source: desired.source.clone(),
                vouched: self.vouched(desired),
                policies: registry.policies,
            };
            match self.entrance.known.get(&desired.key) {
                Some(known) if known.key == key => {
                    if let Some(denied) = &known.denied {
                        withheld.push((desired.clone(), Some(denied.reason.clone())));
                    }
                }
                _ => {
                    withheld.push((desired.clone(), None));
                    if self.entrance.under_way.get(&desired.key) != Some(&key) {
                        unknown.push((desired.clone(), key));
                    }
                }
            }
        }
        self.entrance.known.retain(|key, _| seen.contains(key));
        self.entrance.under_way.retain(|key, _| seen.contains(key));
        self.entrance.entered.retain(&seen);
        if withheld.is_empty() {
            return;
        }
        for (desired, denied) in withheld {
            next.withhold(&desired.key, self.desired.objects.get(&desired.key));
            let Some(reason) = denied else {
                next.reviewing.insert(desired.key.clone());
                continue;
            };
            let stays = match next.objects.contains_key(&desired.key) {
                true => "what was in force of it stays",
                false => "it is not applied",
            };
            next.refused.push(Refused {
                source: desired.source.to_string(),
                object: desired.key.to_string(),
                origin: desired.origin.to_string(),
                reason: format!("{reason}; {stays}"),
            });
        }
        next.refused.sort();
        next.count_accounts();
        self.review(unknown);
    }

    fn review(&mut self, unknown: Vec<(Arc<Desired>, EnteringKey)>) {
        let reviewers = self.parts.registry.borrow().reviewers.clone();
        let redactor = self.redactor();
        for objects in unknown.chunks(OBJECTS_A_TASK) {
            for (desired, key) in objects {
                self.entrance.under_way.insert(desired.key.clone(), key.clone());
            }
            let (objects, reviewers, redactor) =
                (objects.to_vec(), reviewers.clone(), redactor.clone());
            self.entrance.tasks.spawn(async move {
                let one = |(desired, key): (Arc<Desired>, EnteringKey)| {
                    let (reviewers, redactor) = (&reviewers, &redactor);
                    async move {
                        let request = Request::enters(&desired, key.vouched.clone(), now_ms());
                        let opinions = policy::ask(reviewers, &request, redactor).await;
                        Done { desired, key, opinions }
                    }
                };
                futures::stream::iter(objects).map(one).buffer_unordered(AT_ONCE).collect().await
            });
        }
    }

    /// Takes verdicts, and puts in force what they let in.
    pub(super) fn take_entered(&mut self, done: Result<Vec<Done>, JoinError>) {
        let done = match done {
            Ok(done) => done,
            // A defect of ours; the process must not go on as if nothing were.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        };
        for Done { desired, key, opinions } in done {
            // What is declared by now may be something else.
            if self.entrance.under_way.get(&desired.key) != Some(&key) {
                continue;
            }
            self.entrance.under_way.remove(&desired.key);
            let denied = policy::denied(&opinions);
            let failed = opinions.iter().any(Opinion::has_failed);
            let again_at = failed.then(|| Instant::now() + AGAIN_AFTER);
            if denied.is_none() {
                self.entrance.entered.note(&desired, &key.vouched);
            }
            self.signal_entering(&desired, &opinions);
            let known = Known { key, opinions, denied, again_at };
            let before = self.entrance.known.insert(desired.key.clone(), known);
            self.tell_review(&desired, before);
        }
        let due = self.entrance.put_at.is_none_or(|at| at.elapsed() > PUT_IN_FORCE_EVERY);
        if self.entrance.is_quiet() || due {
            self.entrance.put_at = Some(Instant::now());
            if let Err(error) = self.entrance.entered.keep() {
                tracing::error!("who vouches for what was let in cannot be kept: {error:#}");
            }
            self.put_together();
        }
    }

    /// Asks again where a policy failed.
    pub(super) fn review_again(&mut self) {
        let now = Instant::now();
        let is_due = |known: &Known| known.again_at.is_some_and(|at| at <= now);
        if !self.entrance.known.values().any(is_due) {
            return;
        }
        let mut due: Vec<(Arc<Desired>, EnteringKey)> = Vec::new();
        let sources = self.sources.iter().filter_map(|entry| entry.in_force.as_ref());
        let declared: HashMap<&ObjectKey, &Arc<Desired>> =
            sources.flat_map(|it| it.placed.objects()).map(|it| (&it.key, it)).collect();
        for (key, known) in &mut self.entrance.known {
            if !is_due(known) {
                continue;
            }
            known.again_at = None;
            if let Some(desired) = declared.get(key) {
                due.push(((*desired).clone(), known.key.clone()));
            }
        }
        self.review(due);
    }

    /// What policies found, once: a warning, a denial, and that it ended.
    fn tell_review(&mut self, desired: &Desired, before: Option<Known>) {
        let Some(known) = self.entrance.known.get(&desired.key) else { return };
        let notable = known.opinions.iter().any(Opinion::is_notable);
        let was_denied = before.as_ref().is_some_and(|before| before.denied.is_some());
        let same = |before: &Known| {
            before.opinions == known.opinions && before.key.desired == known.key.desired
        };
        if before.as_ref().is_some_and(same) || !notable && !was_denied {
            return;
        }
        let told: Vec<String> = known
            .opinions
            .iter()
            .filter(|opinion| opinion.is_notable() && !opinion.stops())
            .map(|opinion| format!("{} by {opinion}", opinion.word()))
            .collect();
        let (outcome, message) = match &known.denied {
            Some(denied) => ("denied", denied.reason.clone()),
            None if notable => ("warned", told.join("; ")),
            None => ("allowed", String::new()),
        };
        tracing::warn!("{outcome} {} ({}): {message}", desired.key, desired.origin);
        let line = ReviewLine {
            object: (&desired.key).into(),
            outcome: outcome.into(),
            message,
            source: desired.source.to_string(),
            revision: desired.revision.to_string(),
            origin: desired.origin.to_string(),
            desired_digest: desired.digest.to_string(),
            author: known.key.vouched.author.as_deref().map(Into::into),
            signers: known.key.vouched.signers.iter().map(ToString::to_string).collect(),
            reviews: known.opinions.iter().map(Into::into).collect(),
        };
        if let Err(error) = self.parts.journal.review(line) {
            tracing::error!("{error}");
        }
    }
}
