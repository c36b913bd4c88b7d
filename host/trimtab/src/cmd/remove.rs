//! `trimtab source remove`: what becomes of the objects of a source that is configured no more.
//!
//! From the inventory alone: no host, no plugin and no source is needed. With `--prune` its objects
//! are deleted in the order and under the rules of every pruning, numbers aside: whoever gives this
//! command means all of them. With `--orphan` they stay, and nobody remembers them.

use crate::cli::{ClusterArgs, runtime};
use crate::engine::read_sources;
use crate::journal::{self, JournalFile, PruneLine, PruneStep};
use crate::made::{self, Inventories, Kept, Shard};
use crate::plugins;
use crate::requests::is_running;
use anyhow::{Context as _, bail};
use clap::Args;
use std::collections::{BTreeSet, HashMap};
use std::io::{BufRead as _, IsTerminal as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trimtab_core::denial::Denial;
use trimtab_core::gate;
use trimtab_core::identity::{Digest, Gvk, ObjectKey};
use trimtab_core::inventory::Entry;
use trimtab_core::object::LiveObject;
use trimtab_core::ports::{ApplyError, Cluster as _, Written};
use trimtab_core::prune::{
    Contents, Limits, Plan, Rules, Seen, Situation, SourceState, Step, plan,
};
use trimtab_core::review;
use trimtab_core::terms::SourceTerms;
use trimtab_kube::{Store, Writer};

/// How often what goes on by itself is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Say what becomes of the objects of a source that is configured no more.
///
/// Exit status 1: something is left, and each object is named with the reason.
#[derive(Debug, Args)]
pub(crate) struct Remove {
    /// The source's name.
    name: String,
    /// Delete what was made for it.
    #[arg(long, conflicts_with = "orphan", required_unless_present = "orphan")]
    prune: bool,
    /// Leave everything in the cluster, and forget whose it was.
    #[arg(long)]
    orphan: bool,
    /// Kinds that take a second word to be deleted, by the words of grants: rbac, definitions, …
    #[arg(long, value_name = "WORD", value_delimiter = ',', value_parser = denial)]
    allow: Vec<Denial>,
    /// Delete what is held under this digest too: a namespace or definition with what others have
    /// in it. May be given several times.
    #[arg(long, value_name = "DIGEST", value_parser = digest)]
    approve: Vec<Digest>,
    /// Delete though policies review what the host writes: this command asks none.
    #[arg(long)]
    despite_policies: bool,
    /// Without asking.
    #[arg(long)]
    yes: bool,
    /// How long to wait for deletions that go on, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    timeout: u64,
    /// State directory, for the journal and to see that no host has the source.
    #[arg(long, value_name = "DIR", default_value = ".trimtab")]
    state: PathBuf,
    /// Namespace of the inventory.
    #[arg(long, value_name = "NAME", default_value = made::NAMESPACE)]
    inventory_namespace: String,
    #[command(flatten)]
    cluster: ClusterArgs,
}

fn denial(word: &str) -> Result<Denial, String> {
    let known: Vec<&str> = Denial::ALL.iter().map(|denial| denial.as_str()).collect();
    Denial::parse(word).ok_or_else(|| format!("is none of {}", known.join(", ")))
}

fn digest(text: &str) -> Result<Digest, String> {
    Digest::parse(text).ok_or_else(|| "is not sha256: and 64 hexadecimal digits".into())
}

impl Remove {
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        if is_running(&self.state) {
            let sources = read_sources(&self.state)?.sources;
            if sources.iter().any(|source| source.name == self.name) {
                bail!(
                    "the host that runs on {} follows source {:?}: take it out of its configuration first",
                    self.state.display(),
                    self.name
                );
            }
        }
        let status = plugins::read_status(&self.state).unwrap_or_default();
        let enforcing =
            |plugin: &&plugins::FileStatus| plugin.policy.as_deref() == Some("enforcing");
        if let Some(policy) = status.plugins.iter().find(enforcing)
            && self.prune
            && !self.despite_policies
        {
            bail!(
                "policy {} reviews what the host of {} writes, and this command has no plugins: have the host prune (empty the source before it leaves the configuration), or delete unreviewed with --despite-policies",
                policy.name,
                self.state.display()
            );
        }
        runtime()?.block_on(self.remove())
    }

    async fn remove(self) -> anyhow::Result<u8> {
        let server = super::connect(&self.cluster).await?;
        let (store, _events) = Store::start(server, trimtab_kube::Options::default());
        store.refresh_discovery().await.context("what the API server serves cannot be read")?;
        let namespace: Arc<str> = self.inventory_namespace.as_str().into();
        let mut all = made::read(&store, &namespace).await.map_err(anyhow::Error::msg)?;
        let source: Arc<str> = self.name.as_str().into();
        let Some(kept) = all.remove(&source) else {
            bail!(
                "namespace {namespace} has no inventory of a source {:?}: nothing was made for it, or its inventory is in another namespace (--inventory-namespace)",
                self.name
            );
        };
        if let Some(why) = &kept.corrupt
            && self.prune
        {
            bail!("{why}: nothing can be pruned by it; --orphan takes it away");
        }
        let writer = Writer::new(store.clone());
        if self.orphan {
            let count = kept.inventory.len();
            self.confirm(&format!(
                "leave {count} objects in the cluster, and forget that source {source} made them?"
            ))?;
            made::discard(&writer, &namespace, &source, &kept).await?;
            println!("{count} objects of source {source} stay in the cluster and are nobody's");
            return Ok(0);
        }
        std::fs::create_dir_all(&self.state)
            .with_context(|| format!("--state {}", self.state.display()))?;
        let terms = SourceTerms {
            prune: true,
            deletion: Rules {
                allow: self.allow.iter().copied().collect(),
                limits: Limits {
                    percent: 100,
                    number: usize::MAX,
                    all_of_a_kind_from: usize::MAX,
                    ..Limits::default()
                },
            },
            ..SourceTerms::default()
        };
        let mut removal = Removal {
            journal: JournalFile::open(&self.state, journal::Limits::default())?,
            store,
            writer,
            namespace,
            others: all,
            kept,
            terms,
            seen: HashMap::new(),
            kinds: HashMap::new(),
            contents: HashMap::new(),
            refused: HashMap::new(),
        };
        removal.read().await;
        let first = removal.plan();
        print_plan(&first, &HashMap::new());
        self.confirm(&format!("delete these objects of source {source}?"))?;
        let left = removal.carry_out(&self.approve, Duration::from_secs(self.timeout)).await;
        removal.journal.close()?;
        let left = left?;
        if left.steps.is_empty() {
            println!("nothing of source {source} is left");
            return Ok(0);
        }
        println!("left of source {source}, and still in its inventory:");
        print_plan(&left, &removal.refused);
        Ok(1)
    }

    fn confirm(&self, question: &str) -> anyhow::Result<()> {
        if self.yes {
            return Ok(());
        }
        if !std::io::stdin().is_terminal() {
            bail!("nothing was done: give --yes once it is meant");
        }
        eprint!("{question} [y/N] ");
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer).context("cannot read the answer")?;
        if !matches!(answer.trim(), "y" | "Y" | "yes") {
            bail!("nothing was done");
        }
        Ok(())
    }
}

