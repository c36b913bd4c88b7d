//! Signatures: with `--require-signature`, whose word counts, and for exactly which bytes.

use crate::world::{APP_OBJECTS, Test, converged, prove_alive, room_with_app, run, shared};
use anyhow::{Context as _, Result, ensure};
use std::path::Path;
use trimtab_system_tests::{Room, with_version};

/// Runs `trimtab plugin …` and gives what it prints.
fn plugin(room: &Room, arguments: &[&Path]) -> Result<String> {
    let all: Vec<&std::ffi::OsStr> = std::iter::once("plugin".as_ref())
        .chain(arguments.iter().map(|argument| argument.as_os_str()))
        .collect();
    room.built().output(&all)
}

#[test]
fn an_unsigned_or_altered_file_is_refused_and_the_old_version_keeps_serving() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "signed";
        let mut room = room_with_app(cluster, name)?;
        let keys = room.path().join("keys");
        std::fs::create_dir(&keys)?;
        for who in ["alice", "mallory"] {
            plugin(&room, &["keygen".as_ref(), &room.path().join(who)])?;
        }
        std::fs::copy(room.path().join("alice.pub"), keys.join("alice.pub"))?;
        let file = room.plugins().join("generic.wasm");
        let sign = |who: &str| {
            let key = room.path().join(format!("{who}.key"));
            plugin(&room, &["sign".as_ref(), "--key".as_ref(), &key, &file])
        };
        sign("alice")?;
        let good = std::fs::read(&file)?;
        room.arguments = vec!["--require-signature".into(), keys.clone().into_os_string()];
        let mut host = converged(&room, APP_OBJECTS).await?;
        let status = room.plugin_status("generic.wasm")?;
        ensure!(status["signer"] == "alice", "the signer is to be shown: {status}");

        // A newer build with the older one's signature, then signed by somebody unknown.
        let newer = with_version(&good, "9.0.0")?;
        room.drop_plugin("generic.wasm", &newer)?;
        host.says("generic.wasm.minisig: it names the key of alice, and is not for this file")
            .await?;
        let sign = |who: &str| {
            let key = room.path().join(format!("{who}.key"));
            plugin(&room, &["sign".as_ref(), "--key".as_ref(), &key, &file])
        };
        sign("mallory")?;
        host.says("which is not among the required keys").await?;
        let status = room.plugin_status("generic.wasm")?;
        ensure!(status["version"] != "9.0.0", "the old version is to serve: {status}");
        std::fs::remove_file(room.plugins().join("generic.wasm.minisig"))?;
        host.says("it is not signed, and signatures are required").await?;
        prove_alive(cluster, &mut host, name).await?;

        // Signed by the right one it is taken up; a key that is taken away takes it out.
        sign("alice")?;
        host.until("the newer build serves", async |_| {
            let status = room.plugin_status("generic.wasm")?;
            (status["version"] == "9.0.0").then_some(()).context("not yet")
        })
        .await?;
        let other = std::fs::read(room.path().join("mallory.pub"))?;
        std::fs::write(keys.join("alice.pub"), other)?;
        host.says("out of service: the key of alice is gone").await?;
        host.until("it is listed as refused", async |_| {
            let status = room.plugin_status("generic.wasm")?;
            (status["state"] == "refused").then_some(()).context("not yet")
        })
        .await?;
        host.stop().await?;
        Ok(())
    })
}
