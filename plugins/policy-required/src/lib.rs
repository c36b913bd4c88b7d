//! What has to be stated: labels and annotations, requests and limits, and who owns a namespace.
//!
//! Takes any object and gives what it lacks, each with the path at which to write it.
//!
//! Start reading at [`review`]; `settings.rs` has what is asked for where nothing is configured.

mod settings;
#[cfg(test)]
mod tests;

use settings::{Named, Settings};
use trimtab_sdk::pods::Template;
use trimtab_sdk::rules::{self, Reasons, any};
use trimtab_sdk::{ObjectId, Path, Policy, Review, ReviewVerdict, Value, pods};

/// The policy.
pub struct Required;

impl Policy for Required {
    fn review(request: &Review<'_>) -> ReviewVerdict {
        let Some(object) = rules::written(request) else { return ReviewVerdict::Allow };
        review(request.id(), object, request.configuration()).into()
    }
}

trimtab_sdk::export_policy!(Required);

/// Reviews one object under a configuration.
pub fn review(id: &ObjectId<'_>, object: &Value<'_>, configuration: &Value<'_>) -> Reasons {
    match Settings::read(configuration) {
        Ok(settings) => judge(id, object, &settings),
        Err(bad) => bad.into(),
    }
}

fn judge(id: &ObjectId<'_>, object: &Value<'_>, settings: &Settings<'_>) -> Reasons {
    let mut reasons = Reasons::default();
    if settings.exempts(id) {
        return reasons;
    }
    let template = pods::template(id, object);
    for (member, control, list) in [
        ("labels", "required-label", &settings.labels),
        ("annotations", "required-annotation", &settings.annotations),
    ] {
        for named in list.iter().filter(|named| named.asks(id)) {
            let own = Path::fields(&["metadata", member, named.name]);
            lacks(named, control, object.at(&["metadata", member]), own, &mut reasons);
            // A pod is its own template.
            if let Some(template) = template.as_ref().filter(|_| named.pods && id.kind != "Pod") {
                let path = template.fields(&["metadata", member, named.name]);
                let held = template.metadata().and_then(|metadata| metadata.get(member));
                lacks(named, control, held, path, &mut reasons);
            }
        }
    }
    let is_namespace = (id.group, id.kind) == ("", "Namespace");
    if let Some(owner) = settings.owner.filter(|_| is_namespace) {
        let held = object.at(&["metadata", "annotations"]).and_then(|all| all.get(owner));
        if held.and_then(Value::as_str).is_none_or(|text| text.trim().is_empty()) {
            let message = format!("a namespace says in the annotation {owner} who owns it");
            let path = Path::fields(&["metadata", "annotations", owner]);
            reasons.add(settings.effect, "namespace-owner", message, path);
        }
    }
    if let Some(template) = &template {
        resources(template, settings, &mut reasons);
    }
    reasons
}

/// Whether a label or annotation is absent or has another value.
fn lacks(
    named: &Named<'_>,
    control: &'static str,
    held: Option<&Value<'_>>,
    path: Path,
    reasons: &mut Reasons,
) {
    let Named { name, values, effect, .. } = named;
    let message = match held.and_then(|held| held.get(name)).and_then(Value::as_str) {
        None => format!("{name} has to be stated"),
        Some(text) if !any(values.iter().copied(), text) => {
            format!("{name} has the value {text:?}, and has to be as one of: {}", values.join(", "))
        }
        Some(_) => return,
    };
    reasons.add(*effect, control, message, path);
}

/// Requests and limits, of each container or of the pod as a whole. A limit is a request too: the API
/// server makes one of it.
fn resources(template: &Template<'_, '_>, settings: &Settings<'_>, reasons: &mut Reasons) {
    let states = |holder: Option<&Value<'_>>, kind: &str, resource: &str| {
        let held = holder.and_then(|holder| holder.at(&["resources", kind, resource]));
        held.and_then(Value::scalar_text).is_some_and(|text| !matches!(text, "" | "null"))
    };
    // A container that is added to a running pod can have none.
    let lists = |list: &str| list == "containers" || (list == "initContainers" && settings.init);
    for container in template.containers().filter(|container| lists(container.list())) {
        let either = |kind: &str, resource: &str| {
            states(Some(container.value()), kind, resource)
                || states(template.spec(), kind, resource)
        };
        for resource in &settings.requests {
            if !either("requests", resource) && !either("limits", resource) {
                let path = container.fields(&["resources", "requests", resource]);
                let message = format!(
                    "a container requests {resource}: without, it is placed as if it needed none"
                );
                reasons.add(settings.effect, "resource-requests", message, path);
            }
        }
        for resource in &settings.limits {
            if !either("limits", resource) {
                let path = container.fields(&["resources", "limits", resource]);
                let message = format!(
                    "a container has a limit of {resource}: without, it can take all of its node's"
                );
                reasons.add(settings.effect, "resource-limits", message, path);
            }
        }
    }
}
