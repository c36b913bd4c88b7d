//! A log that was cut off together with its copies is found by the checkpoint in the cluster.

use crate::world::{APP_OBJECTS, Test, converged, prove_alive, room_with_app, run, shared};
use anyhow::{Context as _, Result, ensure};
use trimtab_system_tests::Room;

/// Exit status of `trimtab audit verify` of this room, and what it prints.
fn verify(room: &Room, in_cluster: bool) -> Result<(i32, String)> {
    let mut command = std::process::Command::new(std::path::absolute(&room.built().trimtab)?);
    command.args(["audit", "verify", "--state"]).arg(room.state());
    if in_cluster {
        let kubeconfig = room.kubeconfig.as_ref().context("the room has a kubeconfig")?;
        command.args(["--cluster", "--inventory-namespace", &room.inventory(), "--kubeconfig"]);
        command.arg(kubeconfig);
    }
    let output = command.output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let status = output.status.code().context("ended by a signal")?;
    Ok((status, text(&output.stdout) + &text(&output.stderr)))
}

/// Cuts a file of lines off behind the line with this number.
fn cut(room: &Room, file: &str, seq: u64) -> Result<()> {
    let path = room.state().join(file);
    let text = std::fs::read_to_string(&path)?;
    let kept = text.lines().filter(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
        line["seq"].as_u64().is_some_and(|it| it <= seq)
    });
    let kept: String = kept.map(|line| format!("{line}\n")).collect();
    std::fs::write(path, kept)?;
    Ok(())
}

#[test]
fn a_log_that_is_cut_off_with_its_copies_is_found_by_the_checkpoint_in_the_cluster() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "vouched";
        let room = room_with_app(cluster, name)?;
        let host = converged(&room, APP_OBJECTS).await?;
        host.stop().await?;
        let earlier = room.verify_audit()?;
        let mut host = room.start()?;
        prove_alive(cluster, &mut host, name).await?;
        host.stop().await?;
        let (status, told) = verify(&room, true)?;
        ensure!(status == 0, "it is whole: {told}");

        // Back to the state before the second run: whole by itself, and by its copies here.
        let seq = earlier["last"].as_u64().context("the first run's last line")?;
        for file in ["journal.jsonl", "audit.checkpoints.jsonl"] {
            cut(&room, file, seq)?;
        }
        let (status, told) = verify(&room, false)?;
        ensure!(status == 0, "nothing here shows it: {told}");
        let (status, told) = verify(&room, true)?;
        ensure!(status == 1 && told.contains("checkpoint-in-the-cluster"), "{status}: {told}");

        // Where no checkpoint of this key is, that is an error and not "whole".
        let wrong = std::process::Command::new(std::path::absolute(&room.built().trimtab)?)
            .args(["audit", "verify", "--cluster", "--inventory-namespace", "default"])
            .arg("--kubeconfig")
            .arg(room.kubeconfig.as_ref().context("a kubeconfig")?)
            .arg("--state")
            .arg(room.state())
            .output()?;
        ensure!(wrong.status.code() == Some(2), "{wrong:?}");
        Ok(())
    })
}
