//! Plugins that take too much or break: each costs its own passes, then its own quarantine.

use super::arena::{KINDS, Trial, Wants, trial};
use super::made::{self, Files};
use crate::world::Test;
use anyhow::{Result, ensure};
use std::time::Duration;

/// Objects of one behaviour: as many as make a quarantine and more.
const OBJECTS: usize = 6;

/// Its guest is asked about several objects, fails over each by this fault, and is asked no more.
async fn ends_in_quarantine(number: u8, behaviour: &str, fault: &str, says: &str) -> Result<()> {
    let mut trial = Trial::begin(number).await?;
    let file = trial.serve(&Wants::default()).await?;
    let name = |index| format!("o{index}");
    let objects: Vec<_> =
        (0..OBJECTS).map(|index| trial.object(KINDS[0], &name(index), behaviour, "")).collect();
    trial.declare(&objects).await?;
    let status = trial.listed(&file, "quarantined").await?;
    ensure!(status["faults"][fault].as_u64() >= Some(3), "faults other than {fault}: {status}");
    let last = status["lastFault"].as_str().unwrap_or_default();
    ensure!(last.contains(says), "the last fault does not say {says:?}: {last}");
    trial.end(&[]).await
}

/// Each shape as a plugin of a kind of its own, asked about one object: the fault says so.
async fn each_faults(number: u8, files: Files, says: &[&str]) -> Result<()> {
    let mut trial = Trial::begin(number).await?;
    ensure!(files.len() == says.len(), "a word for each shape");
    let mut objects = Vec::new();
    for ((shape, file), kind) in files.iter().zip(KINDS) {
        let file = trial.drop_in(shape, file, &Wants { claims: &[kind], ..Wants::default() })?;
        trial.serves(&file).await?;
        objects.push(trial.object(kind, shape, "", ""));
    }
    trial.declare(&objects).await?;
    for (object, says) in objects.iter().zip(says) {
        trial.faults(object, says).await?;
    }
    trial.end(&[]).await
}

#[test]
pub(super) fn an_endless_loop_is_interrupted_and_its_plugin_is_called_no_more() -> Test {
    trial(|| ends_in_quarantine(1, "infinite-loop", "deadlines", "past its deadline"))
}

#[test]
pub(super) fn copies_of_many_megabytes_are_interrupted_at_the_next_turn_of_their_loop() -> Test {
    trial(async || {
        let mut trial = Trial::begin(2).await?;
        let files = made::bulk_copies();
        let file = trial.drop_in("", &files[0].1, &Wants::default())?;
        trial.serves(&file).await?;
        let objects: Vec<_> =
            ["a", "b", "c"].map(|name| trial.object(KINDS[0], name, "", "")).into();
        trial.declare(&objects).await?;
        trial.listed(&file, "quarantined").await?;
        for line in trial.lines()?.iter().filter(|line| line.outcome() == "plugin-fault") {
            let took = line.0["timingsMs"]["compare"].as_f64().unwrap_or_default();
            ensure!(took < 2_500.0, "a call with a deadline of a second took {took} ms: {line:?}");
        }
        trial.end(&[]).await
    })
}

#[test]
pub(super) fn memory_beyond_its_limit_is_refused_to_a_plugin() -> Test {
    trial(|| ends_in_quarantine(3, "memory-bomb", "limits", "memory"))
}

#[test]
pub(super) fn tables_and_instances_beyond_their_limits_are_refused_to_a_plugin() -> Test {
    trial(async || {
        let mut trial = Trial::begin(4).await?;
        let files = made::tables_and_instances();
        let file = trial.drop_in("table", &files[0].1, &Wants::default())?;
        trial.serves(&file).await?;
        let object = trial.object(KINDS[0], "table", "", "");
        trial.declare(std::slice::from_ref(&object)).await?;
        trial.faults(&object, "table").await?;
        trial.refuses("instances", &files[1].1, "instances").await?;
        trial.end(&[]).await
    })
}

#[test]
pub(super) fn endless_recursion_is_a_trap_and_the_host_goes_on() -> Test {
    trial(|| ends_in_quarantine(5, "deep-recursion", "traps", "trapped"))
}

