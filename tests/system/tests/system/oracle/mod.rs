//! The API server as the oracle of our comparison: for thousands of generated pairs over every type
//! that the server keeps, we see no drift exactly where a dry run of server-side apply would change
//! nothing that desired states.
//!
//! A pair is a live object on the server and a desired one that is made from it by changes that the
//! schema directs (`mutate.rs`). `judge.rs` asks both judges, `tally.rs` counts, `exceptions.rs`
//! has the cases in which we are right to differ from the server, each with its argument.
//!
//! What is random comes from a seed that is told: `TRIMTAB_ORACLE_SEED` repeats a run,
//! `TRIMTAB_ORACLE_PAIRS` makes it longer, `TRIMTAB_ORACLE_KIND` keeps it to one kind and
//! `TRIMTAB_ORACLE_REPORT` names a file for the table and all disagreements.

mod exceptions;
mod generate;
mod judge;
mod mutate;
mod random;
mod schema;
mod seeds;
mod tally;

use crate::world::{Test, run, say};
use anyhow::{Context as _, Result, bail, ensure};
use http::Method;
use judge::{MANAGER, Ours};
use random::Random;
use schema::{Document, Schema};
use seeds::Seed;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tally::{Case, Tally, Wrong};
use tokio::sync::{Mutex, Semaphore};
use tokio::task::JoinSet;
use trimtab_compare::{Kind, facts};
use trimtab_json::Path;
use trimtab_system_tests::{Api, Cluster, Failure, PATIENCE, objects_in, until, workspace};
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
/// How often something is made up before it counts as not to be had.
const TRIES: usize = 60;
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

#[test]
fn no_drift_by_us_is_no_change_by_the_server_for_the_definitions_of_others() -> Test {
    let folder = corpus();
    if !folder.is_dir() {
        say(&format!(
            "skipped: {} is not there (real manifests, beside the checkout)",
            folder.display()
        ));
        return Ok(());
    }
    run(async {
        let cluster = Cluster::start(&say).await?;
        let bench = Bench::new(&cluster).await?;
        let mut random = Random::new(number("TRIMTAB_ORACLE_SEED", SEED));
        let (mut seeds, mut without) = (Vec::new(), Vec::new());
        for definition in objects_in(&folder)? {
            if definition["kind"] == "CustomResourceDefinition" {
                bench.ours.apply_by_force(&definition).await?;
                for kind in bench.made_up(&definition, &mut random).await? {
                    match kind {
                        Ok(seed) => seeds.push(seed),
                        Err(why) => without.push(why),
                    }
                }
            }
        }
        for why in &without {
            say(&format!("oracle: none of {TRIES} made-up objects is valid: {why}"));
        }
        ensure!(seeds.len() > without.len(), "too few kinds: {without:#?}");
        let what = format!("{} kinds of others, {} without", seeds.len(), without.len());
        let pairs = number("TRIMTAB_ORACLE_PAIRS", PAIRS as u64) as usize / 3;
        report(&bench.judge(seeds, pairs).await?, &what)?;
        cluster.shutdown().await;
        Ok(())
    })
}

/// Real manifests, beside the checkout.
fn corpus() -> PathBuf {
    workspace().join("../shared/corpus")
}

/// For each of these objects, which were applied as declared: nothing differs; one meaningful change
/// of a stated value is found, where it is; and one mere respelling is no difference. Gives how many
/// objects have a value that could be changed.
///
/// # Errors
/// One for which it is not so.
pub(crate) async fn every_change_is_found(
    cluster: &Cluster,
    objects: Vec<Value>,
    namespace: &str,
) -> Result<usize> {
    let bench = Bench::bare(cluster)?;
    let random = Random::new(number("TRIMTAB_ORACLE_SEED", SEED));
    let seeds = seeds::place(&bench.ours, objects, namespace).await?;
    let mut count = 0;
    for seed in seeds {
        let name = format!("{} {}", seed.kind, seed.object["metadata"]["name"]);
        count += usize::from(bench.found(&seed, random.fork(&name)).await.context(name)?);
    }
    Ok(count)
}

