//! Where a hostile plugin is let loose: a running host with a neighbour that it must not harm.
//!
//! A [`Trial`] has a host for itself, which other trials use before and after it. It measures the
//! neighbour before the plugin is there and while it misbehaves, and at its end holds the world
//! against what the plugin was allowed: the API server's audit log, the host's process, its memory,
//! the neighbour's objects and how long they took.

use crate::world::{Test, free_port, get, run, say, shared};
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tokio::sync::{OnceCell, Semaphore, SemaphorePermit};
use trimtab_core::identity::Digest;
use trimtab_system_tests::{Cluster, Host, Id, Line, Room, until, with_manifest, workspace};

/// Hosts at once.
const ARENAS: usize = 4;
/// Objects of the neighbour, and how often each is edited in one measurement.
const NEIGHBOURS: usize = 5;
const ROUNDS: usize = 12;

/// A neighbour's p99 that is no sign of harm, whatever it was before. Of so few edits it is the longest
/// one, and on a busy machine of two processors that was up to 0.6 s with no hostile plugin there.
/// Whoever has to wait for a call of a plugin that uses up its time waits for a second.
const FLOOR: Duration = Duration::from_millis(800);
/// How much longer than before the neighbour may take.
const TIMES: u32 = 2;

/// Resident memory of a host that no plugin uses, with room: MiB.
const HOST_MIB: u64 = 192;
/// What one call can make resident: its memory, and what is on its way to the host and in it: MiB.
const CALL_MIB: u64 = 64 + 2 * 16;

static FREE: Mutex<Vec<Arena>> = Mutex::new(Vec::new());
static PERMITS: Semaphore = Semaphore::const_new(ARENAS);
static GUEST: OnceCell<Vec<u8>> = OnceCell::const_new();

/// How often a trial is run until its neighbour was measured without a disturbance. The plugin is as
/// hostile each time, so that harm which it does is there each time; what the machine does besides is not.
const ATTEMPTS: usize = 3;

/// The neighbour took too long.
#[derive(Debug, thiserror::Error)]
#[error("the neighbour's p99 was {before:?} before and {during:?} during: more than {limit:?}")]
struct Harmed {
    before: Duration,
    during: Duration,
    limit: Duration,
}

/// Runs a test of one hostile plugin.
pub(super) fn trial(test: impl AsyncFn() -> Result<()>) -> Test {
    run(async {
        for _ in 1..ATTEMPTS {
            match test().await {
                Err(error) if error.is::<Harmed>() => say(&format!("once more: {error}")),
                ended => return ended,
            }
        }
        test().await
    })
}

/// A kind that only hostile plugins claim. `Other`, `Third` and `Fourth` are there besides.
pub(super) const TRIAL: &str = "Trial.hostile.example";
pub(super) const KINDS: [&str; 4] =
    [TRIAL, "Other.hostile.example", "Third.hostile.example", "Fourth.hostile.example"];

/// What a plugin says that it wants, and is granted.
pub(super) struct Wants<'a> {
    /// Kinds that it claims.
    pub(super) claims: &'a [&'a str],
    /// Those of them that are granted.
    pub(super) kinds: &'a [&'a str],
    /// Namespaces besides the trial's own.
    pub(super) namespaces: &'a [&'a str],
    pub(super) cluster_scoped: bool,
    pub(super) reads: &'a [&'a str],
    /// Further lines of the grant.
    pub(super) terms: &'a str,
}

impl Default for Wants<'_> {
    fn default() -> Self {
        Self {
            claims: &[TRIAL],
            kinds: &[],
            namespaces: &[],
            cluster_scoped: false,
            reads: &[],
            terms: "",
        }
    }
}

/// A host with its neighbour.
struct Arena {
    room: Room,
    host: Host,
    probes: String,
    namespace: String,
    edits: usize,
}

/// One hostile plugin in an arena.
pub(super) struct Trial {
    arena: Arena,
    pub(super) cluster: &'static Cluster,
    /// `hostile-NN`: the plugin's name and its objects' namespace.
    pub(super) name: String,
    before: Duration,
    during: Vec<Duration>,
    files: Vec<String>,
    mark: usize,
    audit: u64,
    _permit: SemaphorePermit<'static>,
}

