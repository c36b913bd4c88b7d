//! The steps, in order. Each does something, waits for the event that must follow, and checks it.

use crate::tell::{Tell, time};
use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trimtab_system_tests::{
    Cluster, Host, Id, Line, Request, Room, copy_tree, objects, with_version, workspace,
};

/// The user that the audit log shows for the host.
const HOST: &str = "trimtab";
/// Lines of the host's log that are quoted as examples.
const EXAMPLES: usize = 3;

/// What the steps share.
struct Story {
    tell: Tell,
    cluster: Cluster,
    room: Room,
    host: Host,
    declared: Vec<Id>,
}

pub(crate) async fn tell() -> Result<()> {
    println!("Trimtab holds a Kubernetes API server to its declared state. Watch it do so.");
    let mut story = beginning().await?;
    story.observe().await?;
    story.grant().await?;
    story.correct().await?;
    story.follow().await?;
    story.replace_plugin().await?;
    story.refuse().await?;
    story.explain()?;
    story.end().await
}

/// A control plane, and a host with no plugin.
async fn beginning() -> Result<Story> {
    let mut tell = Tell::new();
    tell.step("A control plane starts: etcd and kube-apiserver, real ones, for this story alone");
    let cluster = Cluster::start(&|line| println!("    {line}")).await?;
    tell.say(format!("It answers at {} after {}.", cluster.server(), time(tell.elapsed())));

    tell.step("The host starts on an example application, with no plugin");
    let room = cluster.room(HOST)?;
    copy_tree(&workspace().join("examples/shop"), &room.source())?;
    let declared = objects(&room.source())?;
    let mut host = room.start()?;
    host.line("the host reads its source", 0, |line| {
        line.kind() == "source" && line.problems().is_empty()
    })
    .await?;
    host.says("no plugin claims").await?;
    let kinds: BTreeSet<&str> = declared.iter().map(|id| &*id.kind).collect();
    tell.say(format!(
        "examples/shop declares {} objects of {} kinds. Nobody is there to judge them, so the host \
         only watches.",
        declared.len(),
        kinds.len()
    ));
    Ok(Story { tell, cluster, room, host, declared })
}

impl Story {
    /// A plugin without a grant: it says what it would do.
    async fn observe(&mut self) -> Result<()> {
        self.tell.step("A plugin file is dropped into the plugin directory of the running host");
        self.room.drop_our_plugin("generic")?;
        self.plugin_is("generic.wasm", "observing", None).await?;
        // The one object whose kind the cluster does not know yet cannot be looked at.
        let seen: Vec<Id> =
            self.declared.iter().filter(|id| id.kind != "Campaign").cloned().collect();
        self.all_have(&seen, 0, "would be made", |line| line.outcome() == "observed").await?;
        self.tell.say(format!(
            "It is in service, and nobody has granted it anything: it observes. It would make {} \
             objects, for example:",
            seen.len()
        ));
        let log = self.host.log()?;
        let would = log.lines().filter_map(|line| line.split_once("would ")).take(EXAMPLES);
        self.tell.quote(&would.map(|(_, what)| format!("would {what}\n")).collect::<String>());
        let asked = self.cluster.audit().by(HOST).await?;
        let writes = asked.iter().filter(|request| request.writes()).count();
        ensure!(writes == 0, "an observing plugin wrote {writes} times");
        self.tell.say(format!(
            "The API server's audit log agrees: {} requests of the host, and none that writes.",
            asked.len()
        ));
        Ok(())
    }

    /// The grant: everything converges.
    async fn grant(&mut self) -> Result<()> {
        self.tell.step("The plugin is granted what it asks for");
        let grant = self.room.grant_of("generic.wasm", "enforce")?;
        self.tell.say("trimtab plugin grant generic.wasm --mode enforce --allow all prints:");
        let lines = grant.lines().filter(|line| !line.starts_with('#'));
        self.tell.quote(&lines.map(|line| format!("{line}\n")).collect::<String>());
        let (mark, start) = (self.host.journal().mark()?, Instant::now());
        self.room.grant("generic.wasm", &grant)?;
        let declared = self.declared.clone();
        self.all_have(&declared, mark, "is made", |line| line.outcome() == "created").await?;
        let took = start.elapsed();
        for id in &declared {
            self.cluster.api().require(id).await?;
        }
        let creates = self.cluster.audit().writes_by(HOST).await?;
        let creates = creates.iter().filter(|request| request.created()).count();
        ensure!(
            creates == declared.len(),
            "{creates} objects were made instead of {}",
            declared.len()
        );
        self.tell.say(format!(
            "All {creates} objects are there, each made once, {} after the file was written; the \
             kind Campaign was learnt on the way.",
            time(took)
        ));
        Ok(())
    }

