//! What has to hold: at rest of the cluster, and at any time of what was written.

use super::Year;
use super::model::{KINDS, Part, SOURCES, VALUE, is_mass};
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use trimtab_system_tests::{GitLine, Id, Line};

/// How long the host may take until all is as it has to be: other histories go on meanwhile.
const PATIENCE: Duration = Duration::from_secs(120);

impl Year<'_> {
    /// With the line open and nothing suspended, waits until the cluster is what it has to be.
    pub(super) async fn settle(&mut self) -> Result<()> {
        self.server.set(GitLine::Open);
        self.resume().await?;
        let start = Instant::now();
        loop {
            match self.look().await {
                Ok(()) => break,
                Err(not_yet) if start.elapsed() >= PATIENCE => {
                    let problems: Vec<Value> =
                        (0..2).filter_map(|it| self.listed(it).ok()).collect();
                    bail!(
                        "it does not come to rest: {not_yet:#}\nthe host says: {problems:?}\nseen: {:?}",
                        self.told_last()?
                    )
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(300)).await,
            }
        }
        self.is_lawful().await
    }

    /// The last lines of the journal, for messages.
    fn told_last(&self) -> Result<Vec<String>> {
        let lines = self.lines()?;
        let from = lines.len().saturating_sub(5);
        let shown = |line: &Arc<Line>| line.0.to_string().chars().take(400).collect();
        Ok(lines[from..].iter().map(shown).collect())
    }

    /// What each source had in force last, by the journal; each step to it was a good one.
    pub(super) fn in_force(&self) -> Result<[Option<usize>; 2]> {
        let mut in_force = [None; 2];
        for line in self.lines()? {
            self.follow(&mut in_force, &line.0)?;
        }
        Ok(in_force)
    }

    fn follow(&self, in_force: &mut [Option<usize>; 2], line: &Value) -> Result<()> {
        let Some(revision) = line["revision"].as_str().filter(|_| line["type"] == "source") else {
            return Ok(());
        };
        let source = SOURCES.iter().position(|it| line["source"] == *it).context("which source")?;
        let next = self.history.find(revision).context("a commit that nobody made")?;
        let step = self.history.may_follow(source, in_force[source], next);
        step.map_err(|why| anyhow::anyhow!("in force for {}: {why}", SOURCES[source]))?;
        in_force[source] = Some(next);
        Ok(())
    }

    /// The inventory of a source: UIDs.
    pub(super) async fn inventory(&self, source: usize) -> Result<BTreeMap<Id, String>> {
        let mut found = BTreeMap::new();
        let home = self.room.inventory();
        for object in self.cluster.api().list("v1", "ConfigMap").await? {
            let metadata = &object["metadata"];
            let is_ours = metadata["namespace"] == *home
                && metadata["labels"]["trimtab.dev/inventory"] == SOURCES[source];
            let Some(text) = object["data"]["inventory"].as_str().filter(|_| is_ours) else {
                continue;
            };
            let shard: Value = serde_json::from_str(text)?;
            for entry in shard["entries"].as_array().context("entries")? {
                let text = |index: usize| entry[index].as_str().unwrap_or_default().to_owned();
                let id = Id::new("v1", &text(1), &text(2), &text(3));
                ensure!(found.insert(id.clone(), text(4)).is_none(), "{id} is there twice");
            }
        }
        Ok(found)
    }

    /// What was made for a source and is not declared by what is in force of it.
    pub(super) async fn undeclared(&self, source: usize) -> Result<BTreeSet<Id>> {
        let part = self.in_force()?[source].map(|at| self.part(at, source).clone());
        let declared = part.unwrap_or_default().objects;
        let inventory = self.inventory(source).await?;
        Ok(inventory.into_keys().filter(|id| !declared.contains_key(id)).collect())
    }

    fn part(&self, commit: usize, source: usize) -> &Part {
        &self.history.commits[commit].parts[source]
    }

    /// What is in the history's namespaces and not somebody else's, with the namespaces.
    async fn live(&self) -> Result<BTreeMap<Id, Value>> {
        let mut live = BTreeMap::new();
        for kind in KINDS.iter().chain(&["Namespace"]) {
            for mut object in self.cluster.api().list("v1", kind).await? {
                object["apiVersion"] = "v1".into();
                object["kind"] = (*kind).into();
                let id = Id::of(&object).context("an object without a name")?;
                let place = if *kind == "Namespace" { &id.name } else { &id.namespace };
                if self.namespaces.contains(place) && !self.foreign.iter().any(|it| it.0 == id) {
                    live.insert(id, object);
                }
            }
        }
        Ok(live)
    }

    /// Whether all is as it has to be.
    async fn look(&self) -> Result<()> {
        let head = self.history.head;
        let mut stopped = [false; 2];
        let mut silent = [false; 2];
        let mut declared: [BTreeMap<Id, usize>; 2] = [BTreeMap::new(), BTreeMap::new()];
        for source in 0..2 {
            let name = SOURCES[source];
            let (_, said) = self.source(&["sync", name]).await?;
            let in_force = self.in_force()?[source].context("nothing is in force yet")?;
            let is_taken = in_force == head;
            let must = self.history.must_follow(source, Some(in_force), head);
            ensure!(is_taken || !must, "source {name} is at {in_force} and not {head}: {said}");
            let listed = self.listed(source)?;
            // Its mirror was lost while nothing better could be had.
            let served = listed["revision"] == self.history.commits[in_force].id;
            ensure!(served || listed["revision"].is_null() && !is_taken, "{listed}");
            (stopped[source], silent[source]) = (!is_taken, !served);
            if served {
                let objects = self.part(in_force, source).objects.iter();
                declared[source] = objects.map(|(id, it)| (id.clone(), it.value)).collect();
            }
        }
        let [a, b] = &declared;
        let inventories = [self.inventory(0).await?, self.inventory(1).await?];
        let mut both: BTreeSet<&Id> = a.keys().filter(|id| b.contains_key(id)).collect();
        // What a source has of which nothing is in force goes to no other.
        for source in (0..2).filter(|source| silent[1 - source]) {
            let theirs = |id: &&Id| {
                inventories[1 - source].contains_key(*id) && !inventories[source].contains_key(*id)
            };
            both.extend(declared[source].keys().filter(theirs));
        }
        let live = self.live().await?;
        for (id, value) in a.iter().chain(b).filter(|(id, _)| !both.contains(id)) {
            let object = live.get(id).with_context(|| format!("{id} is declared and not there"))?;
            is_as_declared(id, object, *value)?;
        }
        let mut made: BTreeSet<&Id> = BTreeSet::new();
        for source in 0..2 {
            let inventory = &inventories[source];
            let all: BTreeSet<&Id> = inventory.keys().collect();
            let is_approved = |id: &Id| self.approved.contains(&(source, id.clone()));
            let left: BTreeSet<&Id> =
                all.iter().copied().filter(|id| !declared[source].contains_key(id)).collect();
            let open = left.iter().copied().filter(|id| !is_approved(id)).collect();
            let closed = stopped[source] || declared[source].is_empty() || !both.is_empty();
            ensure!(
                left.is_empty() || closed || is_mass(&open, &all) || is_mass(&left, &all),
                "{} of source {} are to be deleted: {left:?}",
                left.len(),
                SOURCES[source]
            );
            for (id, uid) in inventory {
                match live.get(id) {
                    Some(object) => {
                        // Killed when it had made it; nobody looks at what is not declared now.
                        let is_open = uid.is_empty() && closed && left.contains(id);
                        let same = object["metadata"]["uid"] == **uid;
                        ensure!(same || is_open, "{id}: {uid:?}, {object}");
                    }
                    // Somebody deleted it, and nobody looks at what is not declared now.
                    None if closed && left.contains(id) => {}
                    None => bail!("{id} is in the inventory and not there"),
                }
            }
            made.extend(inventory.keys());
        }
        let unknown: Vec<&Id> = live.keys().filter(|id| !made.contains(*id)).collect();
        ensure!(unknown.is_empty(), "{unknown:?} are there and not in the inventory");
        Ok(())
    }

    /// What was written was allowed: each revision in force, each deletion, and others' objects.
    async fn is_lawful(&self) -> Result<()> {
        let mut in_force = [None; 2];
        let mut reigns: [BTreeSet<Id>; 2] = Default::default();
        let mut announced: BTreeMap<Id, usize> = BTreeMap::new();
        // Since the host's start: of a source whose mirror was lost nothing may be in force.
        let mut served = [false; 2];
        for line in self.lines()? {
            self.follow(&mut in_force, &line.0)?;
            if line.kind() == "host" && line.0["event"] == "started" {
                served = [false; 2];
            }
            let source = SOURCES.iter().position(|it| line.0["source"] == *it);
            let Some(source) = source else { continue };
            if line.kind() == "source" && line.0["revision"].is_string() {
                reigns[source].clear();
                served[source] = true;
            }
            if line.kind() != "prune" || line.0["step"] != "deleting" {
                continue;
            }
            let object = &line.0["object"];
            let text = |key: &str| object[key].as_str().unwrap_or_default();
            let id = Id::new("v1", text("kind"), text("namespace"), text("name"));
            for (other, at) in in_force.iter().enumerate() {
                let declares = served[other]
                    && at.is_some_and(|at| self.part(at, other).objects.contains_key(&id));
                ensure!(
                    !declares,
                    "{id} is deleted for {source} and {other} declares it: {line:?}"
                );
            }
            *announced.entry(id.clone()).or_default() += 1;
            if self.approved.contains(&(source, id.clone())) {
                continue;
            }
            let at = in_force[source].context("a deletion before anything was in force")?;
            let declared = self.part(at, source).objects.len();
            let reign = &mut reigns[source];
            reign.insert(id);
            let count = reign.len();
            ensure!(
                declared > 0 && (count < 5 || count * 100 <= 30 * (declared + count)),
                "{count} deletions for {} with {declared} declared, and nobody allowed them: {reign:?}",
                SOURCES[source]
            );
        }
        let mut asked: BTreeMap<Id, usize> = BTreeMap::new();
        let user = self.room.user();
        for request in self.cluster.audit().writes_since(self.audit_mark, user).await? {
            if !request.verb.starts_with("delete") {
                continue;
            }
            let kind = KINDS
                .iter()
                .chain(&["Namespace"])
                .find(|kind| format!("{}s", kind.to_ascii_lowercase()) == request.resource);
            let kind = kind.with_context(|| format!("nobody declared such: {request:?}"))?;
            let id = Id::new("v1", kind, &request.namespace, &request.name);
            let count = asked.entry(id.clone()).or_default();
            *count += 1;
            ensure!(announced.get(&id) >= Some(count), "not announced: {request:?}");
        }
        for (id, uid) in &self.foreign {
            let object = self.cluster.api().require(id).await.context("an object of bob's")?;
            ensure!(object["metadata"]["uid"] == **uid, "{object}");
            ensure!(
                object["metadata"]["managedFields"]
                    .as_array()
                    .is_some_and(|all| { all.iter().all(|it| it["manager"] == "bob") }),
                "{object}"
            );
        }
        Ok(())
    }

    /// A last good revision: all of it, and nothing else, once a person allowed what is held.
    pub(super) async fn finish(&mut self) -> Result<()> {
        self.settle().await.context("at the end")?;
        let [Some(a), Some(b)] = self.in_force()? else { bail!("nothing is in force") };
        let head = self.history.head;
        let may = |at: usize| {
            let line = self.history.line(head);
            line.contains(&at)
                && line
                    .iter()
                    .take_while(|it| **it != at)
                    .all(|it| self.history.commits[*it].signed)
        };
        let on = if may(a) && may(b) { head } else { a };
        self.rewind(on)?;
        let mut parts = self.history.head().parts.clone();
        for source in 0..2 {
            self.mend(source, &mut parts);
            self.add_to(&mut parts[source]);
        }
        self.commit(parts, true, None)?;
        let head = self.history.head;
        for (source, before) in [a, b].into_iter().enumerate() {
            if !self.history.must_follow(source, Some(before), head) {
                self.history.allowed.insert((source, head));
                let id = self.history.head().id.clone();
                self.source_done(&["allow", SOURCES[source], &id]).await?;
            }
        }
        self.settle().await.context("a last good revision")?;
        ensure!(self.in_force()? == [Some(head); 2], "the last revision is not in force");
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            let left: usize = self.undeclared(0).await?.len() + self.undeclared(1).await?.len();
            if left == 0 {
                return self.settle().await.context("when all is allowed");
            }
            self.approve().await?;
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        bail!(
            "not deleted although it is allowed: {:?} {:?}; the host says {:?}",
            self.undeclared(0).await?,
            self.undeclared(1).await?,
            (self.listed(0)?, self.listed(1)?)
        )
    }
}

fn is_as_declared(id: &Id, object: &Value, value: usize) -> Result<()> {
    let label = &object["metadata"]["labels"][VALUE];
    ensure!(*label == format!("v{value}"), "{id} is {label} and not v{value}");
    if id.kind == "ConfigMap" {
        let text = object["data"][VALUE].as_str();
        ensure!(text == Some(&*value.to_string()), "{id}: {}", object["data"]);
    }
    Ok(())
}
