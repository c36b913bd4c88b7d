//! A year in the life of a repository, at random: commits of every kind, force-pushes, broken and
//! unsigned revisions, cut lines, kills, lost state, edits by others, suspensions and mass deletions.
//!
//! What has to hold, whatever happened (`check.rs`): the cluster is what the last acceptable revision
//! declares, by a model of our own (`model.rs`); the inventory is the cluster; each deletion in the
//! API server's audit log was announced while an accepted commit did not declare the object, and so
//! many at once only after a person allowed it; nobody else's object was touched.
//!
//! A history is a seed. `TRIMTAB_YEAR_SEEDS=1000..1100` runs these, `TRIMTAB_YEAR_STEPS=200` with so
//! many steps each; a failure names its seed and the steps before it.

mod act;
mod check;
mod model;

use crate::oracle::random::Random;
use crate::world::{Test, run, say, shared};
use anyhow::{Context as _, Result, ensure};
use futures::StreamExt as _;
use model::{Commit, History, Part, SOURCES};
use serde_json::Value;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trimtab_system_tests::{Cluster, GitServer, Host, Id, Line, Repository, Room};

/// Steps of a history, unless somebody says otherwise.
const STEPS: usize = 60;
/// Seeds of CI's share: each showed a defect of the host once.
const SEEDS: [u64; 3] = [4, 15, 21];
/// How long a command of a person may be refused while the host starts.
const PATIENCE: Duration = Duration::from_secs(60);

/// One history under way.
struct Year<'c> {
    cluster: &'c Cluster,
    room: Room,
    host: Option<Host>,
    server: GitServer,
    repository: Repository,
    namespaces: Vec<String>,
    history: History,
    random: Random,
    /// Numbers that were not used yet.
    next: usize,
    /// The journal of state directories that were lost.
    past: Vec<Arc<Line>>,
    /// Objects of others, each with its UID.
    foreign: Vec<(Id, String)>,
    /// What a person allowed to be deleted: source and object.
    approved: BTreeSet<(usize, Id)>,
    /// How long the journal was when each source was suspended.
    suspended: [Option<usize>; 2],
    audit_mark: u64,
    /// What was done, for whoever has to understand a failure.
    done: Vec<String>,
}

impl<'c> Year<'c> {
    async fn new(cluster: &'c Cluster, seed: u64) -> Result<Self> {
        let name = format!("year-{seed}");
        let mut room = cluster.room(&name)?.with_generic()?;
        let repository = Repository::signed(&room.path().join("repository"))?;
        let server = GitServer::of(room.path())?;
        let sources: String = SOURCES
            .iter()
            .map(|source| {
                format!(
                    "  - name: {source}
    interval: 1s
    prune: true
    git:
      url: {}
      branch: main
      path: {source}
      plainHttp: true
      timeout: 10s
      verify: {{mode: every, allowedSigners: {}}}
",
                    server.address("repository/.git"),
                    repository.signers().display()
                )
            })
            .collect();
        let config = room.path().join("config.yaml");
        let head = "apiVersion: trimtab.dev/v1alpha1\nkind: Config\nsources:\n";
        std::fs::write(&config, format!("{head}{sources}"))?;
        room.config = Some(config);
        let mut year = Self {
            cluster,
            room,
            host: None,
            server,
            repository,
            namespaces: ["x", "y", "z"].iter().map(|it| format!("{name}-{it}")).collect(),
            history: History::default(),
            random: Random::new(seed),
            next: 0,
            past: Vec::new(),
            foreign: Vec::new(),
            approved: BTreeSet::new(),
            suspended: [None; 2],
            audit_mark: cluster.audit().mark().await?,
            done: Vec::new(),
        };
        let first = year.first_parts();
        year.commit(first, true, None)?;
        year.host = Some(year.room.start()?);
        year.settle().await.context("the first revision")?;
        Ok(year)
    }

    fn first_parts(&mut self) -> [Part; 2] {
        let mut parts = [Part::default(), Part::default()];
        for namespace in self.namespaces.clone() {
            let id = Id::new("v1", "Namespace", "", &namespace);
            let declared = self.declared();
            parts[0].objects.insert(id, declared);
        }
        for part in &mut parts {
            for _ in 0..14 {
                self.add_to(part);
            }
        }
        parts
    }

    /// Makes a commit of this, on the branch or on another commit, and moves the branch there.
    fn commit(&mut self, mut parts: [Part; 2], signed: bool, on: Option<usize>) -> Result<()> {
        // Nobody finalises namespaces on this control plane: they leave with all of it, or never.
        if let Some(first) = self.history.commits.first()
            && !parts[0].objects.is_empty()
        {
            for (id, declared) in &first.parts[0].objects {
                if id.kind == "Namespace" {
                    parts[0].objects.entry(id.clone()).or_insert_with(|| declared.clone());
                }
            }
        }
        if let Some(on) = on {
            self.rewind(on)?;
        }
        for (source, part) in SOURCES.iter().zip(&parts) {
            let folder = self.repository.folder().join(source);
            let _ = std::fs::remove_dir_all(&folder);
            for (name, text) in part.files() {
                let path = folder.join(name);
                std::fs::create_dir_all(path.parent().context("a folder")?)?;
                std::fs::write(path, text)?;
            }
        }
        let number = self.history.commits.len();
        let id = self.repository.commit_all(&format!("number {number}"), signed)?;
        let parent = (number > 0).then_some(self.history.head);
        self.history.commits.push(Commit { id, parent, signed, parts });
        self.history.head = number;
        Ok(())
    }

