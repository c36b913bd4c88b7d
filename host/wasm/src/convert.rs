//! Between the contract's types and the core's, both ways.
//!
//! Towards the guest nothing is copied here: parameters borrow the host's bytes, and lowering
//! copies them once into the guest. From the guest everything is checked: what comes out of here
//! parses, is bounded, and can be shown. Lifting has copied each value once already, into the
//! very `Vec` that the core keeps, so that reading it in place would save nothing.

use crate::Limits;
use crate::bindings::exports::trimtab::plugin::reconciler as wit;
use crate::bindings::policy::exports::trimtab::plugin::policy;
use crate::bindings::trimtab::plugin::types;
use crate::limits::{
    MAX_DIFFERENCES, MAX_ITEMS, MAX_NAME_BYTES, MAX_PATH_BYTES, MAX_SENTENCE_BYTES,
};
use crate::text::printable;
use trimtab_core::decision::{
    Action, Comparison, Condition, ConditionStatus, Decision, Difference, DifferenceKind, Finding,
    Severity, Verdict,
};
use trimtab_core::policy::{Reason, Verdict as Review};
use trimtab_core::ports::PluginFault;
use trimtab_core::snapshot::Snapshot;
use trimtab_json::Path;

/// What a call is given.
pub(crate) struct Params<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) field_manager: &'a str,
}

impl Params<'_> {
    /// The snapshot as the contract has it; borrows everything.
    pub(crate) fn snapshot(&self) -> types::Snapshot<'_> {
        let Snapshot { key, gvk, desired, live, facts, now_ms, retries, .. } = self.snapshot;
        types::Snapshot {
            id: types::ObjectId {
                group: &gvk.group,
                version: &gvk.version,
                kind: &gvk.kind,
                namespace: key.namespace_str(),
                name: &key.name,
            },
            desired: Some(&desired.json),
            live: live.object().map(|object| &*object.json),
            facts,
            now_ms: *now_ms,
            field_manager: self.field_manager,
            retries: *retries,
        }
    }
}

/// The differences as the contract has them; borrows everything.
pub(crate) fn differences(differences: &[Difference]) -> Vec<types::DifferenceParam<'_>> {
    differences
        .iter()
        .map(|difference| types::DifferenceParam {
            path: &difference.path,
            kind: match difference.kind {
                DifferenceKind::Changed => types::DifferenceKind::Changed,
                DifferenceKind::Missing => types::DifferenceKind::Missing,
                DifferenceKind::Stray => types::DifferenceKind::Stray,
                DifferenceKind::Released => types::DifferenceKind::Released,
                DifferenceKind::Pruned => types::DifferenceKind::Pruned,
            },
            desired: difference.desired.as_deref(),
            live: difference.live.as_deref(),
            immutable: difference.immutable.as_deref(),
        })
        .collect()
}

/// An answer of the guest that becomes a value of the core's.
pub(crate) trait Output {
    /// What the core calls it.
    type Core;

    /// Checks and converts.
    fn into_core(self, limits: &Limits) -> Result<Self::Core, PluginFault>;
}

impl Output for wit::Comparison {
    type Core = Comparison;

    fn into_core(self, limits: &Limits) -> Result<Comparison, PluginFault> {
        let mut check = Check { left: limits.output_bytes, limit: limits.output_bytes };
        match self {
            Self::InSync => Ok(Comparison::InSync),
            Self::Invalid(how) => Ok(Comparison::Invalid(check.sentence("reason", how)?)),
            Self::Unknown(why) => Ok(Comparison::Unknown(check.sentence("reason", why)?)),
            Self::Different(differences) if differences.is_empty() => {
                Err(PluginFault::Invalid("compare answers `different` without a difference".into()))
            }
            Self::Different(differences) => {
                check.count("differences", differences.len(), MAX_DIFFERENCES)?;
                differences
                    .into_iter()
                    .map(|difference| check.difference(difference))
                    .collect::<Result<_, _>>()
                    .map(Comparison::Different)
            }
        }
    }
}

impl Output for wit::Verdict {
    type Core = Verdict;

