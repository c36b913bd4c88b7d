//! What a plugin was asked in a pass, asked again: the same build answers the same, another one is
//! held against it, and nothing of a Secret is kept.

use crate::world::{
    APP_OBJECTS, Test, app, converged, deployment, pass, room_with_app, run, shared,
};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::process::Command;
use trimtab_system_tests::{Id, Room, workspace};

/// Exit status and answer of `trimtab plugin replay`.
fn replay(room: &Room, record: &str, more: &[&str]) -> Result<(i32, Value, String)> {
    let output = Command::new(std::path::absolute(&room.built().trimtab)?)
        .args(["plugin", "replay", record, "-o", "json", "--state"])
        .arg(room.state())
        .arg("--plugins")
        .arg(room.plugins())
        .args(more)
        .output()?;
    let status = output.status.code().context("ended by a signal")?;
    let answer = serde_json::from_slice(&output.stdout).unwrap_or_default();
    Ok((status, answer, String::from_utf8_lossy(&output.stderr).into_owned()))
}

#[test]
fn a_pass_is_replayed_bit_for_bit_and_another_build_is_held_against_it() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "replayed";
        let room = room_with_app(cluster, name)?;
        let mut host = converged(&room, APP_OBJECTS).await?;
        let mark = host.journal().mark()?;
        cluster
            .user("alice")?
            .edit(&deployment(name), |object| {
                object["spec"]["template"]["spec"]["containers"][0]["image"] = "evil:1".into();
            })
            .await?;
        let line = pass(&mut host, mark, &deployment(name), "corrected").await?;
        let seq = line.0["seq"].to_string();
        let digest = line.0["inputs"].as_str().context("the pass has no inputs")?.to_owned();

        for record in [&seq, &digest] {
            let (status, answer, error) = replay(&room, record, &[])?;
            ensure!(status == 0, "status {status}: {answer} {error}");
            let recorded = &answer["decision"]["recorded"]["decided"]["actions"];
            ensure!(recorded == &json!([{"apply-desired": {"without": []}}]), "{answer}");
            ensure!(answer["decision"]["now"] == answer["decision"]["recorded"], "{answer}");
            let found = answer["comparison"]["now"]["different"].to_string();
            ensure!(found.contains("evil:1"), "{answer}");
        }

        // Another plugin, which compares as this one does and leaves everything as it is.
        let crate_dir = workspace().join("tests/guests/overreach");
        room.built().output(&[
            "plugin".as_ref(),
            "build".as_ref(),
            crate_dir.as_os_str(),
            "--out".as_ref(),
            room.path().as_os_str(),
        ])?;
        let other = room.path().join("overreach.wasm");
        let with = ["--with", other.to_str().context("a path of text")?];
        let (status, answer, error) = replay(&room, &seq, &with)?;
        ensure!(status == 1, "status {status}: {answer} {error}");
        ensure!(answer["comparison"]["now"] == answer["comparison"]["recorded"], "{answer}");
        let now = &answer["decision"]["now"]["decided"]["actions"];
        ensure!(now == &json!([{"leave": "nobody asks for anything"}]), "{answer}");

        // What was altered is no record.
        let file = room
            .state()
            .join("inputs")
            .join(format!("{}.json", digest.trim_start_matches("sha256:")));
        let text = std::fs::read_to_string(&file)?;
        std::fs::write(&file, text.replace("evil:1", "good:1"))?;
        let (status, _, error) = replay(&room, &seq, &[])?;
        ensure!(status == 2 && error.contains("its digest is another"), "{status}: {error}");
        Ok(())
    })
}

#[test]
fn nothing_is_kept_of_a_pass_that_saw_a_secret() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "not-replayed";
        let room = cluster.room(name)?.with_generic()?;
        room.declare("app.yaml", &app(name))?;
        room.declare(
            "secret.yaml",
            &format!(
                "apiVersion: v1\nkind: Secret\nmetadata: {{name: s, namespace: {name}}}\nstringData: {{password: canary-replay-1}}\n"
            ),
        )?;
        let mut host = room.start()?;
        let id = Id::new("v1", "Secret", name, "s");
        let line = pass(&mut host, 0, &id, "created").await?;
        ensure!(line.0.get("inputs").is_none(), "{line:?}");
        pass(&mut host, 0, &deployment(name), "created").await?;
        let seq = line.0["seq"].to_string();
        let (status, _, error) = replay(&room, &seq, &[])?;
        ensure!(status == 2 && error.contains("nothing was kept of pass"), "{status}: {error}");
        let mut files = 0;
        for entry in std::fs::read_dir(room.state().join("inputs"))? {
            let text = std::fs::read_to_string(entry?.path())?;
            ensure!(!text.contains("canary-replay-1"), "kept: {text}");
            files += 1;
        }
        ensure!(files > 0, "nothing was kept at all");
        Ok(())
    })
}