    /// Three people change the cluster behind the host's back.
    async fn correct(&mut self) -> Result<()> {
        self.tell.step("People change the live cluster");
        let web = Id::new("apps/v1", "Deployment", "shop", "web");
        let (alice, bob, carol) =
            (self.cluster.user("alice")?, self.cluster.user("bob")?, self.cluster.user("carol")?);
        let image = "/spec/template/spec/containers/0/image";
        let declared = self.cluster.api().require(&web).await?.pointer(image).cloned();

        let mark = self.host.journal().mark()?;
        alice
            .edit(&web, |object| {
                object["spec"]["template"]["spec"]["containers"][0]["image"] =
                    "evil.example.com/miner:1".into()
            })
            .await?;
        let told = self.corrected(&web, mark, "corrected", Some("alice"), Instant::now()).await?;
        let live = self.cluster.api().require(&web).await?;
        ensure!(
            live.pointer(image) == declared.as_ref(),
            "the image is not the declared one again"
        );
        self.tell.say(format!("alice gives the Deployment web another image. {told}"));

        let config = Id::new("v1", "ConfigMap", "shop", "web");
        let mark = self.host.journal().mark()?;
        bob.merge(&config, &json!({"data": {"debug": "true"}})).await?;
        let told = self.corrected(&config, mark, "corrected", Some("bob"), Instant::now()).await?;
        let live = self.cluster.api().require(&config).await?;
        ensure!(live.pointer("/data/debug").is_none(), "the stray key is still there");
        self.tell.say(format!("bob adds a key to the ConfigMap web that nobody declared. {told}"));

        let service = Id::new("v1", "Service", "shop", "web");
        let before = self.cluster.api().require(&service).await?["metadata"]["uid"].clone();
        let mark = self.host.journal().mark()?;
        carol.delete(&service).await?;
        let told = self.corrected(&service, mark, "created", None, Instant::now()).await?;
        let after = self.cluster.api().require(&service).await?["metadata"]["uid"].clone();
        ensure!(before != after, "the Service has the same UID as before it was deleted");
        let audit = self.cluster.audit().writes_by("carol").await?;
        ensure!(
            audit.iter().any(|request| request.verb == "delete"),
            "the audit log shows no delete"
        );
        self.tell.say(format!(
            "carol deletes the Service web. {told} (What is gone names nobody; the API server's \
             audit log has carol.)"
        ));
        Ok(())
    }

    /// The declaration changes.
    async fn follow(&mut self) -> Result<()> {
        self.tell.step("The declared state changes on disk");
        let took =
            self.redeclare("replicas: 2", "replicas: 3", "/spec/replicas", &json!(3)).await?;
        self.tell.say(format!(
            "catalog/catalog.yaml asks for 3 replicas instead of 2: live follows after {}.",
            time(took)
        ));
        Ok(())
    }

    /// Another build of the plugin.
    async fn replace_plugin(&mut self) -> Result<()> {
        self.tell.step("The plugin is replaced by a newer build, without a restart");
        let newer = with_version(&self.room.built().plugin_bytes("generic")?, "0.9.0")?;
        self.room.drop_plugin("generic.wasm", &newer)?;
        self.plugin_is("generic.wasm", "observing", Some("0.9.0")).await?;
        self.tell
            .say("0.9.0 is in service. The grant was for the other file's digest, so it observes.");
        self.room.enforce("generic.wasm")?;
        self.plugin_is("generic.wasm", "enforcing", Some("0.9.0")).await?;
        let mark = self.host.journal().mark()?;
        let cart = Id::new("apps/v1", "Deployment", "shop", "cart");
        self.cluster.user("alice")?.merge(&cart, &json!({"spec": {"replicas": 0}})).await?;
        let told = self.corrected(&cart, mark, "corrected", Some("alice"), Instant::now()).await?;
        self.tell
            .say(format!("With a grant of its own it goes on: alice scales cart to 0. {told}"));
        Ok(())
    }

    /// A broken plugin and a broken manifest: refused, and everything else goes on.
    async fn refuse(&mut self) -> Result<()> {
        self.tell.step("A broken plugin and a broken manifest are dropped in");
        let whole = self.room.built().plugin_bytes("generic")?;
        let mark = self.host.journal().mark()?;
        self.room.drop_plugin("broken.wasm", &whole[..whole.len() / 2])?;
        self.room.declare(
            "web/broken.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: [web\n",
        )?;
        let refused = self.plugin_is("broken.wasm", "refused", None).await?;
        self.tell.say("The plugin file, cut in half, is refused:");
        self.tell.quote(&format!("broken.wasm: {refused}"));
        let source = self
            .host
            .line("the source is refused, naming web/broken.yaml", mark, |line| {
                line.problems().iter().any(|problem| problem.contains("web/broken.yaml"))
            })
            .await?;
        self.tell.say("The manifest is refused, and the last good state stays in force:");
        self.tell.quote(&source.problems().join("\n"));
        let mark = self.host.journal().mark()?;
        let service = Id::new("v1", "Service", "shop", "cart");
        self.cluster.user("carol")?.delete(&service).await?;
        let told = self.corrected(&service, mark, "created", None, Instant::now()).await?;
        self.tell.say(format!("Everything else goes on: carol deletes the Service cart. {told}"));
        self.room.withdraw("web/broken.yaml")?;
        std::fs::remove_file(self.room.plugins().join("broken.wasm"))?;
        let took =
            self.redeclare("replicas: 3", "replicas: 2", "/spec/replicas", &json!(2)).await?;
        self.tell.say(format!(
            "Both files are taken away, catalog is declared with 2 replicas again: live follows \
             after {}.",
            time(took)
        ));
        Ok(())
    }