/// A removal under way.
struct Removal {
    journal: JournalFile,
    store: Store,
    writer: Writer,
    namespace: Arc<str>,
    /// Inventories of other sources: what they have is theirs.
    others: Inventories,
    kept: Kept,
    terms: SourceTerms,
    seen: HashMap<ObjectKey, Seen>,
    kinds: HashMap<ObjectKey, Gvk>,
    contents: HashMap<ObjectKey, Contents>,
    refused: HashMap<ObjectKey, String>,
}

impl Removal {
    async fn read(&mut self) {
        let keys: Vec<ObjectKey> = self.kept.inventory.iter().map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.read_one(&key).await;
        }
    }

    async fn read_one(&mut self, key: &ObjectKey) {
        let (gvk, seen) = self.store.read_now(key).await;
        self.seen.insert(key.clone(), seen);
        self.kinds.extend(gvk.map(|gvk| (key.clone(), gvk)));
    }

    fn plan(&self) -> Plan {
        let now = Situation {
            inventory: &self.kept.inventory,
            state: &SourceState::Removed,
            declares: 0,
            terms: &self.terms,
            seen: &self.seen,
            contents: &self.contents,
        };
        plan(&now, |key| {
            let has = |kept: &Kept| kept.inventory.get(key).is_some_and(|it| it.uid.is_some());
            self.others.iter().find(|(_, kept)| has(kept)).map(|(source, _)| source.clone())
        })
    }

    /// Does what can be done; gives what is left.
    async fn carry_out(&mut self, approve: &[Digest], timeout: Duration) -> anyhow::Result<Plan> {
        let start = Instant::now();
        loop {
            let plan = self.plan();
            for (key, step) in &plan.steps {
                if let Step::Forget(why) = step {
                    if why != "it is gone" {
                        println!("{key}: {why}");
                    }
                    self.kept.inventory.remove(key);
                }
            }
            for held in plan.held.iter().filter(|held| approve.contains(&held.digest)) {
                for key in &held.keys {
                    if let Some(entry) = self.kept.inventory.get(key).cloned() {
                        self.kept.inventory.set(key, Entry { approved: held.allows, ..entry });
                    }
                }
            }
            let to_do = |(key, step): &&(ObjectKey, Step)| {
                matches!(step, Step::Delete | Step::Look) && !self.refused.contains_key(key)
            };
            let approved = plan.held.iter().any(|held| approve.contains(&held.digest));
            match plan.steps.iter().find(to_do).cloned() {
                Some((key, Step::Look)) => self.look_into(&key).await,
                Some((key, _)) => self.delete(&key).await?,
                None if approved => {}
                None => {
                    let goes: Vec<ObjectKey> = plan
                        .steps
                        .iter()
                        .filter(|(_, step)| matches!(step, Step::Going(_)))
                        .map(|(key, _)| key.clone())
                        .collect();
                    if goes.is_empty() || start.elapsed() > timeout {
                        break;
                    }
                    tokio::time::sleep(LOOK_EVERY).await;
                    for key in goes {
                        self.read_one(&key).await;
                    }
                }
            }
        }
        self.keep().await?;
        let mut left = self.plan();
        left.steps.retain(|(_, step)| !matches!(step, Step::Forget(_)));
        Ok(left)
    }

    async fn look_into(&mut self, key: &ObjectKey) {
        let Some(Seen::Live(live)) = self.seen.get(key).cloned() else { return };
        let contents = self.store.contents(key, &live).await;
        self.contents.insert(key.clone(), contents);
    }

    async fn delete(&mut self, key: &ObjectKey) -> anyhow::Result<()> {
        let (Some(Seen::Live(live)), Some(gvk), Some(entry)) =
            (self.seen.get(key).cloned(), self.kinds.get(key), self.kept.inventory.get(key))
        else {
            self.refused.insert(key.clone(), "it is not known any more".into());
            return Ok(());
        };
        let draft = match gate::prune(&self.terms, key, gvk, entry, &live) {
            Ok(draft) => draft,
            Err(refusal) => {
                self.refused.insert(key.clone(), refusal.to_string());
                return Ok(());
            }
        };
        let reviewed = review::by_hand(draft);
        self.journal.prune(self.line(key, PruneStep::Deleting, String::new()))?;
        let (step, message) = match self.writer.write(&gate::change(reviewed)).await {
            Ok(Written::Deleted) => {
                self.seen.insert(key.clone(), Seen::Absent);
                println!("deleted {key}");
                (PruneStep::Deleted, String::new())
            }
            Ok(Written::Object(json)) => {
                if let Some(live) = LiveObject::read(json) {
                    self.seen.insert(key.clone(), Seen::Live(live));
                }
                println!("deleting {key}");
                (PruneStep::Going, String::new())
            }
            Err(ApplyError::Stale(why)) => {
                self.read_one(key).await;
                (PruneStep::Failed, why)
            }
            Err(error) => {
                self.refused.insert(key.clone(), format!("prune_failed: {error}"));
                (PruneStep::Failed, error.to_string())
            }
        };
        Ok(self.journal.prune(self.line(key, step, message))?)
    }

    fn line(&self, key: &ObjectKey, step: PruneStep, message: String) -> PruneLine {
        let entry = self.kept.inventory.get(key);
        PruneLine {
            object: key.into(),
            step,
            message,
            source: self.kept.inventory.source().to_string(),
            revision: String::new(),
            uid: entry.and_then(|entry| entry.uid.as_ref()).map(ToString::to_string),
            reviews: Vec::new(),
        }
    }

    /// Leaves in the cluster what is still to be remembered.
    async fn keep(&mut self) -> anyhow::Result<()> {
        let source = self.kept.inventory.source().clone();
        if self.kept.inventory.is_empty() {
            return made::discard(&self.writer, &self.namespace, &source, &self.kept).await;
        }
        for index in self.kept.inventory.changed() {
            let text = self.kept.inventory.take(index);
            let seen = self.kept.lies.get(&index).cloned();
            let shard = Shard { source: source.clone(), index, text, seen };
            match made::write(&self.writer, &self.namespace, &shard).await {
                Ok(live) => {
                    self.kept.lies.insert(index, live);
                }
                Err(made::NotWritten::Moved) => {
                    bail!(
                        "somebody else writes the inventory of source {source}: is a host running?"
                    )
                }
                Err(made::NotWritten::Failed(why)) => bail!(why),
            }
        }
        Ok(())
    }
}

fn print_plan(plan: &Plan, refused: &HashMap<ObjectKey, String>) {
    if let Some(why) = &plan.stopped {
        println!("{why}");
    }
    let mut held = BTreeSet::new();
    for (key, step) in &plan.steps {
        let text = match step {
            Step::Delete | Step::Look => match refused.get(key) {
                Some(why) => why.clone(),
                None => "is deleted".into(),
            },
            Step::Wait(why) => format!("is deleted later: {why}"),
            Step::Going(what) => what.clone(),
            Step::Held(it) => {
                held.insert(it.digest);
                format!("is held: {}", it.reason)
            }
            Step::Keep(why) => format!("stays: {why}"),
            Step::Forget(why) => format!("is forgotten: {why}"),
        };
        println!("  {key}: {text}");
    }
    for digest in held {
        println!("  --approve {digest} deletes what is held so");
    }
}
