//! The core's port `Reviewer`, served by a policy in its sandbox.
//!
//! Each review has a fresh instance with the plugin's limits, on a blocking thread and in a turn, as
//! a pass has. What it read cannot be had here: a policy's lookups are not answered.

use crate::bindings::policy::exports::trimtab::plugin::policy as wit;
use crate::bindings::trimtab::plugin::types;
use crate::call::Call;
use crate::convert::Output as _;
use crate::wasi::Wasi;
use crate::{Lookups, NoLookups, Plugin, fault, judge, purity};
use std::sync::Arc;
use trimtab_core::decision::ActionKind;
use trimtab_core::policy::{Answer, Point, Policy, Request, Reviewer, Verdict};
use trimtab_core::ports::PluginFault;

/// A policy under its terms. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Reviewing {
    plugin: Plugin,
    policy: Arc<Policy>,
}

impl Reviewing {
    /// A plugin that exports `policy`, under these terms.
    pub fn new(plugin: Plugin, policy: Policy) -> Self {
        Self { plugin, policy: Arc::new(policy) }
    }
}

impl Reviewer for Reviewing {
    fn policy(&self) -> &Policy {
        &self.policy
    }

    fn review<'a>(&'a self, request: &'a Request) -> Answer<'a> {
        Box::pin(async move {
            let configuration = self.policy.terms.configuration.clone();
            let (plugin, request) = (self.plugin.clone(), request.clone());
            judge::on_a_blocking_thread(&self.plugin, move || {
                plugin.review(&request, &configuration)
            })
            .await
        })
    }
}

impl Plugin {
    /// What the policy says of this, in a fresh instance, on this thread; some calls are made twice,
    /// and have to agree.
    ///
    /// # Errors
    /// The plugin's fault, or [`PluginFault::Unavailable`] where the pool is exhausted.
    pub fn review(&self, request: &Request, configuration: &[u8]) -> Result<Verdict, PluginFault> {
        let lookups: Arc<dyn Lookups> = Arc::new(NoLookups);
        purity::judged(self.samples_review(), &lookups, |lookups, again| {
            self.review_once(request, configuration, lookups, again)
        })
    }

    fn review_once(
        &self,
        request: &Request,
        configuration: &[u8],
        lookups: &Arc<dyn Lookups>,
        again: bool,
    ) -> Result<Verdict, PluginFault> {
        let pre = self.policy_pre().ok_or_else(|| {
            PluginFault::Invalid("it exports no policy, and was asked as one".into())
        })?;
        let limits = self.limits();
        let mut call = self.call(&request.key, lookups.clone());
        if self.has_wasi() {
            call.wasi = Wasi::of_review(request);
        }
        if again {
            call.silence();
        }
        let mut store = self.store(call);
        let bindings = pre
            .instantiate(&mut store)
            .map_err(|error| fault::classify(&error, store.data(), &limits))?;
        Call::begin(&mut store);
        let paths = request
            .change
            .as_ref()
            .map(|change| change.paths.iter().map(String::as_str).collect::<Vec<_>>());
        let signers: Vec<&str> = request.vouched.signers.iter().map(|name| &**name).collect();
        let params = params(request, configuration, paths.as_deref(), &signers);
        let answer = bindings.trimtab_plugin_policy().call_review(&mut store, params);
        let call = store.data_mut();
        call.finish_log();
        match answer {
            Ok(verdict) => verdict.into_core(&limits),
            Err(error) => Err(fault::classify(&error, call, &limits)),
        }
    }
}

/// The request as the contract has it; borrows everything.
fn params<'a>(
    request: &'a Request,
    configuration: &'a [u8],
    paths: Option<&'a [&'a str]>,
    signers: &'a [&'a str],
) -> wit::Request<'a> {
    let Request {
        point, key, gvk, desired, live, change, source, revision, origin, vouched, ..
    } = request;
    wit::Request {
        point: match point {
            Point::Enters => wit::Point::Enters,
            Point::BeforeWrite => wit::Point::BeforeWrite,
        },
        id: types::ObjectId {
            group: &gvk.group,
            version: &gvk.version,
            kind: &gvk.kind,
            namespace: key.namespace_str(),
            name: &key.name,
        },
        desired: desired.as_deref(),
        live: live.as_deref(),
        change: change.as_ref().map(|change| wit::Planned {
            action: action(change.action),
            paths: paths.unwrap_or_default(),
            creates: change.creates,
            content: change.content.as_deref(),
        }),
        provenance: wit::Provenance {
            source,
            revision: Some(revision).filter(|id| !id.is_empty()).map(|id| &**id),
            file: origin.as_ref().map(|origin| &*origin.file),
            line: origin.as_ref().map(|origin| origin.line),
            author: vouched.author.as_deref(),
            signers,
        },
        configuration,
        now_ms: request.now_ms,
    }
}

fn action(kind: ActionKind) -> wit::ActionKind {
    match kind {
        ActionKind::ApplyDesired => wit::ActionKind::Apply,
        ActionKind::ApplyContent => wit::ActionKind::ApplyContent,
        ActionKind::RemoveFields => wit::ActionKind::RemoveFields,
        ActionKind::Recreate => wit::ActionKind::Recreate,
        ActionKind::Delete => wit::ActionKind::Delete,
        ActionKind::PatchStatus => wit::ActionKind::PatchStatus,
        ActionKind::Adopt => wit::ActionKind::Adopt,
    }
}