    /// One object's whole story.
    fn explain(&mut self) -> Result<()> {
        self.tell.step("What happened to the Deployment web? trimtab audit explain Deployment/web");
        let text = self.room.explain(&["Deployment/web", "--namespace", "shop"])?;
        ensure!(text.contains("alice"), "the story of the Deployment web does not name alice");
        self.tell.quote(&text);
        Ok(())
    }

    /// A clean end.
    async fn end(mut self) -> Result<()> {
        self.tell.step("The host is told to stop (SIGTERM)");
        let mut writes = self.cluster.audit().writes_by(HOST).await?;
        writes.retain(Request::succeeded);
        let deletes = writes.iter().filter(|request| request.verb.starts_with("delete")).count();
        ensure!(deletes == 0, "the host deleted {deletes} objects");
        let start = Instant::now();
        let journal = self.room.journal();
        let status = self.host.stop().await?;
        ensure!(status.success(), "the host ended with {status}");
        ensure!(!journal.is_torn()? && journal.unreadable()?.is_empty(), "the journal is torn");
        self.tell.say(format!(
            "It ended after {} with status 0. In all it wrote {} times, deleted nothing, and every \
             write has its lines in the journal ({} lines).",
            time(start.elapsed()),
            writes.len(),
            journal.lines()?.len()
        ));
        self.cluster.shutdown().await;
        println!(
            "\nThe story took {}. Everything that it started is gone.",
            time(self.tell.elapsed())
        );
        Ok(())
    }

    /// Waits until the plugin list has this file in this state; gives the reason that it tells.
    async fn plugin_is(
        &mut self,
        file: &str,
        state: &str,
        version: Option<&str>,
    ) -> Result<String> {
        let room = &self.room;
        self.host
            .until(format!("{file} is {state}"), async |_| {
                let status = room.plugin_status(file)?;
                let is = status["state"] == state
                    && version.is_none_or(|version| status["version"] == version);
                ensure!(is, "the plugin list says {status}");
                Ok(status["reason"].as_str().unwrap_or_default().to_owned())
            })
            .await
    }

    /// Waits until each of these objects has such a line.
    async fn all_have(
        &mut self,
        ids: &[Id],
        mark: usize,
        what: &str,
        is: impl Fn(&Line) -> bool,
    ) -> Result<()> {
        self.host
            .until(format!("each of {} objects {what}", ids.len()), async |journal| {
                let lines: Vec<Arc<Line>> =
                    journal.lines()?.into_iter().skip(mark).filter(|line| is(line)).collect();
                let missing = ids.iter().find(|id| !lines.iter().any(|line| line.is_about(id)));
                missing.map_or(Ok(()), |id| Err(anyhow::anyhow!("not yet: {id}")))
            })
            .await
    }

    /// Waits for the pass that puts an object right, and says how it went.
    async fn corrected(
        &mut self,
        id: &Id,
        mark: usize,
        outcome: &str,
        by: Option<&str>,
        since: Instant,
    ) -> Result<String> {
        let line = self
            .host
            .line(format!("{id} is {outcome}"), mark, |line| {
                line.is_about(id) && line.outcome() == outcome
            })
            .await?;
        let seen = since.elapsed();
        ensure!(
            line.trigger() == "watch",
            "{id} was found by {:?} and not by the watch",
            line.trigger()
        );
        let ms = line.since_event_ms().context("the journal tells no time for it")?;
        let who = match by {
            Some(name) => {
                ensure!(
                    line.managers().contains(&name),
                    "{id}: attributed to {:?} and not to {name}",
                    line.managers()
                );
                format!("attributed to {name} at {}, ", line.paths().join(" and "))
            }
            None => String::new(),
        };
        let word = if outcome == "created" { "made again" } else { outcome };
        Ok(format!(
            "Found by the watch, {who}{word}: {ms:.0} ms from the watch event to the end of the \
             write, {} after the request was answered.",
            time(seen)
        ))
    }

    /// Changes a word in catalog.yaml and waits until the live Deployment follows.
    async fn redeclare(
        &mut self,
        old: &str,
        new: &str,
        pointer: &str,
        value: &serde_json::Value,
    ) -> Result<Duration> {
        let file = "catalog/catalog.yaml";
        let text = std::fs::read_to_string(self.room.source().join(file))?;
        ensure!(text.contains(old), "{file} does not say {old:?}");
        let id = Id::new("apps/v1", "Deployment", "shop", "catalog");
        let (mark, start) = (self.host.journal().mark()?, Instant::now());
        self.room.declare(file, &text.replace(old, new))?;
        self.host
            .line(format!("{id} follows its declaration"), mark, |line| {
                line.is_about(&id) && line.outcome() == "corrected" && line.trigger() == "source"
            })
            .await?;
        let took = start.elapsed();
        let live = self.cluster.api().require(&id).await?;
        ensure!(live.pointer(pointer) == Some(value), "{id} has not {pointer} {value}");
        Ok(took)
    }
}
