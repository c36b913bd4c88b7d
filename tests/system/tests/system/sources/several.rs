//! Several sources: each for itself, and what two of them declare.

use super::{configure, listed, map, map_id, namespace, told, trimtab};
use crate::world::{Test, none, pass, run, shared};
use anyhow::{Result, ensure};
use serde_json::json;
use trimtab_system_tests::{Cluster, Room};

const TWO: &str = "  - {name: a, path: source/a}\n  - {name: b, path: source/b}\n";

/// A room with the namespace and one map in source a, and one in source b.
fn two(cluster: &Cluster, name: &str) -> Result<Room> {
    let mut room = cluster.room(name)?.with_generic()?;
    room.declare("a/maps.yaml", &(namespace(name) + &map(name, "of-a", "one")))?;
    room.declare("b/maps.yaml", &map(name, "of-b", "one"))?;
    configure(&mut room, TWO)?;
    Ok(room)
}

#[test]
fn a_source_that_fails_keeps_its_last_good_state_with_drift_correction_and_the_other_flows() -> Test
{
    run(async {
        let cluster = shared().await?;
        let name = "src-fails";
        let room = two(cluster, name)?;
        let (of_a, of_b) = (map_id(name, "of-a"), map_id(name, "of-b"));
        let mut host = room.start()?;
        pass(&mut host, 0, &of_a, "created").await?;
        pass(&mut host, 0, &of_b, "created").await?;
        ensure!(trimtab(&room, &["source", "list"])?.status == 0);

        let mark = host.journal().mark()?;
        room.declare("b/broken.yaml", "kind: [\n")?;
        told(&mut host, mark, "b", &["broken.yaml"]).await?;
        room.declare("a/maps.yaml", &(namespace(name) + &map(name, "of-a", "two")))?;
        pass(&mut host, mark, &of_a, "corrected").await?;
        cluster.user("bob")?.merge(&of_b, &json!({"data": {"value": "bobs"}})).await?;
        pass(&mut host, mark, &of_b, "corrected").await?;
        ensure!(cluster.api().require(&of_b).await?["data"]["value"] == "one");

        let b = listed(&room, "b")?;
        let problem = b["problem"]["message"].as_str().unwrap_or_default();
        ensure!(problem.contains("broken.yaml:1"), "{b}");
        ensure!(b["problem"]["since"].as_str().is_some_and(|it| it.ends_with('Z')), "{b}");
        ensure!(b["revision"].is_string() && listed(&room, "a")?["problem"].is_null());
        let shown = trimtab(&room, &["source", "show", "b"])?;
        ensure!(shown.status == 1 && shown.out.contains("not in force since"), "{}", shown.out);
        room.withdraw("b/broken.yaml")?;
        super::until_listed(&mut host, &room, "b", |it| it["problem"].is_null()).await?;
        Ok(())
    })
}

#[test]
fn an_object_of_two_sources_stays_with_the_one_that_had_it_and_is_handed_over_without_a_delete()
-> Test {
    run(async {
        let cluster = shared().await?;
        let name = "src-handover";
        let room = two(cluster, name)?;
        let (of_a, of_b) = (map_id(name, "of-a"), map_id(name, "of-b"));
        let mut host = room.start()?;
        pass(&mut host, 0, &of_a, "created").await?;
        pass(&mut host, 0, &of_b, "created").await?;
        let uid = cluster.api().require(&of_a).await?["metadata"]["uid"].clone();

        let mark = host.journal().mark()?;
        room.declare("b/maps.yaml", &(map(name, "of-b", "two") + &map(name, "of-a", "by-b")))?;
        let words = ["of-a", "source a (maps.yaml:", "source b (maps.yaml:", "stays with a"];
        told(&mut host, mark, "b", &words).await?;
        pass(&mut host, mark, &of_b, "corrected").await?;
        ensure!(cluster.api().require(&of_a).await?["data"]["value"] == "one");
        let b = listed(&room, "b")?;
        ensure!(b["refused"].as_array().is_some_and(|it| it.len() == 1), "{b}");

        let mark = host.journal().mark()?;
        room.declare("a/maps.yaml", &namespace(name))?;
        let line = pass(&mut host, mark, &of_a, "corrected").await?;
        ensure!(line.0["source"] == "b", "{line:?}");
        let live = cluster.api().require(&of_a).await?;
        ensure!(live["data"]["value"] == "by-b" && live["metadata"]["uid"] == uid, "{live}");
        let mut deletes = cluster.audit().writes_by(name).await?;
        deletes.retain(|request| request.verb.starts_with("delete"));
        none("the host deleted", &deletes)
    })
}

#[test]
fn an_object_of_two_sources_that_nobody_had_is_applied_for_neither_and_the_rest_of_both_is() -> Test
{
    run(async {
        let cluster = shared().await?;
        let name = "src-twice";
        let room = two(cluster, name)?;
        room.declare("a/both.yaml", &map(name, "both", "by-a"))?;
        room.declare("b/both.yaml", &map(name, "both", "by-b"))?;
        let round = room.once().await?;
        ensure!(round.status == 1, "{}\n{}", round.summary, round.log);
        let refused: Vec<_> =
            round.unsettled().into_iter().filter(|it| it.1 == "refused").collect();
        ensure!(refused.len() == 2, "{refused:?}");
        for (object, _, reason) in &refused {
            ensure!(object.contains("both"), "{object}");
            ensure!(
                reason.contains("source a (both.yaml:1) and source b (both.yaml:1)"),
                "{reason}"
            );
        }
        ensure!(round.summary["converged"] == 3, "{}", round.summary);
        ensure!(cluster.api().get(&map_id(name, "both")).await?.is_none());
        Ok(())
    })
}

#[test]
fn sources_can_be_flags_named_or_named_by_their_path_and_diff_reads_them_alike() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "src-flags";
        let mut room = two(cluster, name)?;
        let source = |folder: &str| room.source().join(folder).display().to_string();
        let flags =
            ["--source".to_owned(), source("a"), "--source".into(), format!("c={}", source("b"))];
        room.config = None;
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let kubeconfig = room.kubeconfig.clone().unwrap_or_default();
        let diff = |arguments: &[&str]| -> Result<String> {
            let output = std::process::Command::new(std::path::absolute(&room.built().trimtab)?)
                .arg("diff")
                .args(arguments)
                .arg("--kubeconfig")
                .arg(&kubeconfig)
                .args(["-o", "json"])
                .output()?;
            ensure!(output.status.code() == Some(1), "{}", String::from_utf8_lossy(&output.stderr));
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        };
        let answer: serde_json::Value = serde_json::from_str(&diff(&flags)?)?;
        ensure!(answer["objects"].as_array().is_some_and(|it| it.len() == 3), "{answer}");
        let twice = [&flags[..], &["--source", flags[1]]].concat();
        let refused = diff(&twice);
        ensure!(refused.is_err_and(|it| it.to_string().contains("two sources are named \"a\"")));
        Ok(())
    })
}