impl Trial {
    /// Takes a host, and measures its neighbour.
    pub(super) async fn begin(number: u8) -> Result<Self> {
        let cluster = shared().await?;
        let permit = PERMITS.acquire().await?;
        let free = FREE.lock().expect("nobody panics while holding it").pop();
        let mut arena = match free {
            Some(arena) => arena,
            None => Arena::start(cluster).await?,
        };
        // Another name each time is another plugin, of which nothing is remembered.
        static BEGUN: Mutex<BTreeMap<u8, usize>> = Mutex::new(BTreeMap::new());
        let attempt = {
            let mut begun = BEGUN.lock().expect("nobody panics while holding it");
            let times = begun.entry(number).or_default();
            *times += 1;
            *times
        };
        let name = match attempt {
            1 => format!("hostile-{number:02}"),
            more => format!("hostile-{number:02}-{more}"),
        };
        for namespace in [name.clone(), format!("{name}-out")] {
            cluster.api().apply(&namespace_of(&namespace)).await?;
        }
        // From here on the peak counts.
        std::fs::write(format!("/proc/{}/clear_refs", arena.host.pid()), "5")
            .context("the host's peak of memory cannot be reset")?;
        let before = p99(&arena.edits(cluster).await?);
        let (mark, audit) = (arena.host.journal().mark()?, cluster.audit().mark().await?);
        Ok(Self {
            arena,
            cluster,
            name,
            before,
            during: Vec::new(),
            files: Vec::new(),
            mark,
            audit,
            _permit: permit,
        })
    }