    /// Moves the branch to a commit that was made before.
    fn rewind(&mut self, to: usize) -> Result<()> {
        self.repository.git(&["reset", "--quiet", "--hard", &self.history.commits[to].id])?;
        self.history.head = to;
        Ok(())
    }

    /// All lines of the journal, those of lost state directories first.
    fn lines(&self) -> Result<Vec<Arc<Line>>> {
        let mut all = self.past.clone();
        all.extend(self.room.journal().lines()?);
        Ok(all)
    }

    /// Runs a command of `trimtab source` on the host: whether it was done, and what it said.
    async fn source(&self, arguments: &[&str]) -> Result<(bool, String)> {
        let state = self.room.state();
        let output = tokio::process::Command::new(std::path::absolute(&self.room.built().trimtab)?)
            .arg("source")
            .args(arguments)
            .arg("--state")
            .arg(state)
            .stdin(std::process::Stdio::null())
            .output()
            .await?;
        let text = [output.stdout, output.stderr].concat();
        Ok((output.status.success(), String::from_utf8_lossy(&text).into_owned()))
    }

    /// The same until it is done: the host may be starting.
    async fn source_done(&self, arguments: &[&str]) -> Result<String> {
        let start = Instant::now();
        loop {
            match self.source(arguments).await? {
                (true, text) => return Ok(text),
                (false, text) => {
                    ensure!(start.elapsed() < PATIENCE, "source {arguments:?}: {text}")
                }
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// How the host says that a source stands.
    fn listed(&self, source: usize) -> Result<Value> {
        let text = std::fs::read_to_string(self.room.state().join("sources.json"))?;
        let list: Value = serde_json::from_str(&text)?;
        let mut all = list["sources"].as_array().into_iter().flatten();
        all.find(|it| it["name"] == SOURCES[source]).cloned().context("it is not listed")
    }

    async fn steps(&mut self, count: usize) -> Result<()> {
        for _ in 0..count {
            self.step().await?;
            let pause = self.random.below(200) as u64;
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
        self.finish().await
    }
}

/// One history to its end.
async fn live(seed: u64, steps: usize) -> Result<usize> {
    let cluster = shared().await?;
    let mut year = Year::new(cluster, seed).await?;
    let ended = year.steps(steps).await;
    let commits = year.history.commits.len();
    if ended.is_err() {
        keep(&year);
    }
    ended.with_context(|| {
        let from = year.done.len().saturating_sub(25);
        format!("seed {seed}, {steps} steps, the last of them:\n{}", year.done[from..].join("\n"))
    })?;
    Ok(commits)
}

/// Leaves what is needed to understand a failure, where somebody asks for it.
fn keep(year: &Year<'_>) {
    let Some(folder) = std::env::var_os("TRIMTAB_YEAR_KEEP") else { return };
    let to = std::path::Path::new(&folder).join(year.room.user());
    let _ = trimtab_system_tests::copy_tree(year.room.path(), &to);
    let _ = std::fs::write(to.join("steps"), year.done.join("\n"));
    say(&format!("what is left of {} is in {}", year.room.user(), to.display()));
}

/// `FROM..TO`, or one number.
fn seeds(text: &str) -> Result<Range<u64>> {
    let (from, to) = match text.split_once("..") {
        Some((from, to)) => (from.parse()?, to.parse()?),
        None => (text.parse()?, text.parse::<u64>()? + 1),
    };
    Ok(from..to)
}

#[test]
fn whatever_happens_in_a_year_the_cluster_is_the_last_acceptable_revision_and_nothing_else_is_deleted()
-> Test {
    run(async {
        let variable = |name: &str| std::env::var(name).ok();
        let seeds: Vec<u64> = match variable("TRIMTAB_YEAR_SEEDS") {
            Some(text) => seeds(&text).context("TRIMTAB_YEAR_SEEDS: FROM..TO")?.collect(),
            None => SEEDS.into(),
        };
        let steps = variable("TRIMTAB_YEAR_STEPS").map_or(Ok(STEPS), |text| text.parse())?;
        let start = Instant::now();
        // As many at once as a small machine bears: each has a host of its own.
        let histories = seeds.iter().map(|seed| async move { (seed, live(*seed, steps).await) });
        let mut ended = futures::stream::iter(histories).buffer_unordered(3);
        let (mut commits, mut failed) = (0, Vec::new());
        while let Some((seed, result)) = ended.next().await {
            match result {
                Ok(count) => commits += count,
                Err(error) => {
                    say(&format!("seed {seed}: {error:#}"));
                    failed.push(*seed);
                }
            }
        }
        say(&format!(
            "{} histories of {steps} steps, {commits} commits, {:.0} s; failed: {failed:?}",
            seeds.len(),
            start.elapsed().as_secs_f64()
        ));
        ensure!(failed.is_empty(), "these seeds fail: {failed:?}");
        Ok(())
    })
}
