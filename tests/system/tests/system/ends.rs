//! How a host may end: told to, or killed at any moment.

use crate::world::{Test, creations, none, run, shared};
use anyhow::{Context as _, Result, bail, ensure};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::{Duration, Instant};
use trimtab_system_tests::{Cluster, Host, Id, Journal, Request, Room};

/// ConfigMaps beside the namespace: enough that a converge has a middle.
const CONFIG_MAPS: usize = 30;

fn many(namespace: &str) -> String {
    let mut text = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}\n");
    for index in 0..CONFIG_MAPS {
        let _ = write!(
            text,
            "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{index:02}, namespace: {namespace}}}\n\
             data: {{index: \"{index}\"}}\n"
        );
    }
    text
}

fn room_with_many(cluster: &Cluster, name: &str) -> Result<Room> {
    let room = cluster.room(name)?.with_generic()?;
    room.declare("many.yaml", &many(name))?;
    Ok(room)
}

/// Everything is there and was made once. An object that is there and was never deleted was made
/// exactly once; the audit log must say so too, but for a write whose answer met a dead host.
async fn all_made_once(cluster: &Cluster, name: &str) -> Result<()> {
    let api = cluster.api();
    api.require(&Id::new("v1", "Namespace", "", name)).await?;
    for index in 0..CONFIG_MAPS {
        let object =
            api.require(&Id::new("v1", "ConfigMap", name, &format!("c{index:02}"))).await?;
        let text = index.to_string();
        ensure!(object["data"]["index"].as_str() == Some(&*text), "{object}");
    }
    let writes = cluster.audit().writes_by(name).await?;
    let deletes: Vec<Request> =
        writes.iter().filter(|request| request.verb.starts_with("delete")).cloned().collect();
    none("the host deleted", &deletes)?;
    let made = creations(cluster, name).await?;
    ensure!(made.values().all(|count| *count == 1), "made more than once: {made:?}");
    let cut_off = |object: &String| {
        writes.iter().any(|it| it.object() == *object && !(200..300).contains(&it.code))
    };
    let objects: BTreeSet<String> = writes.iter().map(Request::object).collect();
    ensure!(objects.len() == CONFIG_MAPS + 1, "{} objects were written", objects.len());
    let untold: Vec<&String> =
        objects.iter().filter(|it| !made.contains_key(*it) && !cut_off(it)).collect();
    ensure!(untold.is_empty(), "there without having been made: {untold:?}");
    Ok(())
}

#[test]
fn sigterm_in_the_middle_of_a_converge_ends_cleanly_and_the_journal_is_whole() -> Test {
    run(async {
        let cluster = shared().await?;
        let name = "sigterm";
        let room = room_with_many(cluster, name)?;
        let host = room.start()?;
        reach(&room.journal(), Moment::Intents(5)).await?;
        let status = host.stop().await?;
        ensure!(status.code() == Some(0), "the host ended with {status}");
        let journal = room.journal();
        ensure!(!journal.is_torn()? && journal.unreadable()?.is_empty(), "the journal is torn");
        let lines = journal.lines()?;
        let [.., last, checkpoint] = &lines[..] else { bail!("two lines at least") };
        ensure!(last.kind() == "host" && last.0["event"] == "stopped", "it ends with {last:?}");
        ensure!(checkpoint.kind() == "checkpoint", "after it comes {checkpoint:?}");
        let verdict = room.verify_audit()?;
        ensure!(verdict["covered"] == last.0["seq"], "not all is vouched for: {verdict}");
        for intent in lines.iter().filter(|line| line.kind() == "intent") {
            let object = intent.object();
            let ended = lines.iter().any(|line| line.kind() == "pass" && line.object() == object);
            ensure!(ended, "the write of {object} was announced and its end is not told");
        }
        let round = room.once().await?;
        ensure!(round.status == 0, "status {}: {}\n{}", round.status, round.summary, round.log);
        all_made_once(cluster, name).await
    })
}

/// When to kill.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// The journal tells of the start.
    Started,
    /// Just after this many intents.
    Intents(usize),
    /// Just after this many objects were made.
    Made(usize),
}

