//! The API server's own pod-security admission as the oracle of `policy-pod-security`: for hundreds of
//! generated pods, in namespaces that enforce each level as of several versions, we find exactly the
//! controls broken that the server names when a dry run is refused, and none where it is not.
//!
//! `generate.rs` makes the pods. What is random comes from a seed that is told:
//! `TRIMTAB_POD_SECURITY_SEED` repeats a run, `TRIMTAB_POD_SECURITY_PODS` makes it longer.

mod generate;

use crate::oracle::random::Random;
use crate::world::{Test, run, say};
use anyhow::{Context as _, Result, bail, ensure};
use http::Method;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use trimtab_plugin_policy_pod_security::{CONTROLS, Level, NEWEST, broken};
use trimtab_system_tests::{Api, Cluster, Failure};

/// Pods in `make test`.
const PODS: usize = 500;
/// The seed, where none is given.
const SEED: u64 = 20_261_201;

/// The levels and versions that pods are held against. A server takes a version that it does not know,
/// `latest` among them, for the newest that it knows.
const ENFORCED: [(Level, &str, u32); 6] = [
    (Level::Baseline, "latest", NEWEST),
    (Level::Restricted, "latest", NEWEST),
    (Level::Baseline, "v1.33", 33),
    (Level::Restricted, "v1.34", 34),
    (Level::Baseline, "v1.31", 31),
    (Level::Restricted, "v1.26", 26),
];

/// How the server's words for what is broken begin, and our control.
const WORDS: [(&str, &str); 18] = [
    ("hostProcess", "host-process"),
    ("host namespaces", "host-namespaces"),
    ("privileged", "privileged"),
    ("non-default capabilities", "capabilities"),
    ("hostPath volumes", "host-path-volumes"),
    ("hostPort", "host-ports"),
    ("probe or lifecycle host", "host-probes"),
    ("forbidden AppArmor profile", "apparmor"),
    ("forbidden AppArmor profiles", "apparmor"),
    ("seLinuxOptions", "selinux"),
    ("procMount", "proc-mount"),
    ("seccompProfile", "seccomp"),
    ("forbidden sysctls", "sysctls"),
    ("restricted volume types", "volume-types"),
    ("allowPrivilegeEscalation != false", "privilege-escalation"),
    ("runAsNonRoot != true", "run-as-non-root"),
    ("runAsUser=0", "run-as-user"),
    ("unrestricted capabilities", "capabilities-restricted"),
];

#[test]
fn we_find_exactly_the_controls_broken_that_the_server_itself_refuses_a_pod_for() -> Test {
    run(async {
        let cluster = Cluster::start(&say).await?;
        let api = cluster.api();
        for (level, version, _) in ENFORCED {
            namespace(api, level, version).await?;
        }
        let server = api.send(Method::GET, "/version", None, None).await?;
        let server = server["minor"].as_str().unwrap_or_default();
        let server: u32 = server.trim_end_matches('+').parse().context("the server's version")?;
        let seed = number("TRIMTAB_POD_SECURITY_SEED", SEED);
        say(&format!("pod security: seed {seed}"));
        let mut random = Random::new(seed);
        let mut tally = Tally::default();
        for count in 0..number("TRIMTAB_POD_SECURITY_PODS", PODS as u64) {
            let pod = generate::pod(&mut random);
            let more = 2 + random.below(ENFORCED.len() - 2);
            for (level, version, minor) in [ENFORCED[0], ENFORCED[1], ENFORCED[more]] {
                let mut pod = pod.clone();
                pod["metadata"]["namespace"] = named(level, version).into();
                pod["metadata"]["name"] = format!("pod-{count}").into();
                let answer = api.rehearse(&pod).await;
                tally.judge(&pod, level, version, minor.min(server), answer)?;
            }
        }
        ephemeral(api, server, &mut random, &mut tally).await?;
        tally.report()?;
        cluster.shutdown().await;
        Ok(())
    })
}

/// A container that is added to a running pod goes by a way of its own.
async fn ephemeral(api: &Api, server: u32, random: &mut Random, tally: &mut Tally) -> Result<()> {
    for (level, version, minor) in [ENFORCED[0], ENFORCED[1]] {
        let mut pod = generate::compliant();
        pod["metadata"] = json!({"name": "host", "namespace": named(level, version)});
        api.create(&pod).await?;
        for _ in 0..40 {
            let mut pod = pod.clone();
            let added = json!([generate::ephemeral(random)]);
            let patch = json!({"spec": {"ephemeralContainers": added}});
            pod["spec"]["ephemeralContainers"] = added;
            let path = format!(
                "/api/v1/namespaces/{}/pods/host/ephemeralcontainers?dryRun=All",
                named(level, version)
            );
            let kind = Some("application/strategic-merge-patch+json");
            let answer = api.send(Method::PATCH, &path, kind, Some(&patch)).await;
            tally.judge(&pod, level, version, minor.min(server), answer)?;
        }
    }
    Ok(())
}

fn named(level: Level, version: &str) -> String {
    format!("{level}-{}", version.replace('.', "-"))
}

