//! Which policies are in force: those of the plugin directory, under their grants, and those that a
//! grant has enforced and that are not there.

use super::Served;
use std::sync::Arc;
use trimtab_core::grant::{Grant, Mode};
use trimtab_core::plugin::KindPattern;
use trimtab_core::policy::{Answer, Policy, Request, Reviewer};
use trimtab_core::ports::PluginFault;
use trimtab_wasm::Reviewing;

/// All of them, in the order of their names.
pub(super) fn of(served: &[Served], grants: &[Grant]) -> Arc<[Arc<dyn Reviewer>]> {
    let reviews = |served: &&Served| served.plugin.inspection().reviews();
    let there = served.iter().filter(reviews).map(|served| {
        let power = &served.power;
        let terms = power.grant.as_ref().and_then(|grant| grant.terms.policy.clone());
        let policy = Policy {
            plugin: power.plugin.clone(),
            claims: power.manifest.claims.clone(),
            granted: terms.is_some(),
            terms: terms.unwrap_or_default(),
        };
        Arc::new(Reviewing::new((*served.plugin).clone(), policy)) as Arc<dyn Reviewer>
    });
    let missing = missing(served, grants).map(|it| Arc::new(it) as Arc<dyn Reviewer>);
    let mut all: Vec<Arc<dyn Reviewer>> = there.chain(missing).collect();
    all.sort_by(|a, b| a.policy().plugin.name.cmp(&b.policy().plugin.name));
    all.into()
}

/// Policies that a grant has enforced, and no file of whose is in service under any such grant: to
/// take a file away, or to put an unknown one in its place, is no way around it.
fn missing<'a>(served: &'a [Served], grants: &'a [Grant]) -> impl Iterator<Item = Missing> + 'a {
    let is_there = |grant: &Grant| {
        served.iter().any(|served| {
            let granted = served.power.grant.as_ref().is_some_and(|it| it.terms.policy.is_some());
            served.power.plugin.name == grant.plugin
                && granted
                && served.plugin.inspection().reviews()
        })
    };
    grants.iter().filter(move |grant| !is_there(grant)).filter_map(|grant| {
        let terms = grant.terms.policy.clone().filter(|terms| terms.mode == Mode::Enforce)?;
        let plugin = trimtab_core::plugin::PluginIdentity {
            name: grant.plugin.clone(),
            version: "(not in service)".into(),
            digest: grant.digest,
        };
        let policy = Policy { plugin, claims: vec![KindPattern::Any], terms, granted: true };
        Some(Missing { policy, grant: grant.origin.clone() })
    })
}

/// A policy that cannot be asked.
#[derive(Debug)]
struct Missing {
    policy: Policy,
    grant: String,
}

impl Reviewer for Missing {
    fn policy(&self) -> &Policy {
        &self.policy
    }

    fn review<'a>(&'a self, _: &'a Request) -> Answer<'a> {
        Box::pin(async {
            Err(PluginFault::Unavailable(format!(
                "the grant in {} has it enforced, and no file of this digest is in service: put it into the plugin directory, or take the grant away",
                self.grant
            )))
        })
    }
}