    fn into_core(self, limits: &Limits) -> Result<Verdict, PluginFault> {
        let mut check = Check { left: limits.output_bytes, limit: limits.output_bytes };
        match self {
            Self::Unknown(why) => Ok(Verdict::Unknown(check.sentence("reason", why)?)),
            Self::Defer(types::Deferral { reason, after_ms }) => {
                Ok(Verdict::Defer { reason: check.sentence("reason", reason)?, after_ms })
            }
            Self::Decided(decision) => {
                let types::Decision { actions, conditions, findings, look_again_after_ms } =
                    decision;
                check.count("actions", actions.len(), MAX_ITEMS)?;
                check.count("conditions", conditions.len(), MAX_ITEMS)?;
                check.count("findings", findings.len(), MAX_ITEMS)?;
                Ok(Verdict::Decided(Decision {
                    actions: each(actions, |action| check.action(action))?,
                    conditions: each(conditions, |condition| check.condition(condition))?,
                    findings: each(findings, |finding| check.finding(finding))?,
                    look_again_after_ms,
                }))
            }
        }
    }
}

impl Output for policy::ReviewVerdict {
    type Core = Review;

    fn into_core(self, limits: &Limits) -> Result<Review, PluginFault> {
        let mut check = Check { left: limits.output_bytes, limit: limits.output_bytes };
        match self {
            Self::Allow => Ok(Review::Allow),
            Self::Warn(reasons) => check.reasons("warn", reasons).map(Review::Warn),
            Self::Deny(reasons) => check.reasons("deny", reasons).map(Review::Deny),
        }
    }
}

fn each<T, U>(
    items: Vec<T>,
    convert: impl FnMut(T) -> Result<U, PluginFault>,
) -> Result<Vec<U>, PluginFault> {
    items.into_iter().map(convert).collect()
}

/// Checks an answer part by part, counting its bytes.
struct Check {
    left: usize,
    limit: usize,
}

impl Check {
    fn spend(&mut self, bytes: usize) -> Result<(), PluginFault> {
        self.left = self.left.checked_sub(bytes).ok_or_else(|| {
            PluginFault::Limit(format!("its answer has more than {} bytes", self.limit))
        })?;
        Ok(())
    }

    fn count(&mut self, what: &str, count: usize, max: usize) -> Result<(), PluginFault> {
        if count > max {
            return Err(PluginFault::Limit(format!(
                "its answer has {count} {what}, and {max} are allowed"
            )));
        }
        Ok(())
    }

    /// A sentence for people: bounded and escaped, never refused for its content.
    fn sentence(&mut self, what: &str, text: String) -> Result<String, PluginFault> {
        self.spend(text.len())?;
        if text.len() > MAX_SENTENCE_BYTES {
            return Err(PluginFault::Limit(format!(
                "its answer has a {what} of {} bytes, and {MAX_SENTENCE_BYTES} are allowed",
                text.len()
            )));
        }
        Ok(printable(&text, MAX_SENTENCE_BYTES))
    }

