//! What is protected is changed by those who may, and what hands out power by two persons.
//!
//! Takes what is under review and who vouches for it, by signatures that the host verified, and says
//! whether that is enough. Never looks at an object's content: whoever could write it could write that
//! too.
//!
//! Start reading at [`review`]; `settings.rs` has what is protected where nothing is configured.

mod settings;
#[cfg(test)]
mod tests;

use settings::{On, Settings};
use trimtab_sdk::rules::{Reasons, any};
use trimtab_sdk::{ActionKind, ObjectId, Path, Policy, Review, ReviewVerdict, Value};

/// The policy.
pub struct Protected;

impl Policy for Protected {
    fn review(request: &Review<'_>) -> ReviewVerdict {
        let action = request.change().map(|change| change.action);
        review(request.id(), action, &request.provenance().signers, request.configuration()).into()
    }
}

trimtab_sdk::export_policy!(Protected);

/// Reviews one object under a configuration: `action` is what is about to be done, `None` where desired
/// state enters; `signers` are the names of those who vouch for it.
pub fn review(
    id: &ObjectId<'_>,
    action: Option<ActionKind>,
    signers: &[&str],
    configuration: &Value<'_>,
) -> Reasons {
    match Settings::read(configuration) {
        Ok(settings) => judge(id, action, signers, &settings),
        Err(bad) => bad.into(),
    }
}

fn judge(
    id: &ObjectId<'_>,
    action: Option<ActionKind>,
    signers: &[&str],
    settings: &Settings<'_>,
) -> Reasons {
    let mut reasons = Reasons::default();
    let deletes = matches!(action, Some(ActionKind::Delete | ActionKind::Recreate));
    let done = |on: &On| match on {
        On::Change => action != Some(ActionKind::Delete),
        On::Delete => deletes,
    };
    let what = if deletes { "deleted" } else { "changed" };
    let vouching = match signers {
        [] => "nobody vouches for this by a signature".to_owned(),
        some => format!("{} vouches for this", some.join(", ")),
    };
    for rule in settings.protected.iter().filter(|rule| rule.scope.holds(id)) {
        let may = || signers.iter().any(|signer| any(rule.signers.iter().copied(), signer));
        if rule.on.iter().any(done) && !may() {
            let allowed = match rule.signers.as_slice() {
                [] => "nobody may (the rule names no signers)".to_owned(),
                some => format!("only {} may", some.join(", ")),
            };
            let message =
                format!("{} is protected from being {what}: {allowed}, and {vouching}", shown(id));
            reasons.add(rule.effect, "protected", message, Path::root());
        }
    }
    let rule = &settings.two_persons;
    if rule.scope.holds(id) && rule.on.iter().any(done) {
        let mut persons: Vec<&str> = Vec::new();
        for signer in signers.iter().filter(|signer| any(rule.signers.iter().copied(), signer)) {
            if !persons.contains(signer) {
                persons.push(signer);
            }
        }
        if persons.len() < 2 {
            let message = format!(
                "{} hands out power, so that two persons have to vouch for it, its author by a signed \
                 commit and another by the signed merge; {vouching}, which counts as {}",
                shown(id),
                persons.len()
            );
            reasons.add(rule.effect, "two-persons", message, Path::root());
        }
    }
    reasons
}

fn shown(id: &ObjectId<'_>) -> String {
    let ObjectId { kind, namespace, name, .. } = id;
    if namespace.is_empty() {
        format!("{kind}/{name}")
    } else {
        format!("{kind}/{name} in {namespace}")
    }
}
