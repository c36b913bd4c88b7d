//! An author's [`Policy`] behind the contract's export.

use super::policy_bindings::exports::trimtab::plugin::policy as wit;
use super::report_panics;
use crate::review::Parts;
use crate::{
    ActionKind, ObjectId, Planned, Point, Policy, Provenance, Reason, Review, ReviewVerdict,
};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;

/// The contract's export for an author's type.
pub struct ExportedPolicy<T>(PhantomData<T>);

impl<T: Policy> wit::Guest for ExportedPolicy<T> {
    fn review(request: wit::Request) -> wit::ReviewVerdict {
        report_panics();
        // The instance ends with the call: taking trees apart would be work for nothing.
        let request = ManuallyDrop::new(request);
        verdict(match Review::read(parts_of(&request)) {
            Ok(review) => T::review(&ManuallyDrop::new(review)),
            Err(reason) => ReviewVerdict::Deny(vec![reason]),
        })
    }
}

fn parts_of(request: &wit::Request) -> Parts<'_> {
    let (id, provenance) = (&request.id, &request.provenance);
    Parts {
        point: match request.point {
            wit::Point::Enters => Point::Enters,
            wit::Point::BeforeWrite => Point::BeforeWrite,
        },
        id: ObjectId {
            group: &id.group,
            version: &id.version,
            kind: &id.kind,
            namespace: &id.namespace,
            name: &id.name,
        },
        desired: request.desired.as_deref(),
        live: request.live.as_deref(),
        change: request.change.as_ref().map(|planned| {
            let change = Planned {
                action: action(planned.action),
                paths: planned.paths.iter().map(String::as_str).collect(),
                creates: planned.creates,
            };
            (change, planned.content.as_deref())
        }),
        provenance: Provenance {
            source: &provenance.source,
            revision: provenance.revision.as_deref(),
            file: provenance.file.as_deref(),
            line: provenance.line,
            author: provenance.author.as_deref(),
            signers: provenance.signers.iter().map(String::as_str).collect(),
        },
        configuration: &request.configuration,
        now_ms: request.now_ms,
    }
}

fn action(from: wit::ActionKind) -> ActionKind {
    match from {
        wit::ActionKind::Apply => ActionKind::Apply,
        wit::ActionKind::ApplyContent => ActionKind::ApplyContent,
        wit::ActionKind::RemoveFields => ActionKind::RemoveFields,
        wit::ActionKind::Recreate => ActionKind::Recreate,
        wit::ActionKind::Delete => ActionKind::Delete,
        wit::ActionKind::PatchStatus => ActionKind::PatchStatus,
        wit::ActionKind::Adopt => ActionKind::Adopt,
    }
}

fn verdict(from: ReviewVerdict) -> wit::ReviewVerdict {
    match from {
        ReviewVerdict::Allow => wit::ReviewVerdict::Allow,
        ReviewVerdict::Warn(reasons) => wit::ReviewVerdict::Warn(all(reasons)),
        ReviewVerdict::Deny(reasons) => wit::ReviewVerdict::Deny(all(reasons)),
    }
}

fn all(reasons: Vec<Reason>) -> Vec<wit::Reason> {
    let convert = |Reason { control, message, path }| wit::Reason {
        control,
        message,
        path: path.as_ref().map(ToString::to_string),
    };
    reasons.into_iter().map(convert).collect()
}