    /// A name that scripts look for: bounded, not empty, of letters, digits and `-._/`.
    fn name(&mut self, what: &str, text: String) -> Result<String, PluginFault> {
        self.spend(text.len())?;
        let word = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'.' | b'_' | b'/');
        if text.is_empty() || text.len() > MAX_NAME_BYTES || !text.bytes().all(word) {
            return Err(PluginFault::Invalid(format!(
                "its answer has the {what} {:?}: write letters, digits and -._/ only, at most {MAX_NAME_BYTES}",
                printable(&text, MAX_NAME_BYTES)
            )));
        }
        Ok(text)
    }

    /// A path in its one spelling.
    fn path(&mut self, text: &str) -> Result<String, PluginFault> {
        self.spend(text.len())?;
        if text.len() > MAX_PATH_BYTES {
            return Err(PluginFault::Limit(format!(
                "its answer has a path of {} bytes, and {MAX_PATH_BYTES} are allowed",
                text.len()
            )));
        }
        match Path::parse(text) {
            Ok(path) => Ok(path.to_string()),
            Err(error) => Err(PluginFault::Invalid(format!(
                "its answer has the path {:?}: {error}",
                printable(text, MAX_NAME_BYTES)
            ))),
        }
    }

    fn paths(&mut self, texts: &[String]) -> Result<Vec<String>, PluginFault> {
        self.count("paths in one action", texts.len(), MAX_DIFFERENCES)?;
        texts.iter().map(|text| self.path(text)).collect()
    }

    /// One JSON value, without duplicate keys.
    fn json(&mut self, what: &str, bytes: Vec<u8>) -> Result<Vec<u8>, PluginFault> {
        self.spend(bytes.len())?;
        match trimtab_json::parse(&bytes) {
            Ok(_) => Ok(bytes),
            Err(error) => Err(PluginFault::Invalid(format!(
                "its answer has a {what} that is not one JSON value: {}",
                printable(&error.to_string(), MAX_NAME_BYTES)
            ))),
        }
    }

    fn difference(&mut self, from: types::DifferenceResult) -> Result<Difference, PluginFault> {
        Ok(Difference {
            path: self.path(&from.path)?,
            kind: match from.kind {
                types::DifferenceKind::Changed => DifferenceKind::Changed,
                types::DifferenceKind::Missing => DifferenceKind::Missing,
                types::DifferenceKind::Stray => DifferenceKind::Stray,
                types::DifferenceKind::Released => DifferenceKind::Released,
                types::DifferenceKind::Pruned => DifferenceKind::Pruned,
            },
            desired: from.desired.map(|value| self.json("desired value", value)).transpose()?,
            live: from.live.map(|value| self.json("live value", value)).transpose()?,
            immutable: from.immutable.map(|path| self.path(&path)).transpose()?,
            managers: Vec::new(),
        })
    }

    fn action(&mut self, from: types::Action) -> Result<Action, PluginFault> {
        Ok(match from {
            types::Action::ApplyDesired(options) => {
                Action::ApplyDesired { without: self.paths(&options.without)? }
            }
            types::Action::ApplyContent(json) => Action::ApplyContent(self.json("content", json)?),
            types::Action::RemoveFields(paths) => Action::RemoveFields(self.paths(&paths)?),
            types::Action::Recreate => Action::Recreate,
            types::Action::Delete => Action::Delete,
            types::Action::PatchStatus(json) => Action::PatchStatus(self.json("status", json)?),
            types::Action::Adopt => Action::Adopt,
            types::Action::Leave(why) => Action::Leave(self.sentence("reason", why)?),
        })
    }

    fn condition(&mut self, from: types::Condition) -> Result<Condition, PluginFault> {
        Ok(Condition {
            type_: self.name("condition type", from.type_)?,
            status: match from.status {
                types::ConditionStatus::True => ConditionStatus::True,
                types::ConditionStatus::False => ConditionStatus::False,
                types::ConditionStatus::Unknown => ConditionStatus::Unknown,
            },
            reason: self.name("condition reason", from.reason)?,
            message: self.sentence("condition message", from.message)?,
        })
    }

    fn reasons(
        &mut self,
        word: &str,
        reasons: Vec<policy::Reason>,
    ) -> Result<Vec<Reason>, PluginFault> {
        if reasons.is_empty() {
            return Err(PluginFault::Invalid(format!("review answers `{word}` without a reason")));
        }
        self.count("reasons", reasons.len(), MAX_ITEMS)?;
        each(reasons, |policy::Reason { control, message, path }| {
            Ok(Reason {
                control: self.name("control", control)?,
                message: self.sentence("reason", message)?,
                path: path.map(|path| self.path(&path)).transpose()?,
            })
        })
    }

    fn finding(&mut self, from: types::Finding) -> Result<Finding, PluginFault> {
        Ok(Finding {
            name: self.name("finding name", from.name)?,
            severity: match from.severity {
                types::Severity::Info => Severity::Info,
                types::Severity::Warning => Severity::Warning,
                types::Severity::Critical => Severity::Critical,
            },
            message: self.sentence("finding message", from.message)?,
            path: from.path.map(|path| self.path(&path)).transpose()?,
        })
    }
}
