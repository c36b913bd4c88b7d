//! The API server as the oracle of our comparison: for thousands of generated pairs over every type
//! that the server keeps, we see no drift exactly where a dry run of server-side apply would change
//! nothing that desired states.
//!
//! A pair is a live object on the server and a desired one that is made from it by changes that the
//! schema directs (`mutate.rs`). `judge.rs` asks both judges, `tally.rs` counts, `exceptions.rs`
//! has the cases in which we are right to differ from the server, each with its argument.
//!
//! `others.rs` does the same for the definitions of real projects. What is random comes from a seed that is told: `TRIMTAB_ORACLE_SEED` repeats a run,
//! `TRIMTAB_ORACLE_PAIRS` makes it longer, `TRIMTAB_ORACLE_KIND` keeps it to one kind and
//! `TRIMTAB_ORACLE_REPORT` names a file for the table and all disagreements.

mod exceptions;
mod generate;
mod judge;
mod mutate;
mod others;
mod pairs;
pub(crate) mod random;
mod schema;
mod seeds;
mod tally;

pub(crate) use others::every_change_is_found;

use crate::world::{Test, run, say};
use anyhow::{Context as _, Result, bail, ensure};
use http::Method;
use judge::MANAGER;
use pairs::Pairs;
use random::Random;
use schema::{Document, Schema};
use seeds::Seed;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use tally::Tally;
use tokio::sync::{Mutex, Semaphore};
use tokio::task::JoinSet;
use trimtab_compare::facts;
use trimtab_system_tests::{Api, Cluster, Failure, PATIENCE, until};
use trimtab_wasm::{Plugin, Sandbox, SandboxOptions};

/// Pairs in `make test`.
const PAIRS: usize = 3000;
/// The seed, where none is given.
const SEED: u64 = 20_260_101;
/// Desired objects for each state of a live one.
const VARIANTS: usize = 12;
/// States of one live object, before another one is made from the seed.
const ROUNDS: usize = 4;
/// One pair in so many goes through the sandbox as well.
const SANDBOXED: usize = 4;
/// Requests at once.
const TOGETHER: usize = 8;

#[test]
fn no_drift_by_us_is_no_change_by_the_server_for_every_type_that_it_keeps() -> Test {
    run(async {
        let cluster = Cluster::start(&say).await?;
        let bench = Bench::new(&cluster).await?;
        let objects = seeds::objects()?;
        for object in &objects {
            if object["kind"] == "CustomResourceDefinition" {
                bench.ours.apply_by_force(object).await?;
            }
        }
        bench.published("oracle.test", "v1", &["Widget"]).await?;
        let mut seeds = seeds::place(&bench.ours, objects, seeds::NAMESPACE).await?;
        let count = seeds::complete(&bench.ours, &seeds).await?;
        // What defines a kind whose objects are judged is left as it is.
        seeds.retain(|seed| seed.object["metadata"]["name"] != "widgets.oracle.test");
        let told =
            bench.judge(seeds, number("TRIMTAB_ORACLE_PAIRS", PAIRS as u64) as usize).await?;
        report(&told, &format!("{count} kinds"))?;
        for exception in exceptions::ALL {
            let count = told.excepted.get(exception.name).copied().unwrap_or_default();
            say(&format!("oracle: {count} times {}: {}", exception.name, exception.why));
        }
        cluster.shutdown().await;
        Ok(())
    })
}

/// Tells what came of it; fails on a disagreement that no exception names.
fn report(tally: &Tally, what: &str) -> Result<()> {
    let table = tally.table();
    if let Some(file) = std::env::var_os("TRIMTAB_ORACLE_REPORT") {
        let told = tally.disagreements.join("\n");
        std::fs::write(file, format!("{table}\n{}\n{told}", tally.places()))?;
    }
    say(&format!(
        "oracle, {what}: {}",
        table.lines().filter(|line| line.starts_with("all")).collect::<Vec<_>>().join("\n")
    ));
    let first: Vec<_> = tally.disagreements.iter().take(20).cloned().collect();
    ensure!(
        first.is_empty(),
        "{} disagreements with the server, the first:\n{}\n{table}",
        tally.disagreements.len(),
        first.join("\n")
    );
    Ok(())
}

fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// What the pairs are judged with.
struct Bench {
    ours: Api,
    theirs: Api,
    plugin: Plugin,
    documents: Mutex<HashMap<String, Arc<Known>>>,
}

/// A group-version's document, and the facts of its kinds.
struct Known {
    document: Document,
    facts: std::sync::Mutex<HashMap<String, Arc<[u8]>>>,
    text: Vec<u8>,
}