#[test]
fn killed_at_any_moment_and_started_again_it_ends_in_the_same_state_with_each_object_made_once()
-> Test {
    use Moment::{Intents, Made, Started};
    let moments = [
        Started,
        Intents(1),
        Intents(2),
        Intents(3),
        Made(1),
        Intents(8),
        Made(5),
        Intents(17),
        Made(16),
        Intents(25),
        Made(CONFIG_MAPS),
    ];
    run(async {
        let cluster = shared().await?;
        for (index, moment) in moments.into_iter().enumerate() {
            let name = format!("killed-{index}");
            let room = room_with_many(cluster, &name)?;
            let host: Host = room.start()?;
            reach(&room.journal(), moment).await?;
            host.kill()?;
            let round = room.once().await?;
            let wrong = format!("killed at {moment:?}: {}\n{}", round.summary, round.log);
            ensure!(round.status == 0, "status {}, {wrong}", round.status);
            all_made_once(cluster, &name).await.map_err(|error| error.context(wrong))?;
            room.verify_audit().with_context(|| format!("killed at {moment:?}"))?;
        }
        Ok(())
    })
}

/// Looks as often as it can: these moments are short.
async fn reach(journal: &Journal, moment: Moment) -> Result<()> {
    let start = Instant::now();
    while start.elapsed() < trimtab_system_tests::PATIENCE {
        let lines = journal.lines()?;
        let reached = match moment {
            Moment::Started => !lines.is_empty(),
            Moment::Intents(n) => lines.iter().filter(|line| line.kind() == "intent").count() >= n,
            Moment::Made(n) => lines.iter().filter(|line| line.outcome() == "created").count() >= n,
        };
        if reached {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_micros(200)).await;
    }
    bail!("{moment:?} was not reached")
}

/// Seven objects that need each other, declared in an order in which nothing could be made.
fn ordered(name: &str) -> String {
    let map = |map: &str, needs: &str| {
        let annotations = match needs {
            "" => String::new(),
            other => format!(", annotations: {{trimtab.dev/depends-on: ConfigMap/{other}}}"),
        };
        format!(
            "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {map}, namespace: {name}{annotations}}}\n"
        )
    };
    let kind = format!(
        "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition
metadata: {{name: parts.{name}.example.com}}
spec:
  group: {name}.example.com
  scope: Namespaced
  names: {{kind: Part, singular: part, plural: parts}}
  versions:
    - {{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {{type: object}}}}}}
"
    );
    [
        format!(
            "apiVersion: {name}.example.com/v1\nkind: Part\nmetadata: {{name: part, namespace: {name}}}\n"
        ),
        map("last", "next"),
        map("next", "base"),
        map("base", ""),
        format!(
            "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: account, namespace: {name}}}\n"
        ),
        kind,
        format!("---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n"),
    ]
    .concat()
}

#[test]
fn killed_between_any_two_writes_of_an_ordered_apply_it_ends_in_order_with_no_orphan_and_no_double()
-> Test {
    const OBJECTS: usize = 7;
    run(async {
        let cluster = shared().await?;
        for intents in 0..=OBJECTS {
            let name = format!("ordered-{intents}");
            let room = cluster.room(&name)?.with_generic()?;
            room.declare("all.yaml", &ordered(&name))?;
            let host = room.start()?;
            let moment = if intents == 0 { Moment::Started } else { Moment::Intents(intents) };
            reach(&room.journal(), moment).await?;
            host.kill()?;
            let round = room.once().await?;
            let wrong = format!("killed after {intents} intents: {}\n{}", round.summary, round.log);
            ensure!(round.status == 0, "{wrong}");
            // An object that is there and was never deleted was made once.
            let writes = cluster.audit().writes_by(&name).await?;
            let deletes: Vec<Request> =
                writes.iter().filter(|it| it.verb.starts_with("delete")).cloned().collect();
            none("the host deleted", &deletes)?;
            let made = creations(cluster, &name).await?;
            ensure!(made.values().all(|count| *count == 1), "{made:?}, {wrong}");
            let first = |object: &str| {
                let found = writes.iter().position(|it| it.name == object);
                found.with_context(|| format!("{object} was never written, {wrong}"))
            };
            let definition = format!("parts.{name}.example.com");
            for (before, after) in [
                (&*name, "part"),
                (&name, "base"),
                (&name, "account"),
                (&definition, "part"),
                ("base", "next"),
                ("next", "last"),
            ] {
                ensure!(first(before)? < first(after)?, "{after} before {before}, {wrong}");
            }
            let known = crate::prune::inventory(cluster, &room).await?;
            ensure!(
                known.len() == OBJECTS && known.values().all(|uid| !uid.is_empty()),
                "{known:?}, {wrong}\n{}",
                room.journal().text()?
            );
        }
        Ok(())
    })
}