    /// The guest that is written with the SDK.
    pub(super) async fn guest(&self) -> Result<&'static [u8]> {
        let guest = GUEST.get_or_try_init(async || {
            let folder = tempfile_folder(&self.arena.room)?;
            let source = workspace().join("tests/guests/hostile");
            self.arena.room.built().output(&[
                "plugin".as_ref(),
                "build".as_ref(),
                source.as_os_str(),
                "--out".as_ref(),
                folder.as_os_str(),
            ])?;
            Ok::<_, anyhow::Error>(std::fs::read(folder.join("hostile.wasm"))?)
        });
        Ok(guest.await?)
    }

    /// Grants a plugin what it wants and drops it in. `shape`: a word for its file.
    pub(super) fn drop_in(
        &mut self,
        shape: &str,
        file: &[u8],
        wants: &Wants<'_>,
    ) -> Result<String> {
        let name = match shape {
            "" => self.name.clone(),
            shape => format!("{}-{shape}", self.name),
        };
        let actions = [
            "apply-desired",
            "remove-fields",
            "adopt",
            "apply-content",
            "patch-status",
            "recreate",
            "delete",
        ];
        let file = with_manifest(file, |manifest| {
            manifest["name"] = name.clone().into();
            manifest["claims"] = json!(wants.claims);
            manifest["reads"] = json!(wants.reads);
            manifest["actions"] = json!(actions);
        })?;
        let kinds = if wants.kinds.is_empty() { wants.claims } else { wants.kinds };
        let mut namespaces = vec![&*self.name];
        namespaces.extend(wants.namespaces);
        let granted: Vec<&str> = match wants.terms.contains("fields:") {
            true => actions[..5].to_vec(),
            false => actions.to_vec(),
        };
        let grant = format!(
            "apiVersion: trimtab.dev/v1alpha1\nkind: Grant\nplugin: {name}\ndigest: {}\n\
             mode: enforce\nkinds: {}\nnamespaces: {}\nclusterScoped: {}\nactions: {}\n{}\n",
            Digest::of(&file),
            json!(kinds),
            json!(namespaces),
            wants.cluster_scoped,
            json!(granted),
            wants.terms,
        );
        self.arena.room.grant(&name, &grant)?;
        self.arena.room.drop_plugin(&format!("{name}.wasm"), &file)?;
        self.files.push(name.clone());
        Ok(format!("{name}.wasm"))
    }

    /// Drops in the SDK's guest and waits until it serves.
    pub(super) async fn serve(&mut self, wants: &Wants<'_>) -> Result<String> {
        let guest = self.guest().await?;
        let file = self.drop_in("", guest, wants)?;
        self.serves(&file).await?;
        Ok(file)
    }

    /// Waits until a file is in service under its grant, asked about something or not yet.
    pub(super) async fn serves(&mut self, file: &str) -> Result<Value> {
        let Arena { room, host, .. } = &mut self.arena;
        host.until(format!("{file} is in service"), async |_| {
            let status = room.plugin_status(file)?;
            let serves = status["state"] == "loaded" || status["state"] == "enforcing";
            ensure!(serves && status["grant"] != "", "the plugin list says {status}");
            Ok(status)
        })
        .await
    }

    /// Waits until the host says so of a file; gives its whole entry.
    pub(super) async fn listed(&mut self, file: &str, state: &str) -> Result<Value> {
        let Arena { room, host, .. } = &mut self.arena;
        host.until(format!("{file} is {state}"), async |_| {
            let status = room.plugin_status(file)?;
            ensure!(status["state"] == state, "the plugin list says {status}");
            Ok(status)
        })
        .await
    }

    /// Drops in files that never serve: each is refused and its reason says so.
    pub(super) async fn refuses(&mut self, shape: &str, file: &[u8], says: &str) -> Result<()> {
        let file = self.drop_in(shape, file, &Wants::default())?;
        self.neighbour().await?;
        let status = self.listed(&file, "refused").await?;
        let reason = status["reason"].as_str().unwrap_or_default();
        ensure!(reason.contains(says), "{file} is refused, and {says:?} is not said: {reason}");
        Ok(())
    }

    /// An object of this kind that asks for a behaviour.
    pub(super) fn object(&self, kind: &str, name: &str, behaviour: &str, shape: &str) -> Value {
        let (kind, group) = kind.split_once('.').unwrap_or((kind, ""));
        let version = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
        json!({
            "apiVersion": version,
            "kind": kind,
            "metadata": {"name": name, "namespace": self.name, "annotations": {
                "hostile.example/behaviour": behaviour, "hostile.example/shape": shape,
            }},
        })
    }

    /// Declares objects and measures the neighbour while the plugin is asked about them.
    pub(super) async fn declare(&mut self, objects: &[Value]) -> Result<()> {
        let text: Vec<String> = objects.iter().map(Value::to_string).collect();
        self.arena.room.declare(&format!("{}.yaml", self.name), &text.join("\n---\n"))?;
        self.neighbour().await
    }

    /// Measures the neighbour.
    pub(super) async fn neighbour(&mut self) -> Result<()> {
        let took = self.arena.edits(self.cluster).await?;
        self.during.extend(took);
        Ok(())
    }

    /// Waits for a pass of this object that is as asked.
    pub(super) async fn pass(
        &mut self,
        object: &Value,
        what: &str,
        is: impl Fn(&Line) -> bool,
    ) -> Result<std::sync::Arc<Line>> {
        let id = Id::of(object).context("an object without a name")?;
        let mark = self.mark;
        let is = |line: &Line| line.kind() == "pass" && line.is_about(&id) && is(line);
        self.arena.host.line(format!("{id}: {what}"), mark, is).await
    }

    /// Waits until a pass of this object ended in the plugin's fault, which is this.
    pub(super) async fn faults(&mut self, object: &Value, says: &str) -> Result<()> {
        let what = format!("the plugin's fault, {says:?}");
        let is = |line: &Line| line.outcome() == "plugin-fault" && line.message().contains(says);
        self.pass(object, &what, is).await.map(drop)
    }

    /// Waits until a pass of this object has ended with this outcome; gives the reasons of what was
    /// refused in it, each as often as it was given.
    pub(super) async fn reasons(
        &mut self,
        object: &Value,
        outcome: &str,
    ) -> Result<BTreeMap<String, usize>> {
        let line = self.pass(object, outcome, |line| line.outcome() == outcome).await?;
        let mut reasons = BTreeMap::new();
        for refusal in line.0["refusals"].as_array().into_iter().flatten() {
            let reason = refusal["reason"].as_str().unwrap_or_default();
            *reasons.entry(reason.to_owned()).or_default() += 1;
        }
        Ok(reasons)
    }

    /// What the journal says since the plugin came.
    pub(super) fn lines(&self) -> Result<Vec<std::sync::Arc<Line>>> {
        Ok(self.arena.host.journal().lines()?.into_iter().skip(self.mark).collect())
    }

    /// All that the host wrote for people and programs: its log, its journal, its lists, and what
    /// its commands print of them.
    pub(super) fn told(&self) -> Result<Vec<(&'static str, String)>> {
        let (room, host) = (&self.arena.room, &self.arena.host);
        let state = room.state();
        let print = |words: &[&str]| {
            let mut all: Vec<&std::ffi::OsStr> = words.iter().map(|it| it.as_ref()).collect();
            all.extend(["--state".as_ref(), state.as_os_str()]);
            room.built().output(&all)
        };
        Ok(vec![
            ("the host's log", host.log()?),
            ("the journal", host.journal().text()?),
            ("the plugin list", std::fs::read_to_string(state.join("plugins.json"))?),
            ("audit show", print(&["audit", "show"])?),
            ("audit show as JSON", print(&["audit", "show", "-o", "json"])?),
            ("plugin list", print(&["plugin", "list"])?),
        ])
    }

    /// The host's log since it started, and how long it is.
    pub(super) fn log(&self) -> Result<String> {
        self.arena.host.log()
    }

    /// Writes of the host that are not its neighbour's, by object.
    pub(super) async fn written(&self) -> Result<BTreeMap<String, usize>> {
        let writes = self.cluster.audit().writes_since(self.audit, self.arena.room.user()).await?;
        let mut written = BTreeMap::new();
        for write in writes {
            if write.namespace != self.arena.namespace {
                *written.entry(write.object()).or_default() += 1;
            }
        }
        Ok(written)
    }

    /// Holds the world against what the plugin was allowed: these objects alone were written, the
    /// host lives in bounds, and the neighbour noticed nothing. Then clears up for the next one.
    pub(super) async fn end(mut self, allowed: &[String]) -> Result<()> {
        let written: BTreeSet<String> = self.written().await?.into_keys().collect();
        let allowed: BTreeSet<String> = allowed.iter().cloned().collect();
        ensure!(
            written == allowed,
            "written and not allowed: {:?}; allowed and not written: {:?}",
            written.difference(&allowed).collect::<Vec<_>>(),
            allowed.difference(&written).collect::<Vec<_>>()
        );
        let arena = &mut self.arena;
        ensure!(arena.host.ended().is_none(), "the host has ended: {}", arena.host.log()?);
        for path in ["/healthz", "/readyz"] {
            let answer = get(&arena.probes, path).await?;
            ensure!(answer.starts_with("HTTP/1.1 200"), "{path} answers {answer}");
        }
        let (peak, most) = (peak_mib(arena.host.pid())?, most_mib());
        ensure!(peak <= most, "the host had {peak} MiB resident, and {most} are its bound");
        let during = p99(&self.during);
        let limit = FLOOR.max(self.before * TIMES);
        if during > limit {
            let harmed = Harmed { before: self.before, during, limit };
            self.clear_up().await?;
            return Err(harmed.into());
        }
        println!(
            "{}: neighbour p99 {:.0} → {:.0} ms of {} edits, peak {peak} of {most} MiB",
            self.name,
            self.before.as_secs_f64() * 1e3,
            during.as_secs_f64() * 1e3,
            self.during.len(),
        );
        self.clear_up().await
    }

    /// Takes the plugin and its objects out, and gives the host back.
    async fn clear_up(self) -> Result<()> {
        let Self { mut arena, files, name, .. } = self;
        for file in &files {
            let _ = std::fs::remove_file(arena.room.plugins().join(format!("{file}.wasm")));
            std::fs::remove_file(arena.room.grants().join(format!("{file}.yaml")))?;
        }
        let declared = format!("{name}.yaml");
        if arena.room.source().join(&declared).exists() {
            arena.room.withdraw(&declared)?;
        }
        let Arena { room, host, .. } = &mut arena;
        host.until("the hostile plugin is gone", async |_| {
            let there =
                files.iter().any(|file| room.plugin_status(&format!("{file}.wasm")).is_ok());
            if there { bail!("it is still listed") } else { Ok(()) }
        })
        .await?;
        FREE.lock().expect("nobody panics while holding it").push(arena);
        Ok(())
    }
}