impl Bench {
    /// For objects that are there already.
    fn bare(cluster: &Cluster) -> Result<Arc<Self>> {
        let (ours, theirs) = (cluster.user(MANAGER)?, cluster.user("mallory")?);
        let sandbox = Sandbox::new(SandboxOptions::default())?;
        let plugin = Plugin::load(&cluster.built().plugin_bytes("generic")?, &sandbox)?;
        Ok(Arc::new(Self { ours, theirs, plugin, documents: Mutex::default() }))
    }

    async fn new(cluster: &Cluster) -> Result<Arc<Self>> {
        let bench = Self::bare(cluster)?;
        let theirs = &bench.theirs;
        for namespace in [seeds::NAMESPACE, seeds::APART] {
            let object =
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            theirs.create(&object).await?;
            for account in ["default", "robot"] {
                let metadata = json!({"name": account, "namespace": namespace});
                theirs
                    .create(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}))
                    .await?;
            }
        }
        Ok(bench)
    }

    /// Waits until the document of a group-version describes these kinds.
    async fn published(&self, group: &str, version: &str, kinds: &[&str]) -> Result<()> {
        until(format!("{kinds:?} are published"), PATIENCE, async || {
            let path = format!("/openapi/v3/apis/{group}/{version}");
            let document = self.ours.send(Method::GET, &path, None, None).await?;
            let document = Document::new(document).context("no document")?;
            let all = kinds.iter().all(|kind| document.kind(group, version, kind).is_some());
            ensure!(all, "not yet");
            Ok(())
        })
        .await
    }

    async fn known(&self, seed: &Seed) -> Result<Arc<Known>> {
        let root = if seed.group.is_empty() {
            format!("api/{}", seed.version)
        } else {
            format!("apis/{}/{}", seed.group, seed.version)
        };
        let mut documents = self.documents.lock().await;
        if let Some(known) = documents.get(&root) {
            return Ok(known.clone());
        }
        let value = self.ours.send(Method::GET, &format!("/openapi/v3/{root}"), None, None).await?;
        let text = serde_json::to_vec(&value)?;
        let document = Document::new(value).with_context(|| format!("no document of {root}"))?;
        let known = Arc::new(Known { document, facts: Default::default(), text });
        documents.insert(root, known.clone());
        Ok(known)
    }

    /// Judges this many pairs, shared among the seeds by their size.
    async fn judge(self: &Arc<Self>, seeds: Vec<Seed>, pairs: usize) -> Result<Tally> {
        let (start, seed) = (Instant::now(), number("TRIMTAB_ORACLE_SEED", SEED));
        say(&format!("oracle: seed {seed}"));
        let random = Random::new(seed);
        let only = std::env::var("TRIMTAB_ORACLE_KIND").ok();
        let seeds: Vec<Seed> = seeds
            .into_iter()
            .filter(|it| only.as_ref().is_none_or(|only| *only == it.kind))
            .collect();
        let weight = |seed: &Seed| seed.object.to_string().len().clamp(300, 5000);
        let total: usize = seeds.iter().map(weight).sum();
        let turns = Arc::new(Semaphore::new(TOGETHER));
        let mut running = JoinSet::new();
        for seed in seeds {
            let (bench, turns) = (self.clone(), turns.clone());
            let count = (pairs * weight(&seed)).div_ceil(total).max(VARIANTS);
            let name =
                format!("{}/{} {}", seed.kind, seed.version, seed.object["metadata"]["name"]);
            let random = random.fork(&name);
            running.spawn(async move {
                let _turn = turns.acquire_owned().await;
                bench.seed(&seed, count, random).await.context(name)
            });
        }
        let mut tally = Tally::default();
        while let Some(ended) = running.join_next().await {
            tally.add(ended??);
        }
        say(&format!("oracle: took {:.1} s", start.elapsed().as_secs_f64()));
        Ok(tally)
    }

    /// All pairs of one seed.
    async fn seed(&self, seed: &Seed, pairs: usize, mut random: Random) -> Result<Tally> {
        let known = self.known(seed).await?;
        let schema = known
            .document
            .kind(&seed.group, &seed.version, &seed.kind)
            .with_context(|| format!("no schema of {}", seed.kind))?;
        let facts = known.facts(seed)?;
        let mut tally = Tally::default();
        let mut desired = seed.object.clone();
        let mut made = 0;
        let mut round = 0;
        while made < pairs {
            if round % ROUNDS == 0 {
                desired = seed.object.clone();
                rename(&mut desired, round / ROUNDS);
                let mut other = desired.clone();
                let _ = mutate::mutate(&mut other, &Value::Null, schema, &mut random);
                if round > 0 && self.apply(seed, &other, "").await?.is_ok() {
                    desired = other;
                } else if let Err(refusal) = self.apply(seed, &desired, "").await? {
                    bail!("the seed is refused: {refusal}");
                }
            }
            round += 1;
            // What somebody else does to it, now and then.
            if random.once_in(2) {
                self.interfere(seed, &desired, schema, &mut random).await?;
            }
            let live = self.get(seed, &desired).await?;
            let pair = Pairs { bench: self, seed, schema, facts: &facts, live: &live };
            let mut next = None;
            for _ in 0..VARIANTS.min(pairs - made) {
                let mut variant = desired.clone();
                let mutations = match random.below(5) {
                    0 => mutate::respelled(&mut variant, &live, schema, &mut random)
                        .into_iter()
                        .collect(),
                    1 => mutate::changed(&mut variant, schema, &mut random).into_iter().collect(),
                    _ => mutate::mutate(&mut variant, &live, schema, &mut random),
                };
                let drifted =
                    pair.judge(&variant, &mutations, &mut tally, random.once_in(SANDBOXED)).await?;
                if drifted && random.once_in(2) {
                    next = Some((variant, mutations));
                }
                made += 1;
            }
            // The correction of a drift leaves none.
            if let Some((variant, mutations)) = next
                && self.apply(seed, &variant, "").await?.is_ok()
            {
                let live = self.get(seed, &variant).await?;
                let pair = Pairs { live: &live, ..pair };
                pair.left(&variant, &mutations, &mut tally)?;
                desired = variant;
            }
        }
        Ok(tally)
    }

    /// Applies as ourselves; the answer, or the server's refusal.
    async fn apply(
        &self,
        seed: &Seed,
        desired: &Value,
        more: &str,
    ) -> Result<Result<Value, String>> {
        let path = format!(
            "{}?fieldManager={MANAGER}&force=true&fieldValidation=Strict{more}",
            seed.address(desired)
        );
        let patch = Some("application/apply-patch+yaml");
        for _ in 0..2 {
            let sent = self.ours.send(Method::PATCH, &path, patch, Some(desired)).await;
            if !self.hung_up(&sent).await? {
                return answer(sent);
            }
        }
        Ok(Err("the server closes the connection: its handler panics".into()))
    }

    /// Whether there was no answer at all, while the server is well: a handler that panics closes the
    /// connection, as it does for some schemas in definitions.
    async fn hung_up(&self, sent: &Result<Value>) -> Result<bool> {
        let none = sent.as_ref().is_err_and(|error| error.downcast_ref::<Failure>().is_none());
        if none {
            let ready = self.ours.send(Method::GET, "/readyz", None, None).await;
            ready.context("the server is gone")?;
        }
        Ok(none)
    }

    async fn get(&self, seed: &Seed, object: &Value) -> Result<Value> {
        self.ours.send(Method::GET, &seed.address(object), None, None).await
    }

    /// Changes the live object as somebody else; what the server refuses is left.
    async fn interfere(
        &self,
        seed: &Seed,
        desired: &Value,
        schema: Schema<'_>,
        random: &mut Random,
    ) -> Result<()> {
        let mut live = self.get(seed, desired).await?;
        if mutate::mutate(&mut live, &Value::Null, schema, random).is_empty() {
            return Ok(());
        }
        let path = format!("{}?fieldManager=mallory", seed.address(desired));
        let json = Some("application/json");
        let sent = self.theirs.send(Method::PUT, &path, json, Some(&live)).await;
        self.hung_up(&sent).await.map(drop)
    }
}

