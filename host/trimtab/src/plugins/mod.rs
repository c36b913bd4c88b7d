//! The plugin directory and the grants, as one value that the engine reads.
//!
//! A [`Registry`] is a snapshot: which plugin serves which kind, with what power, and why a file
//! is refused. It is replaced whole; passes in flight end on the one that they began with.

mod directory;
mod held;
mod policies;
mod status;

pub(crate) use directory::{Options, watch};
pub(crate) use held::{Held, read as read_held, write as write_held};
pub(crate) use status::{
    FaultCounts, FileStatus, Status, read as read_status, write as write_status,
};

use crate::grants;
use crate::signing::Signer;
use std::collections::BTreeMap;
use std::sync::Arc;
use trimtab_core::grant::{Grant, Power};
use trimtab_core::identity::{Digest, GroupKind};
use trimtab_core::plugin::KindPattern;
use trimtab_core::policy::{self, Reviewer};
use trimtab_wasm::Plugin;

/// One plugin in service.
#[derive(Clone)]
pub(crate) struct Served {
    /// Name of the file in the plugin directory.
    pub(crate) file: String,
    /// The code, ready to run.
    pub(crate) plugin: Arc<Plugin>,
    /// What it may do.
    pub(crate) power: Arc<Power>,
    /// Who vouches for the file, where that is required.
    pub(crate) signer: Option<String>,
    /// Changes whenever the code or the grant does.
    pub(crate) stamp: Digest,
}

/// Which plugin serves which kind.
#[derive(Clone)]
pub(crate) struct Registry {
    served: Vec<Served>,
    /// The policies, in the order of their names.
    pub(crate) reviewers: Arc<[Arc<dyn Reviewer>]>,
    /// Changes whenever they do.
    pub(crate) policies: Digest,
    /// File name to why it is not, or not in its newest form, in service.
    pub(crate) refused: BTreeMap<String, String>,
    /// Why the newest grants are not in use; the last good ones are.
    pub(crate) grants_problem: Option<String>,
}

impl Registry {
    /// Puts plugins in service in the order of their files' names; a file whose plugin is in
    /// conflict with an earlier one is refused, and both are named.
    pub(crate) fn new(
        files: &BTreeMap<String, Arc<Plugin>>,
        signers: &BTreeMap<String, Signer>,
        mut refused: BTreeMap<String, String>,
        grants: &[Grant],
        grants_problem: Option<String>,
    ) -> Self {
        let mut served: Vec<Served> = Vec::new();
        for (file, plugin) in files {
            let conflict = served.iter().find_map(|first| {
                conflict(&first.plugin, plugin).map(|what| (first.file.clone(), what))
            });
            match conflict {
                Some((first, what)) => {
                    refused.insert(
                        file.clone(),
                        format!("{what} as {first} does, which came first: remove one of the two"),
                    );
                }
                None => {
                    let signer = signers.get(file).map(|signer| signer.name.clone());
                    served.push(Served { signer, ..serve(file, plugin, grants) });
                }
            }
        }
        let reviewers = policies::of(&served, grants);
        // What an object was answered under other policies is not answered under these.
        let policies = policy::stamp(&reviewers);
        for served in &mut served {
            served.stamp = Digest::of(format!("{} {policies}", served.stamp).as_bytes());
        }
        Self { served, reviewers, policies, refused, grants_problem }
    }

    /// The plugin that claims this kind most closely, of those that reconcile.
    pub(crate) fn for_kind(&self, kind: &GroupKind) -> Option<&Served> {
        let specificity =
            |served: &&Served| served.power.manifest.claim_for(kind).map(KindPattern::specificity);
        self.served
            .iter()
            .filter(|served| served.plugin.inspection().reconciles())
            .filter(|served| specificity(served).is_some())
            .max_by_key(specificity)
    }

    /// Every plugin in service.
    pub(crate) fn served(&self) -> &[Served] {
        &self.served
    }

    /// What people are told about every file.
    pub(crate) fn status(&self) -> Status {
        Status::of(self)
    }
}

fn serve(file: &str, plugin: &Arc<Plugin>, grants: &[Grant]) -> Served {
    let identity = plugin.identity().clone();
    let grant = grants
        .iter()
        .find(|grant| grant.plugin == identity.name && grant.digest == identity.digest)
        .cloned();
    let limits = grant.as_ref().map(|grant| grants::limits(&grant.terms.limits));
    let plugin = limits.map_or_else(|| plugin.clone(), |it| Arc::new(plugin.with_limits(it)));
    let power = Power { plugin: identity, manifest: plugin.manifest().clone(), grant };
    Served {
        file: file.to_owned(),
        plugin,
        signer: None,
        stamp: Digest::of(format!("{:?} {:?}", power.plugin.digest, power.grant).as_bytes()),
        power: Arc::new(power),
    }
}

/// What two plugins cannot both have.
fn conflict(first: &Plugin, second: &Plugin) -> Option<String> {
    let both_reconcile = first.inspection().reconciles() && second.inspection().reconciles();
    let (first, second) = (first.manifest(), second.manifest());
    if first.name == second.name {
        return Some(format!("it has the same plugin name {:?}", second.name));
    }
    if !both_reconcile {
        // Several policies may review one kind.
        return None;
    }
    let both = second.claims.iter().find(|claim| first.claims.contains(claim))?;
    Some(format!("plugin {} claims {both}", second.name))
}

/// A grant for this plugin's name but another build's digest: the usual reason why a replaced
/// plugin observes.
pub(crate) fn stale_grant<'g>(power: &Power, grants: &'g [Grant]) -> Option<&'g Grant> {
    let other =
        |grant: &&Grant| grant.plugin == power.plugin.name && grant.digest != power.plugin.digest;
    power.grant.is_none().then(|| grants.iter().find(other)).flatten()
}
