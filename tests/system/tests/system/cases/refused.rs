//! Sources that are refused whole, and objects that cannot be placed: on a real API server, each in a
//! source of its own, since they would stand in the way of every other case.

use super::form::{Case, Found, manifests};
use super::server::diff;
use super::{Tally, all, types};
use crate::world::{Test, run, shared};
use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use trimtab_core::object::{Manifest, Revision};
use trimtab_core::placing::place;
use trimtab_system_tests::Id;

/// What refuses the whole source: a good object beside it is not written either.
#[test]
fn a_file_that_is_refused_is_named_with_its_line_and_nothing_of_its_source_is_written() -> Test {
    run(async {
        let cluster = shared().await?;
        let cases = all()?;
        for (name, stage) in
            [("cases-unread", Refusal::Reading), ("cases-unplaced", Refusal::Placing)]
        {
            let refused: Vec<&Case> =
                cases.iter().filter(|case| whole_refusal(case) == Some(stage)).collect();
            ensure!(refused.len() > 3, "only {} cases are refused in {stage:?}", refused.len());
            let room = cluster.room(name)?.with_generic()?;
            let good = format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: default}}\n"
            );
            room.declare("good.yaml", &good)?;
            for case in &refused {
                room.declare(&format!("{}.yaml", case.namespace), &case.desired)?;
            }
            let answer = diff(&room)?;
            let round = room.once().await?;
            let told = format!("{}{}{}", round.log, round.summary, room.journal().text()?);
            let mut tally = Tally::default();
            for case in refused {
                let result = (|| {
                    let file = format!("{}.yaml", case.namespace);
                    let errors = answer["errors"].as_array().into_iter().flatten();
                    let place = |error: &&Value| {
                        error["where"].as_str().is_some_and(|it| match case.expect.line {
                            Some(line) => it.ends_with(&format!("{file}:{line}")),
                            None => it.contains(&file),
                        })
                    };
                    let error = errors.clone().find(place);
                    let error = error.with_context(|| format!("it is not named: {answer}"))?;
                    let message = error["message"].as_str().unwrap_or_default();
                    ensure!(message.contains(&case.expect.reason), "the reason: {message}");
                    case.expect.check_hidden(&[&told, &answer.to_string()])
                })();
                tally.take(case, case.known.as_deref(), result);
            }
            ensure!(round.status != 0, "the round is well: {}", round.summary);
            let writes = cluster.audit().writes_by(name).await?;
            crate::world::none("it was written", &writes)?;
            tally.end(&format!("{stage:?} refuses"))?;
        }
        Ok(())
    })
}

/// A case of its own: the round never converges.
#[test]
fn a_kind_that_is_not_served_stops_no_other_object() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "unserved";
        let room = cluster.room(name)?.with_generic()?;
        room.declare("kraken.yaml", "apiVersion: sea.example.com/v1\nkind: Kraken\nmetadata: {name: deep, namespace: default}\n")?;
        room.declare("map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shallow, namespace: default}\ndata: {a: '2'}\n")?;
        let shallow = Id::new("v1", "ConfigMap", "default", "shallow");
        let round = room.once().await?;
        ensure!(round.status == 1, "{}", round.summary);
        let unsettled = round.unsettled();
        ensure!(
            unsettled.len() == 1
                && unsettled[0].0.contains("Kraken")
                && unsettled[0].2.contains("serves no sea.example.com/v1"),
            "{unsettled:?}"
        );
        ensure!(cluster.api().require(&shallow).await?["data"]["a"] == "2", "not made");

        // Its drift is told beside what cannot be told.
        cluster.user("somebody")?.merge(&shallow, &json!({"data": {"a": "1", "b": "2"}})).await?;
        let answer = diff(&room)?;
        let found = Found::in_answer(&answer, Some(&[shallow]));
        ensure!(found.paths.contains("/data/a"), "{answer}");
        let all = Found::in_answer(&answer, None);
        ensure!(all.verdict.contains("unknown"), "{answer}");
        Ok(())
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Reading,
    Placing,
}

/// What refuses a case's file whole, if something does.
pub(super) fn whole_refusal(case: &Case) -> Option<Refusal> {
    let Ok(manifests) = manifests(&case.desired) else { return Some(Refusal::Reading) };
    let revision = Revision {
        source: "case".into(),
        id: "case".into(),
        manifests: vec![],
        provenance: Default::default(),
    };
    let fails = |manifest: &Manifest| {
        let scope = types::scope(&manifest.gvk, &manifests);
        place(&revision, manifest, scope, "default").is_err()
    };
    manifests.iter().any(fails).then_some(Refusal::Placing)
}