impl Arena {
    async fn start(cluster: &'static Cluster) -> Result<Self> {
        static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        kinds(cluster).await?;
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let namespace = format!("arena-{number}");
        cluster.api().apply(&namespace_of(&namespace)).await?;
        let mut room = cluster.room(&namespace)?;
        let probes = format!("127.0.0.1:{}", free_port()?);
        room.arguments = vec!["--health-probe-bind-address".into(), probes.clone().into()];
        let neighbour = with_manifest(&room.built().plugin_bytes("generic")?, |manifest| {
            manifest["name"] = "neighbour".into();
            manifest["claims"] = json!(["ConfigMap"]);
        })?;
        room.drop_plugin("neighbour.wasm", &neighbour)?;
        room.enforce("neighbour.wasm")?;
        let maps: Vec<String> = neighbours(&namespace)
            .iter()
            .map(|id| {
                let metadata = json!({"name": id.name, "namespace": id.namespace});
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
                    "data": {"color": "blue"}})
                .to_string()
            })
            .collect();
        room.declare("neighbour.yaml", &maps.join("\n---\n"))?;
        let host = crate::world::converged(&room, NEIGHBOURS).await?;
        Ok(Self { room, host, probes, namespace, edits: 0 })
    }

    /// Edits each object of the neighbour some times, and tells how long each edit stood: from the
    /// edit to its correction.
    async fn edits(&mut self, cluster: &Cluster) -> Result<Vec<Duration>> {
        let bystander = cluster.user("bystander")?;
        let objects = neighbours(&self.namespace);
        let mut took = Vec::new();
        for _ in 0..ROUNDS {
            let mark = self.host.journal().mark()?;
            // Another value each time: the same one again and again would be a fight.
            self.edits += 1;
            let patch = json!({"data": {"color": format!("red-{}", self.edits)}});
            let mut edited = Vec::new();
            for id in &objects {
                edited.push((id, Instant::now(), None));
                bystander.merge(id, &patch).await?;
            }
            self.host
                .until("the neighbour's objects are put right", async |journal| {
                    let lines = journal.lines()?;
                    for (id, at, corrected) in &mut edited {
                        let put_right = |line: &std::sync::Arc<Line>| {
                            line.outcome() == "corrected" && line.is_about(id)
                        };
                        if corrected.is_none() && lines.iter().skip(mark).any(put_right) {
                            *corrected = Some(at.elapsed());
                        }
                    }
                    let open =
                        edited.iter().filter(|(_, _, corrected)| corrected.is_none()).count();
                    ensure!(open == 0, "{open} are not");
                    Ok(())
                })
                .await?;
            took.extend(edited.into_iter().filter_map(|(_, _, corrected)| corrected));
        }
        let live = cluster.api().require(&objects[0]).await?;
        ensure!(
            live["data"]["color"] == "blue",
            "the neighbour's object was not put right: {live}"
        );
        Ok(took)
    }
}

