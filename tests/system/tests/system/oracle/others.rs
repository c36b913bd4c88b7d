//! The definitions and manifests of real projects, where they lie beside the checkout: pairs over their
//! kinds, and one change and one respelling of each object that was applied.

use super::judge::{self, Ours};
use super::random::Random;
use super::schema::Document;
use super::seeds::{self, Seed};
use super::{Bench, PAIRS, SEED, generate, mutate, number, report};
use crate::world::{Test, run, say};
use anyhow::{Context as _, Result, bail, ensure};
use http::Method;
use serde_json::{Value, json};
use std::path::PathBuf;
use trimtab_json::{Path, Step};
use trimtab_system_tests::{Cluster, objects_in, workspace};

/// How often something is made up before it counts as not to be had.
const TRIES: usize = 60;

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

impl Bench {
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
        let valid = |desired: &Value| -> Result<Result<Vec<judge::Seen>, String>> {
            Ok(match judge::ours(desired, &live, &facts)? {
                Ours::Differences(seen) => Ok(seen),
                Ours::Invalid(what) => Err(what),
            })
        };
        let seen = |desired: &Value| {
            valid(desired)?.map_err(|what| anyhow::anyhow!("desired is called invalid: {what}"))
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
            // What a controller aggregates is not judged.
            if changed["aggregationRule"].is_object() && how.contains(" /rules") {
                continue;
            }
            let told = match valid(&changed)? {
                Ok(told) => told,
                // Two elements with one key, a value of another type: the server refuses it too.
                Err(what) => {
                    let answer = self.apply(seed, &changed, "&dryRun=All").await?;
                    ensure!(answer.is_err(), "{how} is called invalid ({what}), and is taken");
                    continue;
                }
            };
            let found = |path: &Path| told.iter().any(|seen| near(&seen.path, path));
            let meant = |seen: &judge::Seen| paths.iter().any(|path| near(&seen.path, path));
            ensure!(paths.iter().all(found), "{how} is not found at {paths:?}, but: {told:?}");
            ensure!(told.iter().all(meant), "{how} is found, and more: {told:?}");
            return Ok(true);
        }
        bail!("none of {TRIES} changes was one")
    }
}

/// Whether one path is the other or lies within it. Where the document describes a list no further
/// (a type that contains itself), its elements are told by position there, and by key by us.
fn near(one: &Path, other: &Path) -> bool {
    let element = |step: &Step| matches!(step, Step::Keyed(_) | Step::Element(_));
    one.steps().iter().zip(other.steps()).all(|(a, b)| match (a, b) {
        (Step::Index(_), b) if element(b) => true,
        (a, Step::Index(_)) if element(a) => true,
        _ => a == b,
    })
}
