//! Plugins that are not the same the next time: other answers, other courses, storms, memories.

use super::arena::{TRIAL, Trial, Wants, trial};
use crate::world::Test;
use anyhow::{Context as _, ensure};
use serde_json::json;
use std::collections::BTreeSet;
use trimtab_system_tests::Id;

#[test]
pub(super) fn there_is_nothing_by_which_two_answers_to_one_question_could_differ() -> Test {
    trial(async || {
        let mut trial = Trial::begin(33).await?;
        let file = trial.serve(&Wants::default()).await?;
        let objects: Vec<_> = (10..40)
            .map(|index| trial.object(TRIAL, &format!("o{index}"), "nondeterminism", ""))
            .collect();
        trial.declare(&objects).await?;
        let mut answers = BTreeSet::new();
        for object in &objects {
            let line = trial.pass(object, "left", |line| line.outcome() == "left").await?;
            answers.insert(line.message().to_owned());
        }
        ensure!(answers.len() == 1, "answers differ: {answers:?}");
        // And where one was asked twice, it answered twice the same.
        let status = trial.serves(&file).await?;
        ensure!(status["faults"]["impure"] == 0, "{status}");
        trial.end(&[]).await
    })
}

#[test]
pub(super) fn a_plugin_that_undoes_what_it_wrote_is_stopped_after_three_times() -> Test {
    trial(async || {
        let mut trial = Trial::begin(34).await?;
        let terms = format!("reads: [{TRIAL:?}]");
        trial.serve(&Wants { reads: &[TRIAL], terms: &terms, ..Wants::default() }).await?;
        // One that asks to be asked again, and two of which each reads the other.
        let objects = [("a", ""), ("b", "pair"), ("c", "pair")].map(|(name, shape)| {
            let mut object = trial.object(TRIAL, name, "oscillation", shape);
            object["spec"] = json!({"course": "ahead"});
            object
        });
        for object in &objects {
            let mut live = object.clone();
            live["spec"]["course"] = "port".into();
            trial.cluster.api().create(&live).await?;
        }
        trial.declare(&objects).await?;
        let line = trial.pass(&objects[0], "contested", |it| it.outcome() == "contested").await?;
        ensure!(line.message().contains("contradicts itself"), "{line:?}");
        // Longer than it asks for between two looks.
        trial.neighbour().await?;
        tokio::time::sleep(std::time::Duration::from_millis(2_500)).await;
        let written = trial.written().await?;
        let name = |object: &str| format!("trials.hostile.example {}/{object}", trial.name);
        ensure!(written.get(&name("a")) == Some(&4), "the first and three times: {written:?}");
        for object in ["b", "c"] {
            let times = written.get(&name(object)).copied().unwrap_or_default();
            ensure!((1..=4).contains(&times), "{object} was written {times} times: {written:?}");
        }
        let told = trial.lines()?;
        let stopped = told
            .iter()
            .any(|line| line.outcome() == "contested" && line.0["object"]["name"] != "a");
        ensure!(stopped, "neither of the two was stopped: {written:?}");
        let allowed = ["a", "b", "c"].map(name);
        trial.end(&allowed).await
    })
}

#[test]
pub(super) fn a_storm_of_actions_is_cut_and_a_mass_deletion_stops_at_its_budget() -> Test {
    trial(async || {
        let mut trial = Trial::begin(35).await?;
        let file = trial
            .serve(&Wants { terms: "budgets: {deletesPerHour: 5}", ..Wants::default() })
            .await?;
        let storm = trial.object(TRIAL, "storm", "action-storm", "");
        let mut objects = vec![storm.clone()];
        for index in 0..30 {
            let mut object = trial.object(TRIAL, &format!("o{index:02}"), "action-storm", "delete");
            let mut live = object.clone();
            live["spec"] = json!({"kept": false});
            object["spec"] = json!({"kept": true});
            trial.cluster.api().create(&live).await?;
            objects.push(object);
        }
        trial.declare(&objects).await?;
        let found = trial.reasons(&storm, "created").await?;
        ensure!(found.get("PassBudgetSpent") == Some(&240), "refused: {found:?}");
        for object in &objects[1..] {
            trial
                .pass(object, "over its budget, or deleted", |line| {
                    line.outcome() == "over-budget" || !line.0["actions"].is_null()
                })
                .await?;
        }
        trial.neighbour().await?;
        let left = trial.cluster.api().list("hostile.example/v1", "Trial").await?;
        let left = left.iter().filter(|it| it["spec"]["kept"] == false).count();
        ensure!(left == 25, "{left} of 30 objects are left");
        trial.serves(&file).await?;
        let written = trial.written().await?;
        let stormed = format!("trials.hostile.example {}/storm", trial.name);
        ensure!(written.get(&stormed).is_some_and(|count| *count <= 16), "{written:?}");
        ensure!(written.values().sum::<usize>() <= 16 + 5, "{written:?}");
        let allowed: Vec<String> = written.into_keys().collect();
        trial.end(&allowed).await
    })
}

#[test]
pub(super) fn what_a_plugin_saw_of_one_tenant_is_gone_when_it_is_asked_about_another() -> Test {
    trial(async || {
        let mut trial = Trial::begin(36).await?;
        let other = format!("{}-out", trial.name);
        trial.serve(&Wants { namespaces: &[&other], ..Wants::default() }).await?;
        let (mut objects, mut allowed) = (Vec::new(), Vec::new());
        for index in 0..10 {
            for namespace in [trial.name.clone(), other.clone()] {
                let mut object = trial.object(TRIAL, &format!("o{index}"), "leaked-state", "");
                object["metadata"]["namespace"] = namespace.clone().into();
                object["spec"] = json!({"canary": format!("belongs-to-{namespace}")});
                allowed.push(format!("trials.hostile.example {namespace}/o{index}"));
                objects.push(object);
            }
        }
        trial.declare(&objects).await?;
        for object in &objects {
            let line = trial.pass(object, "made", |line| line.outcome() == "created").await?;
            let finding = line.0["findings"].to_string();
            ensure!(finding.contains("0 were seen before"), "{line:?}");
            let live = trial.cluster.api().require(&Id::of(object).context("a name")?).await?;
            let own = object["spec"]["canary"].as_str().unwrap_or_default();
            let all = format!("{} {live}", line.0);
            let foreign = all
                .split("belongs-to-")
                .skip(1)
                .find(|rest| !rest.starts_with(&own["belongs-to-".len()..]));
            ensure!(foreign.is_none(), "somebody else's canary: {all}");
        }
        trial.end(&allowed).await
    })
}