fn neighbours(namespace: &str) -> Vec<Id> {
    let name = |index| format!("n{index}");
    (0..NEIGHBOURS).map(|index| Id::new("v1", "ConfigMap", namespace, &name(index))).collect()
}

fn namespace_of(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

fn tempfile_folder(room: &Room) -> Result<std::path::PathBuf> {
    let folder = room.path().join("guest");
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// The kinds of the trials, in two versions, with a status and a scale.
async fn kinds(cluster: &Cluster) -> Result<()> {
    for kind in KINDS {
        let (kind, group) = kind.split_once('.').unwrap_or_default();
        let singular = kind.to_lowercase();
        let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let version = |name: &str| {
            json!({"name": name, "served": true, "storage": name == "v1",
                "schema": {"openAPIV3Schema": {"type": "object",
                    "properties": {"spec": open, "status": open}}},
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}})
        };
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{singular}s.{group}")},
            "spec": {
                "group": group, "scope": "Namespaced",
                "names": {"kind": kind, "plural": format!("{singular}s"), "singular": singular,
                    "listKind": format!("{kind}List")},
                "versions": [version("v1"), version("v2")],
            },
        });
        cluster.api().apply(&definition).await?;
        until(format!("{kind} is served"), trimtab_system_tests::PATIENCE, async || {
            cluster.api().list(&format!("{group}/v1"), kind).await.map(drop)
        })
        .await?;
    }
    Ok(())
}

/// The 99th percentile by nearest rank: of fewer than a hundred, the longest.
fn p99(took: &[Duration]) -> Duration {
    let mut sorted = took.to_vec();
    sorted.sort();
    let rank = (sorted.len() * 99).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

/// The most memory that this process ever had resident, since its peak was reset.
fn peak_mib(pid: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()).context("no VmHWM")?;
    Ok(kib.parse::<u64>()? / 1024)
}

/// As many calls of one plugin at once as a host makes on this machine, and the host.
fn most_mib() -> u64 {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let calls = (processors * 4).clamp(8, 64).div_ceil(2);
    HOST_MIB + CALL_MIB * calls as u64
}
