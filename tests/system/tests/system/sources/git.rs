//! A repository of Git among the sources of a host: polled, asked at once, over a restart.

use super::{configure, done, listed, map, map_id, namespace, trimtab, until_listed};
use crate::world::{Test, pass, run, shared};
use anyhow::{Result, bail, ensure};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;
use trimtab_system_tests::Room;

/// A repository made by Git itself.
struct Repository(PathBuf);

impl Repository {
    fn new(folder: &Path) -> Result<Self> {
        std::fs::create_dir(folder)?;
        let repository = Self(folder.to_owned());
        repository.git(&["init", "--quiet", "--initial-branch", "main"])?;
        Ok(repository)
    }

    fn git(&self, arguments: &[&str]) -> Result<String> {
        let output = Command::new("git")
            .current_dir(&self.0)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com"])
            .args(arguments)
            .output()?;
        if !output.status.success() {
            bail!("git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Commits this file; the commit's id.
    fn commit(&self, file: &str, text: &str) -> Result<String> {
        let path = self.0.join(file);
        std::fs::create_dir_all(path.parent().unwrap_or(&self.0))?;
        std::fs::write(path, text)?;
        self.git(&["add", "-A"])?;
        self.git(&["commit", "--quiet", "-m", file])?;
        self.git(&["rev-parse", "HEAD"])
    }
}

fn follow(room: &mut Room, repository: &Repository) -> Result<()> {
    let url = repository.0.display();
    configure(
        room,
        &format!(
            "  - name: infra\n    git: {{url: \"file://{url}\", branch: main, path: clusters/prod}}\n    interval: 1h\n"
        ),
    )
}

#[test]
fn a_commit_is_applied_at_once_when_somebody_asks_and_the_last_one_survives_a_restart() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "src-git";
        let mut room = cluster.room(name)?.with_generic()?;
        let repository = Repository::new(&room.path().join("repository"))?;
        let of = |value: &str| namespace(name) + &map(name, "one", value);
        let first = repository.commit("clusters/prod/maps.yaml", &of("one"))?;
        follow(&mut room, &repository)?;
        let one = map_id(name, "one");
        let mut host = room.start()?;
        let line = pass(&mut host, 0, &one, "created").await?;
        ensure!(line.0["revision"] == first.as_str(), "{line:?}");
        let entry = listed(&room, "infra")?;
        ensure!(entry["author"].as_str().is_some_and(|it| it.contains("Ada")), "{entry}");

        let mark = host.journal().mark()?;
        let second = repository.commit("clusters/prod/maps.yaml", &of("two"))?;
        let said = done(&room, &["source", "sync", "infra"])?;
        ensure!(said.contains(&second), "{said}");
        pass(&mut host, mark, &one, "corrected").await?;
        ensure!(cluster.api().require(&one).await?["data"]["value"] == "two");
        let story = room.explain(&["ConfigMap/one", "-n", name])?;
        ensure!(story.matches("by Ada <ada@example.com> as it says").count() == 2, "{story}");

        // Asked for and not to be had: the command says so, and what is in force stays.
        repository.commit("clusters/prod/broken.yaml", "kind: [\n")?;
        let said = trimtab(&room, &["source", "sync", "infra"])?;
        ensure!(said.status == 2 && said.err.contains("broken.yaml"), "{}", said.err);
        ensure!(said.err.contains(&second), "{}", said.err);
        host.stop().await?;

        std::fs::rename(&repository.0, room.path().join("away"))?;
        cluster.user("bob")?.merge(&one, &json!({"data": {"value": "bobs"}})).await?;
        let mark = room.journal().mark()?;
        let mut host = room.start()?;
        pass(&mut host, mark, &one, "corrected").await?;
        ensure!(cluster.api().require(&one).await?["data"]["value"] == "two");
        until_listed(&mut host, &room, "infra", |it| {
            it["fromBefore"] == true && it["revision"] == second.as_str()
        })
        .await?;
        Ok(())
    })
}

#[test]
fn a_step_back_in_history_waits_until_a_person_allows_that_commit() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "src-back";
        let mut room = cluster.room(name)?.with_generic()?;
        let repository = Repository::new(&room.path().join("repository"))?;
        let of = |value: &str| namespace(name) + &map(name, "one", value);
        let first = repository.commit("clusters/prod/maps.yaml", &of("one"))?;
        repository.commit("clusters/prod/maps.yaml", &of("two"))?;
        follow(&mut room, &repository)?;
        let one = map_id(name, "one");
        let mut host = room.start()?;
        pass(&mut host, 0, &one, "created").await?;

        repository.git(&["reset", "--quiet", "--hard", &first])?;
        let said = trimtab(&room, &["source", "sync", "infra"])?;
        ensure!(said.status == 2 && said.err.contains("source allow infra"), "{}", said.err);
        ensure!(cluster.api().require(&one).await?["data"]["value"] == "two");
        host.until("the step back is found", async |_| {
            let found = room.findings(&["--name", "trust"])?;
            let [found] = &found[..] else { bail!("found is {found:?}") };
            ensure!(found["source"] == "infra" && found["severity"] == "critical", "{found}");
            ensure!(found["evidence"]["sort"] == "stepped-back", "{found}");
            Ok(())
        })
        .await?;

        let mark = host.journal().mark()?;
        done(&room, &["source", "allow", "infra", &first])?;
        pass(&mut host, mark, &one, "corrected").await?;
        ensure!(cluster.api().require(&one).await?["data"]["value"] == "one");
        ensure!(trimtab(&room, &["source", "allow", "infra", "main"])?.status == 2);
        Ok(())
    })
}
