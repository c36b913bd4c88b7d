//! The review before each write: the only way from what the gate lets through to a change.
//!
//! The gate makes [`Draft`]s, and gives a [`crate::gate::Change`] for a [`Reviewed`] alone, which
//! nothing but this file makes: of a draft that every policy in scope was asked about and none that
//! enforces stopped.

use crate::decision::{ActionKind, Difference};
use crate::gate::{Draft, Effect};
use crate::policy::{self, Denied, Opinion, Point, Policies, Proposed, Request};
use crate::redact::Redactor;
use crate::snapshot::Snapshot;

/// A draft that no policy stopped.
#[derive(Debug)]
pub struct Reviewed {
    draft: Draft,
}

impl Reviewed {
    /// For the gate.
    pub(crate) fn into_draft(self) -> Draft {
        self.draft
    }
}

/// Asks about all of these drafts of one object, and lets all pass or none. `differences`: what an
/// apply of desired is to change. What policies said is added to `opinions`, each once.
///
/// # Errors
/// It is stopped, and why.
pub async fn before_writes(
    policies: &Policies,
    redactor: &Redactor,
    snapshot: &Snapshot,
    differences: &[Difference],
    drafts: Vec<Draft>,
    opinions: &mut Vec<Opinion>,
) -> Result<Vec<Reviewed>, Denied> {
    let mut reviewed = Vec::with_capacity(drafts.len());
    for draft in drafts {
        let request = (!policies.reviewers.is_empty()).then(|| Request {
            point: Point::BeforeWrite,
            live: snapshot.live_object().map(|live| live.json.clone()),
            change: Some(proposed(&draft, differences)),
            ..Request::enters(&snapshot.desired, policies.vouched.clone(), snapshot.now_ms)
        });
        reviewed.push(one(policies, redactor, request, draft, opinions).await);
    }
    // All are asked before the first one stops: whoever mends an object sees all that is wrong.
    reviewed.into_iter().collect()
}

/// Asks about the deletion of an object that its source declares no more. `request` says what is
/// known of it.
///
/// # Errors
/// It is stopped, and why.
pub async fn before_prune(
    policies: &Policies,
    redactor: &Redactor,
    request: Request,
    draft: Draft,
    opinions: &mut Vec<Opinion>,
) -> Result<Reviewed, Denied> {
    let change = Some(proposed(&draft, &[]));
    let request = Request { point: Point::BeforeWrite, desired: None, change, ..request };
    one(policies, redactor, Some(request), draft, opinions).await
}

/// A deletion that a person asks for by a command that has no plugins, knowing that no policy is
/// asked.
pub fn by_hand(draft: Draft) -> Reviewed {
    Reviewed { draft }
}

async fn one(
    policies: &Policies,
    redactor: &Redactor,
    request: Option<Request>,
    draft: Draft,
    opinions: &mut Vec<Opinion>,
) -> Result<Reviewed, Denied> {
    let Some(request) = request else { return Ok(Reviewed { draft }) };
    let said = policy::ask(&policies.reviewers, &request, redactor).await;
    let denied = policy::denied(&said);
    for opinion in said {
        if !opinions.contains(&opinion) {
            opinions.push(opinion);
        }
    }
    denied.map_or(Ok(Reviewed { draft }), Err)
}

/// The draft as a policy sees it.
fn proposed(draft: &Draft, differences: &[Difference]) -> Proposed {
    let planned = draft.planned();
    let whole = || vec![String::new()];
    let paths = match planned.action {
        _ if planned.creates => whole(),
        // Its paths are those that are left out.
        ActionKind::ApplyDesired if !differences.is_empty() => differences
            .iter()
            .map(|difference| difference.path.clone())
            .filter(|path| !planned.paths.contains(path))
            .collect(),
        ActionKind::Adopt if planned.paths.is_empty() && !differences.is_empty() => {
            differences.iter().map(|difference| difference.path.clone()).collect()
        }
        ActionKind::PatchStatus => vec!["/status".to_owned()],
        ActionKind::RemoveFields | ActionKind::Adopt if !planned.paths.is_empty() => {
            planned.paths.clone()
        }
        _ => whole(),
    };
    let content = match (draft.effect(), planned.action) {
        (Effect::Apply { body, .. }, ActionKind::ApplyContent)
        | (Effect::ApplyStatus { body }, _) => Some(body.clone()),
        _ => None,
    };
    Proposed { action: planned.action, paths, creates: planned.creates, content }
}