impl Known {
    fn facts(&self, seed: &Seed) -> Result<Arc<[u8]>> {
        let mut all = self.facts.lock().map_err(|_| anyhow::anyhow!("another test failed"))?;
        if let Some(facts) = all.get(&seed.kind) {
            return Ok(facts.clone());
        }
        let document = trimtab_json::parse(&self.text).map_err(|it| anyhow::anyhow!("{it}"))?;
        let facts = facts::build(&document, &seed.group, &seed.version, &seed.kind)?;
        let facts: Arc<[u8]> = facts.into();
        all.insert(seed.kind.clone(), facts.clone());
        Ok(facts)
    }
}

impl Seed {
    fn address(&self, object: &Value) -> String {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        format!("{}/{name}", self.collection)
    }
}

/// Another name, where the kind leaves it to us.
fn rename(object: &mut Value, number: usize) {
    let kind = object["kind"].as_str().unwrap_or_default();
    let fixed = matches!(kind, "CustomResourceDefinition" | "APIService" | "IPAddress");
    if number > 0 && !fixed {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        object["metadata"]["name"] = format!("{name}-{number}").into();
    }
}

/// The server's answer or its refusal; anything else is an error.
fn answer(answer: Result<Value>) -> Result<Result<Value, String>> {
    match answer {
        Ok(object) => Ok(Ok(object)),
        Err(error) => match error.downcast_ref::<Failure>() {
            // What the server is not to blame for, or too busy to say.
            Some(Failure { code: 429 | 503 | 504, .. }) | None => Err(error),
            Some(failure) => Ok(Err(failure.message.clone())),
        },
    }
}