#[test]
pub(super) fn an_answer_that_is_too_long_too_large_or_too_deep_is_refused_as_a_whole() -> Test {
    trial(async || {
        let mut trial = Trial::begin(6).await?;
        let guest = trial.guest().await?;
        let mut objects = Vec::new();
        // Two shapes for each plugin: three faults in a row would be its quarantine.
        for (kind, shapes) in [(KINDS[0], ["list", "text"]), (KINDS[1], ["levels", "many"])] {
            let wants = Wants { claims: &[kind], ..Wants::default() };
            let file = trial.drop_in(shapes[0], guest, &wants)?;
            trial.serves(&file).await?;
            objects.extend(shapes.map(|shape| trial.object(kind, shape, "huge-output", shape)));
        }
        trial.declare(&objects).await?;
        let says = ["exceeded a limit", "at once", "too deep", "1000 actions"];
        for (object, says) in objects.iter().zip(says) {
            trial.faults(object, says).await?;
        }
        trial.end(&[]).await
    })
}

#[test]
pub(super) fn an_answer_that_cannot_be_lifted_costs_its_pass() -> Test {
    trial(|| each_faults(7, made::bad_lifts(), &["utf-8", "aligned", "invalid", "bounds"]))
}

#[test]
pub(super) fn a_trap_or_a_loop_before_the_first_call_costs_its_pass() -> Test {
    trial(|| each_faults(10, made::starts(), &["unreachable", "past its deadline"]))
}

#[test]
pub(super) fn a_panics_last_words_are_cut_and_escaped() -> Test {
    trial(async || {
        let mut trial = Trial::begin(11).await?;
        let file = trial.serve(&Wants::default()).await?;
        let objects: Vec<_> =
            ["a", "b", "c"].map(|name| trial.object(KINDS[0], name, "panic", "")).into();
        trial.declare(&objects).await?;
        let status = trial.listed(&file, "quarantined").await?;
        let last = status["lastFault"].as_str().unwrap_or_default();
        ensure!(last.contains("panicked") && last.contains("more bytes"), "{status}");
        ensure!(last.len() < 2_000, "the last words have {} bytes", last.len());
        for (place, text) in trial.told()? {
            let forged =
                text.lines().find(|line| line.trim_start().starts_with("ERROR plugin generic"));
            ensure!(forged.is_none(), "{place} has a line of the plugin's making: {forged:?}");
            let raw = text.chars().find(|c| matches!(c, '\u{1b}' | '\r' | '\u{202e}'));
            ensure!(raw.is_none(), "{place} has {raw:?} as it is");
        }
        trial.end(&[]).await
    })
}

#[test]
pub(super) fn handles_that_are_forged_given_back_twice_or_hoarded_cost_their_pass() -> Test {
    trial(|| each_faults(14, made::handles(), &["handle", "handle", "handle"]))
}

#[test]
pub(super) fn time_that_is_spent_in_the_hosts_functions_counts_for_the_deadline() -> Test {
    trial(async || {
        let mut trial = Trial::begin(15).await?;
        let file = trial.serve(&Wants { reads: &[KINDS[0]], ..Wants::default() }).await?;
        let objects: Vec<_> = (0..OBJECTS)
            .map(|index| trial.object(KINDS[0], &format!("o{index}"), "host-calls", ""))
            .collect();
        trial.declare(&objects).await?;
        let status = trial.listed(&file, "quarantined").await?;
        ensure!(status["faults"]["deadlines"].as_u64() >= Some(3), "{status}");
        for line in trial.lines()?.iter().filter(|line| line.outcome() == "plugin-fault") {
            let took = line.0["timingsMs"]["compare"].as_f64().unwrap_or_default();
            let most = Duration::from_millis(2_500).as_secs_f64() * 1e3;
            ensure!(took < most, "a call with a deadline of a second took {took} ms: {line:?}");
        }
        trial.end(&[]).await
    })
}

#[test]
pub(super) fn a_call_of_the_host_from_within_the_hosts_call_is_a_trap_and_one_that_does_not_wait_is_refused()
-> Test {
    trial(async || {
        let mut trial = Trial::begin(16).await?;
        let files = made::reentrant();
        let file = trial.drop_in("reentrant", &files[0].1, &Wants::default())?;
        trial.serves(&file).await?;
        let object = trial.object(KINDS[0], "reentrant", "", "");
        trial.declare(std::slice::from_ref(&object)).await?;
        trial.faults(&object, "cannot leave component instance").await?;
        trial.refuses("concurrent", &files[1].1, "async").await?;
        trial.end(&[]).await
    })
}
