//! The optional keys of a grant: denials that it lifts, fields, reads, budgets and limits.

use super::{Words, Wrong, patterns};
use serde::Deserialize;
use serde_saphyr::Spanned;
use std::collections::BTreeSet;
use std::time::Duration;
use trimtab_core::budget;
use trimtab_core::decision::ActionKind;
use trimtab_core::denial::Denial;
use trimtab_core::fields::{self, FieldPath};
use trimtab_core::grant::{self, Terms};
use trimtab_core::plugin::KindPattern;

/// `fields`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Fields {
    allow: Words,
    deny: Words,
}

/// `budgets`.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Budgets {
    writes_per_minute: Option<u32>,
    deletes_per_hour: Option<u32>,
    deletes_per_pass: Option<u32>,
    actions_per_pass: Option<u32>,
}

/// `limits`.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Limits {
    wall_time_ms: Option<u64>,
    memory_bytes: Option<u64>,
    output_bytes: Option<u64>,
    log_lines: Option<u64>,
    log_bytes: Option<u64>,
    lookups: Option<u64>,
    lookup_bytes: Option<u64>,
}

/// `wasi`: there is one word, so that a grant says what it gives.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum WasiWord {
    Closed,
}

/// What the grant names besides.
pub(super) struct Reach<'a> {
    pub(super) kinds: &'a [KindPattern],
    pub(super) actions: &'a BTreeSet<ActionKind>,
    pub(super) cluster_scoped: bool,
}

/// The terms, if each can be meant.
///
/// # Errors
/// What is wrong, and what to do.
pub(super) fn check(
    allow: &[Spanned<String>],
    fields: &Fields,
    reads: Option<&[Spanned<String>]>,
    budgets: Option<&Spanned<Budgets>>,
    limits: Option<&Spanned<Limits>>,
    reach: &Reach<'_>,
) -> Result<Terms, Wrong> {
    Ok(Terms {
        allow: lifted(allow, reach)?,
        fields: paths(fields, reach)?,
        reads: reads.map(patterns).transpose()?,
        budgets: within(budgets, amounts)?,
        limits: within(limits, bounded)?,
        wasi: false,
        policy: None,
    })
}

/// What a key says, checked; what is said without it, else.
fn within<G: Copy, T: Default>(
    given: Option<&Spanned<G>>,
    check: impl Fn(G) -> Result<T, String>,
) -> Result<T, Wrong> {
    let checked = |given: &Spanned<G>| check(given.value).map_err(|what| Wrong::at(given, what));
    given.map(checked).transpose().map(Option::unwrap_or_default)
}

fn lifted(words: &[Spanned<String>], reach: &Reach<'_>) -> Result<BTreeSet<Denial>, Wrong> {
    let one = |word: &Spanned<String>| {
        let denial = denial(&word.value).map_err(|what| Wrong::at(word, what))?;
        if !denial.can_concern(reach.kinds, reach.cluster_scoped) {
            return Err(Wrong::at(
                word,
                format!(
                    "allow has {denial}, which concerns none of the granted kinds and scopes: leave it out"
                ),
            ));
        }
        Ok(denial)
    };
    words.iter().map(one).collect()
}

/// The denial with this word.
///
/// # Errors
/// The words that there are.
pub(super) fn denial(word: &str) -> Result<Denial, String> {
    Denial::parse(word).ok_or_else(|| {
        let known: Vec<&str> = Denial::ALL.iter().map(|denial| denial.as_str()).collect();
        format!("allow has {word:?}, which is none of {}", known.join(", "))
    })
}

