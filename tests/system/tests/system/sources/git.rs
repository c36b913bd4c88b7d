//! A repository of Git among the sources of a host: polled, asked at once, over a restart.

use super::{configure, done, listed, map, map_id, namespace, trimtab, until_listed};
use crate::world::{Test, pass, run, shared};
use anyhow::{Result, bail, ensure};
use serde_json::json;
use trimtab_system_tests::{PATIENCE, Repository, Room, until};

fn follow(room: &mut Room, repository: &Repository) -> Result<()> {
    let url = repository.folder().display();
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

        std::fs::rename(repository.folder(), room.path().join("away"))?;
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
fn what_is_asked_while_the_host_starts_is_answered() -> Test {
    run(async {
        let cluster = shared().await?;
        let mut room = cluster.room("src-asked")?.with_generic()?;
        let repository = Repository::new(&room.path().join("repository"))?;
        let id = repository.commit("clusters/prod/maps.yaml", &namespace("src-asked"))?;
        follow(&mut room, &repository)?;
        for _ in 0..5 {
            let host = room.start()?;
            let lock = room.state().join("lock");
            let held = async || -> Result<()> {
                let lock = std::fs::File::open(&lock)?;
                ensure!(lock.try_lock().is_err(), "no host holds it yet");
                Ok(())
            };
            until("the host holds its state directory", PATIENCE, held).await?;
            let said = done(&room, &["source", "sync", "infra", "--timeout", "40"])?;
            ensure!(said.contains(&id), "{said}");
            host.kill()?;
        }
        Ok(())
    })
}

#[test]
fn a_host_that_lost_its_state_directory_deletes_nothing_for_it_and_takes_no_step_back() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "src-lost";
        let mut room = cluster.room(name)?.with_generic()?;
        let repository = Repository::new(&room.path().join("repository"))?;
        let (one, two, three) = (map_id(name, "one"), map_id(name, "two"), map_id(name, "three"));
        let of = |names: &[&str]| {
            let maps: String = names.iter().map(|it| map(name, it, it)).collect();
            namespace(name) + &map(name, "stays", "stays") + &maps
        };
        let first = repository.commit("clusters/prod/maps.yaml", &of(&["one"]))?;
        let second = repository.commit("clusters/prod/maps.yaml", &of(&["one", "two"]))?;
        let url = repository.folder().display();
        configure(
            &mut room,
            &format!(
                "  - name: infra\n    git: {{url: \"file://{url}\", branch: main, path: clusters/prod}}\n    interval: 1h\n    prune: true\n"
            ),
        )?;
        let round = room.once().await?;
        ensure!(round.status == 0, "{}\n{}", round.summary, round.log);

        std::fs::remove_dir_all(room.state())?;
        // Somebody takes every field: what the inventory has is ours all the same.
        let stays = map_id(name, "stays");
        cluster.user("bob")?.merge(&stays, &json!({"data": {"value": "bobs"}})).await?;
        repository.git(&["reset", "--quiet", "--hard", &first])?;
        let mut host = room.start()?;
        until_listed(&mut host, &room, "infra", |it| {
            let problem = it["problem"]["message"].as_str().unwrap_or_default();
            problem.contains("source_stepped_back") && problem.contains(&second)
        })
        .await?;
        cluster.api().require(&two).await?;

        // Forward from what the cluster remembers; what is declared no more is still ours to delete.
        repository.git(&["reset", "--quiet", "--hard", &second])?;
        repository.commit("clusters/prod/maps.yaml", &of(&["two", "three"]))?;
        done(&room, &["source", "sync", "infra"])?;
        host.until("the new one is made and the old one deleted", async |_| {
            cluster.api().require(&three).await?;
            let live = cluster.api().require(&stays).await?;
            ensure!(live["data"]["value"] == "stays", "{live}");
            ensure!(cluster.api().get(&one).await?.is_none(), "it is there");
            Ok(())
        })
        .await?;
        cluster.api().require(&two).await?;
        let mut deletes = cluster.audit().writes_by(name).await?;
        deletes.retain(|request| request.verb.starts_with("delete"));
        ensure!(deletes.len() == 1 && deletes[0].name == "one", "{deletes:?}");
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
        let (_, plan, log) = room.plan(&[])?;
        ensure!(plan.contains("would be refused: ") && plan.contains("allow infra"), "{plan}{log}");

        let mark = host.journal().mark()?;
        done(&room, &["source", "allow", "infra", &first])?;
        pass(&mut host, mark, &one, "corrected").await?;
        ensure!(cluster.api().require(&one).await?["data"]["value"] == "one");
        ensure!(trimtab(&room, &["source", "allow", "infra", "main"])?.status == 2);
        Ok(())
    })
}