/// Tells what came of it; fails on a disagreement that no exception names.
fn report(tally: &Tally, what: &str) -> Result<()> {
    let table = tally.table();
    if let Some(file) = std::env::var_os("TRIMTAB_ORACLE_REPORT") {
        std::fs::write(file, format!("{table}\n{}", tally.disagreements.join("\n")))?;
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

    /// One valid object of each served version that a definition has.
    async fn made_up(
        &self,
        definition: &Value,
        random: &mut Random,
    ) -> Result<Vec<Result<Seed, String>>> {
        let text = |pointer: &str| {
            definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let (group, kind, plural) =
            (text("/spec/group"), text("/spec/names/kind"), text("/spec/names/plural"));
        let mut all = Vec::new();
        for version in definition["spec"]["versions"].as_array().into_iter().flatten() {
            let name = version["name"].as_str().unwrap_or_default();
            if version["served"] != true {
                continue;
            }
            self.published(&group, name, &[&kind]).await?;
            let mut seed = Seed {
                object: Value::Null,
                group: group.clone(),
                version: name.to_owned(),
                kind: kind.clone(),
                collection: match definition["spec"]["scope"] == "Namespaced" {
                    true => {
                        format!("/apis/{group}/{name}/namespaces/{}/{plural}", seeds::NAMESPACE)
                    }
                    false => format!("/apis/{group}/{name}/{plural}"),
                },
            };
            let document = self
                .ours
                .send(Method::GET, &format!("/openapi/v3/apis/{group}/{name}"), None, None)
                .await?;
            let document = Document::new(document).context("no document")?;
            let schema = document.kind(&group, name, &kind).context("no schema")?;
            let mut last = String::new();
            for _ in 0..TRIES {
                let mut object = generate::object(schema, random);
                object.insert("apiVersion".into(), format!("{group}/{name}").into());
                object.insert("kind".into(), kind.clone().into());
                object.insert("metadata".into(), json!({"name": format!("made-up-{name}")}));
                seed.object = object.into();
                match self.apply(&seed, &seed.object, "").await? {
                    Ok(_) => {
                        last.clear();
                        break;
                    }
                    Err(refusal) => last = refusal,
                }
            }
            let refused = !last.is_empty();
            all.push(if refused { Err(format!("{kind} {name}: {last}")) } else { Ok(seed) });
        }
        Ok(all)
    }

    /// See [`every_change_is_found`].
    async fn found(&self, seed: &Seed, mut random: Random) -> Result<bool> {
        let known = self.known(seed).await?;
        let schema = known.document.kind(&seed.group, &seed.version, &seed.kind);
        let schema = schema.context("the server's document does not describe it")?;
        let facts = known.facts(seed)?;
        let live = self.get(seed, &seed.object).await?;
        let seen = |desired: &Value| match judge::ours(desired, &live, &facts)? {
            Ours::Differences(seen) => Ok(seen),
            Ours::Invalid(what) => bail!("desired is called invalid: {what}"),
        };
        let told = seen(&seed.object)?;
        ensure!(told.is_empty(), "it was applied, and differs: {told:?}");
        let mut respelled = seed.object.clone();
        if let Some(how) = mutate::respelled(&mut respelled, &live, schema, &mut random) {
            let told = seen(&respelled)?;
            ensure!(told.is_empty(), "{how} is a difference: {told:?}");
        }
        for _ in 0..TRIES {
            let mut changed = seed.object.clone();
            let how = mutate::changed(&mut changed, schema, &mut random);
            // Some state nothing but their name.
            let Some(how) = how else { return Ok(false) };
            let paths = judge::changes(&seed.object, &changed, schema);
            // What a controller aggregates is not judged; two elements with one key are an error.
            let aggregated = changed["aggregationRule"].is_object() && how.contains(" /rules");
            let Ok(told) = seen(&changed) else { continue };
            if aggregated {
                continue;
            }
            let found = |path: &Path| told.iter().any(|seen| judge::touch(&seen.path, path));
            let meant =
                |seen: &judge::Seen| paths.iter().any(|path| judge::touch(&seen.path, path));
            ensure!(paths.iter().all(found), "{how} is not found at {paths:?}, but: {told:?}");
            ensure!(told.iter().all(meant), "{how} is found, and more: {told:?}");
            return Ok(true);
        }
        bail!("none of {TRIES} changes was one")
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

/// Pairs with one live object.
#[derive(Clone, Copy)]
struct Pairs<'p> {
    bench: &'p Bench,
    seed: &'p Seed,
    schema: Schema<'p>,
    facts: &'p Arc<[u8]>,
    live: &'p Value,
}

impl Pairs<'_> {
    /// One pair. Whether it is a drift that the server would correct.
    async fn judge(
        &self,
        desired: &Value,
        mutations: &[String],
        tally: &mut Tally,
        sandboxed: bool,
    ) -> Result<bool> {
        let told = || format!("{mutations:?} makes {desired}\nlive is {}", self.live);
        let ours = judge::ours(desired, self.live, self.facts).with_context(told)?;
        let counts = tally.of(&self.seed.kind);
        counts.pairs += 1;
        if sandboxed {
            counts.in_sandbox += 1;
            let plugin = &self.bench.plugin;
            judge::same_in_the_sandbox(plugin, desired, self.live, self.facts, &ours)
                .with_context(told)?;
        }
        let answer = match self.bench.apply(self.seed, desired, "&dryRun=All").await? {
            Ok(answer) => answer,
            Err(refusal) => {
                self.refused(desired, mutations, &ours, &refusal, tally);
                return Ok(false);
            }
        };
        let seen = match &ours {
            Ours::Differences(seen) => seen,
            Ours::Invalid(what) => {
                let root = Path::root();
                tally.disagree(&self.case(Wrong::Refused, &root, desired, None, what, mutations));
                return Ok(false);
            }
        };
        let changes = judge::changes(self.live, &answer, self.schema);
        let judged: Vec<_> = seen.iter().filter(|seen| seen.kind != Kind::Stray).collect();
        let real: Vec<_> = judged
            .iter()
            .filter(|seen| {
                !(seen.kind == Kind::Released && seen.held)
                    || changes.iter().any(|change| judge::touch(change, &seen.path))
            })
            .collect();
        for seen in &real {
            if !changes.iter().any(|change| judge::touch(change, &seen.path)) {
                let word = seen.kind.name();
                tally.disagree(&self.case(
                    Wrong::FalseAlarm,
                    &seen.path,
                    desired,
                    Some(&answer),
                    word,
                    mutations,
                ));
            }
        }
        for change in &changes {
            // What follows from a neighbour is told by the neighbour: a default that depends on it,
            // a setting that the server drops with it.
            let beside =
                |seen: &Path| change.parent().is_some_and(|parent| seen.parent() == Some(parent));
            let found =
                judged.iter().any(|seen| judge::touch(change, &seen.path) || beside(&seen.path));
            if !found && (real.is_empty() || self.is_stated(change, desired)?) {
                tally.disagree(&self.case(
                    Wrong::Missed,
                    change,
                    desired,
                    Some(&answer),
                    "",
                    mutations,
                ));
            }
        }
        let counts = tally.of(&self.seed.kind);
        match changes.is_empty() {
            true => counts.in_sync += 1,
            false => counts.drift += 1,
        }
        Ok(!changes.is_empty())
    }

    /// The server does not take desired: whether we told so is counted.
    fn refused(
        &self,
        desired: &Value,
        mutations: &[String],
        ours: &Ours,
        refusal: &str,
        tally: &mut Tally,
    ) {
        let counts = tally.of(&self.seed.kind);
        counts.rejected += 1;
        let foretold = match ours {
            Ours::Invalid(_) => true,
            Ours::Differences(seen) => seen.iter().any(|seen| seen.kind == Kind::Pruned),
        };
        counts.foretold += usize::from(foretold);
        if matches!(ours, Ours::Differences(seen) if seen.iter().all(|seen| seen.kind == Kind::Stray))
        {
            let root = Path::root();
            tally.disagree(&self.case(Wrong::Overlooked, &root, desired, None, refusal, mutations));
        }
    }

    /// Desired was applied: nothing is left of the drift.
    fn left(&self, desired: &Value, mutations: &[String], tally: &mut Tally) -> Result<()> {
        tally.of(&self.seed.kind).applied += 1;
        match judge::ours(desired, self.live, self.facts)? {
            Ours::Invalid(what) => {
                tally.disagree(&self.case(
                    Wrong::Left,
                    &Path::root(),
                    desired,
                    None,
                    &what,
                    mutations,
                ));
            }
            Ours::Differences(seen) => {
                for seen in seen
                    .iter()
                    .filter(|it| it.kind != Kind::Stray && !(it.kind == Kind::Released && it.held))
                {
                    let word = seen.kind.name();
                    tally.disagree(&self.case(
                        Wrong::Left,
                        &seen.path,
                        desired,
                        None,
                        word,
                        mutations,
                    ));
                }
            }
        }
        Ok(())
    }

    /// Whether desired has a say in the place: it states it, or we stated it before.
    fn is_stated(&self, path: &Path, desired: &Value) -> Result<bool> {
        Ok(judge::at(desired, path, Some(self.schema)).is_some()
            || judge::is_ours(self.live, path)?)
    }

    fn case<'c>(
        &'c self,
        wrong: Wrong,
        path: &'c Path,
        desired: &'c Value,
        answer: Option<&'c Value>,
        text: &'c str,
        mutations: &'c [String],
    ) -> Case<'c> {
        let schema = Some(self.schema);
        Case {
            wrong,
            kind: &self.seed.kind,
            path,
            object: desired,
            desired: judge::at(desired, path, schema),
            live: judge::at(self.live, path, schema),
            answer: answer.and_then(|answer| judge::at(answer, path, schema)),
            text,
            schema,
            mutations,
        }
    }
}
