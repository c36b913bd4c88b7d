//! The Pod Security Standards: no pod beyond the level of its namespace.
//!
//! Takes an object that holds a pod template, and gives the controls that it breaks, each with its
//! path. The level is `privileged`, `baseline` (the default) or `restricted`, by namespace. What
//! looks like pods in a kind that it does not know is told, for nobody judged it.
//!
//! Start reading at [`review`]; `controls.rs` has the controls, in the order of the official page.

mod controls;
mod settings;
#[cfg(test)]
mod tests;

pub use controls::{CONTROLS, Control, Level, NEWEST, broken};

use settings::Settings;
use trimtab_sdk::rules::{self, Reasons};
use trimtab_sdk::{ObjectId, Policy, Review, ReviewVerdict, Value, pods};

/// The policy.
pub struct PodSecurity;

impl Policy for PodSecurity {
    fn review(request: &Review<'_>) -> ReviewVerdict {
        let Some(object) = rules::written(request) else { return ReviewVerdict::Allow };
        review(request.id(), object, request.configuration()).into()
    }
}

trimtab_sdk::export_policy!(PodSecurity);

/// Reviews one object under a configuration.
pub fn review(id: &ObjectId<'_>, object: &Value<'_>, configuration: &Value<'_>) -> Reasons {
    match Settings::read(configuration) {
        Ok(settings) => judge(id, object, &settings),
        Err(bad) => bad.into(),
    }
}

fn judge(id: &ObjectId<'_>, object: &Value<'_>, settings: &Settings<'_>) -> Reasons {
    let mut reasons = Reasons::default();
    let level = settings.level(id);
    if level == Level::Privileged {
        return reasons;
    }
    if let Some(template) = pods::template(id, object) {
        for found in broken(&template, level, settings.minor()) {
            if !settings.exempts(id, found.control.name) {
                let message = format!("{level}: {}", found.message);
                reasons.add(settings.effect(), found.control.name, message, found.path);
            }
        }
    } else if let Some(path) = pods::unseen(id, object) {
        reasons.add(
            settings.unseen(),
            "pod-template-not-seen",
            format!(
                "{} is no kind whose pods are known here, so that nobody judged these containers; \
                 their pods are judged where the namespace enforces a level itself",
                id.kind
            ),
            path,
        );
    }
    reasons
}