fn paths(fields: &Fields, reach: &Reach<'_>) -> Result<fields::Fields, Wrong> {
    let read = |list: &Words| {
        let one = |text: &Spanned<String>| {
            FieldPath::parse(&text.value).map_err(|what| Wrong::at(text, what))
        };
        list.iter().map(one).collect::<Result<Vec<_>, _>>()
    };
    let deletes = [ActionKind::Delete, ActionKind::Recreate];
    let deleting = deletes.into_iter().find(|kind| reach.actions.contains(kind));
    if let (Some(kind), Some(first)) = (deleting, fields.allow.first()) {
        return Err(Wrong::at(
            first,
            format!(
                "fields.allow beside the action {kind}: a deletion changes every field, so that it would always be refused: leave one out"
            ),
        ));
    }
    Ok(fields::Fields { allow: read(&fields.allow)?, deny: read(&fields.deny)? })
}

fn amounts(given: Budgets) -> Result<budget::Budgets, String> {
    let usual = budget::Budgets::default();
    let budgets = budget::Budgets {
        writes_per_minute: given.writes_per_minute.unwrap_or(usual.writes_per_minute),
        deletes_per_hour: given.deletes_per_hour.unwrap_or(usual.deletes_per_hour),
        deletes_per_pass: given.deletes_per_pass.unwrap_or(usual.deletes_per_pass),
        actions_per_pass: given.actions_per_pass.unwrap_or(usual.actions_per_pass),
    };
    if budgets.writes_per_minute == 0 || budgets.actions_per_pass == 0 {
        return Err("budgets let nothing be written: say mode: observe instead".into());
    }
    Ok(budgets)
}

/// Each within the sandbox's ceiling.
fn bounded(given: Limits) -> Result<grant::Limits, String> {
    let top = trimtab_wasm::Limits::CEILING;
    let within = |name: &str, value: Option<u64>, least: u64, most: usize| match value {
        Some(value) if value < least => {
            Err(format!("limits.{name} is {value}, and at least {least}"))
        }
        Some(value) if value > most as u64 => {
            Err(format!("limits.{name} is {value}, and at most {most}"))
        }
        value => Ok(value),
    };
    let wall = usize::try_from(top.wall_time.as_millis()).unwrap_or(usize::MAX);
    Ok(grant::Limits {
        wall_time_ms: within("wallTimeMs", given.wall_time_ms, 5, wall)?,
        memory_bytes: within("memoryBytes", given.memory_bytes, 1 << 16, top.memory_bytes)?,
        output_bytes: within("outputBytes", given.output_bytes, 1, top.output_bytes)?,
        log_lines: within("logLines", given.log_lines, 0, top.log_lines as usize)?,
        log_bytes: within("logBytes", given.log_bytes, 0, top.log_bytes)?,
        lookups: within("lookups", given.lookups, 0, top.lookups as usize)?,
        lookup_bytes: within("lookupBytes", given.lookup_bytes, 0, top.lookup_bytes)?,
    })
}

/// The sandbox's limits under a grant.
pub fn limits(granted: &grant::Limits) -> trimtab_wasm::Limits {
    let usual = trimtab_wasm::Limits::default();
    let bytes = |value: Option<u64>, usual: usize| {
        value.and_then(|value| usize::try_from(value).ok()).unwrap_or(usual)
    };
    let count = |value: Option<u64>, usual: u32| {
        value.and_then(|value| u32::try_from(value).ok()).unwrap_or(usual)
    };
    trimtab_wasm::Limits {
        wall_time: granted.wall_time_ms.map_or(usual.wall_time, Duration::from_millis),
        memory_bytes: bytes(granted.memory_bytes, usual.memory_bytes),
        output_bytes: bytes(granted.output_bytes, usual.output_bytes),
        // What may be answered has to get across first, with room for how it is laid out.
        hostcall_fuel: usual.hostcall_fuel.max(bytes(granted.output_bytes, 0).saturating_mul(4)),
        log_lines: count(granted.log_lines, usual.log_lines),
        log_bytes: bytes(granted.log_bytes, usual.log_bytes),
        lookups: count(granted.lookups, usual.lookups),
        lookup_bytes: bytes(granted.lookup_bytes, usual.lookup_bytes),
        ..usual
    }
}