async fn namespace(api: &Api, level: Level, version: &str) -> Result<()> {
    let name = named(level, version);
    let labels = json!({
        "pod-security.kubernetes.io/enforce": level.to_string(),
        "pod-security.kubernetes.io/enforce-version": version,
    });
    let metadata = json!({"name": name, "labels": labels});
    api.create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})).await?;
    let metadata = json!({"name": "default", "namespace": name});
    api.create(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}))
        .await?;
    Ok(())
}

fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// What came of all comparisons.
#[derive(Default)]
struct Tally {
    admitted: usize,
    refused: usize,
    invalid: BTreeMap<String, usize>,
    /// How often each control was what a pod was refused for.
    controls: BTreeMap<&'static str, usize>,
    disagreements: Vec<String>,
}

impl Tally {
    fn judge(
        &mut self,
        pod: &Value,
        level: Level,
        version: &str,
        minor: u32,
        answer: Result<Value>,
    ) -> Result<()> {
        let theirs = match answer {
            Ok(_) => BTreeSet::new(),
            Err(error) => {
                let failure =
                    error.downcast_ref::<Failure>().with_context(|| format!("{error:#}"))?;
                match failure.message.split_once("violates PodSecurity") {
                    Some((_, words)) if failure.code == 403 => said(words)?,
                    // What is no pod at all is refused before it is judged.
                    _ if failure.code == 422 => {
                        let told: String = failure.message.chars().skip(20).take(160).collect();
                        *self.invalid.entry(told).or_default() += 1;
                        return Ok(());
                    }
                    _ => bail!("neither admitted nor judged: {failure:?} for {pod}"),
                }
            }
        };
        let ours = found(pod, level, minor)?;
        if ours != theirs {
            self.disagreements
                .push(format!("{level} {version}: ours {ours:?}, the server's {theirs:?}: {pod}"));
        }
        if theirs.is_empty() {
            self.admitted += 1;
        } else {
            self.refused += 1;
        }
        for control in theirs {
            *self.controls.entry(control).or_default() += 1;
        }
        Ok(())
    }

    fn report(&self) -> Result<()> {
        let Self { admitted, refused, invalid, controls, disagreements } = self;
        let invalid_count: usize = invalid.values().sum();
        say(&format!(
            "pod security: {admitted} admitted, {refused} refused, {} disagreements, {invalid_count} were no pods; refused for {controls:?}",
            disagreements.len()
        ));
        let first: Vec<_> = disagreements.iter().take(10).cloned().collect();
        ensure!(
            first.is_empty(),
            "{} disagreements, the first:\n{}",
            disagreements.len(),
            first.join("\n")
        );
        ensure!(
            invalid_count * 5 < admitted + refused,
            "too many of the generated pods are none: {invalid:#?}"
        );
        ensure!(
            *admitted > 100 && *refused > 100,
            "one-sided: {admitted} admitted, {refused} refused"
        );
        for control in CONTROLS {
            ensure!(
                controls.contains_key(control.name),
                "nothing was refused for {}",
                control.name
            );
        }
        Ok(())
    }
}

/// The controls that we find broken.
fn found(pod: &Value, level: Level, minor: u32) -> Result<BTreeSet<&'static str>> {
    let mut pod = pod.clone();
    as_the_server_reads_it(&mut pod);
    let text = pod.to_string();
    let object = trimtab_json::parse(text.as_bytes()).context("a pod that is no JSON")?;
    let id = trimtab_sdk::ObjectId { kind: "Pod", version: "v1", ..Default::default() };
    let template = trimtab_sdk::pods::template(&id, &object).context("no template")?;
    Ok(broken(&template, level, minor).into_iter().map(|it| it.control.name).collect())
}

/// The server fills in the node's port, where a pod is in the node's network, before it judges. Such a
/// pod is refused anyway, so that only the list of controls is longer.
fn as_the_server_reads_it(pod: &mut Value) {
    if pod["spec"]["hostNetwork"] != Value::Bool(true) {
        return;
    }
    for list in ["containers", "initContainers"] {
        for container in pod["spec"][list].as_array_mut().into_iter().flatten() {
            for port in container["ports"].as_array_mut().into_iter().flatten() {
                if port["hostPort"].as_u64().unwrap_or_default() == 0 {
                    port["hostPort"] = port["containerPort"].clone();
                }
            }
        }
    }
}

/// The controls in the server's words: `"baseline:latest": host namespaces (…), privileged (…)`.
fn said(words: &str) -> Result<BTreeSet<&'static str>> {
    let restricted = words.trim_start().starts_with("\"restricted");
    let (_, words) = words.split_once("\": ").context("words of another form")?;
    let (mut outside, mut depth, mut quoted) = (String::new(), 0_i32, false);
    for character in words.chars() {
        match character {
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth -= 1,
            _ if depth == 0 && !quoted => outside.push(character),
            _ => {}
        }
    }
    let control = |word: &str| -> Result<&'static str> {
        let known = WORDS.iter().find(|(begin, _)| *begin == word);
        match known.with_context(|| format!("a control that is not known: {word:?}"))?.1 {
            "seccomp" if restricted => Ok("seccomp-restricted"),
            known => Ok(known),
        }
    };
    outside.split(',').map(|word| control(word.trim())).collect()
}
