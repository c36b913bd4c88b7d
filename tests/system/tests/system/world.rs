//! What the tests share: one runtime, one control plane, a small application.

use anyhow::{Context as _, Result, bail};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;
use trimtab_system_tests::{Cluster, Host, Id, Line, Room};

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Runtime::new().expect("a machine that runs tests has threads"));
static SHARED: OnceCell<Cluster> = OnceCell::const_new();

/// How a test ends.
pub(crate) type Test = Result<(), Told>;

/// An error as a person reads it: what, and the causes, without the machine's own stack.
pub(crate) struct Told(anyhow::Error);

impl std::fmt::Debug for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

/// Runs a test on the one runtime, so that all of them can use the one control plane.
pub(crate) fn run(test: impl Future<Output = Result<()>>) -> Test {
    RUNTIME.block_on(test).map_err(Told)
}

/// The control plane that tests share. Nobody stops it: it ends with this program, and the next
/// run removes its folder.
pub(crate) async fn shared() -> Result<&'static Cluster> {
    SHARED
        .get_or_try_init(async || {
            let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
            remove_stale(folder);
            let dir = folder.join(format!("plane-{}", std::process::id()));
            Cluster::start_with(Some(&dir), &say).await
        })
        .await
}

/// Not through `eprintln!`: the reason why a test is skipped, or what a first build is doing, is
/// to be seen without `--nocapture`.
pub(crate) fn say(line: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Folders of runs that are over.
fn remove_stale(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(pid) = name.strip_prefix("plane-") else { continue };
        if !PathBuf::from("/proc").join(pid).exists() {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// A small application in a namespace of its own: five objects of five kinds.
pub(crate) fn app(namespace: &str) -> String {
    format!(
        "apiVersion: v1
kind: Namespace
metadata: {{name: {namespace}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: settings, namespace: {namespace}, labels: {{app: web}}}}
data:
  color: blue
  size: large
---
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: {namespace}}}
spec:
  selector: {{app: web}}
  ports:
    - {{name: http, port: 80, targetPort: 8080}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: {namespace}}}
spec:
  replicas: 2
  selector:
    matchLabels: {{app: web}}
  template:
    metadata:
      labels: {{app: web}}
    spec:
      containers:
        - name: web
          image: registry.example.com/web:1
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: reader, namespace: {namespace}}}
rules:
  - apiGroups: [\"\"]
    resources: [configmaps]
    verbs: [get]
"
    )
}

/// How many objects [`app`] has.
pub(crate) const APP_OBJECTS: usize = 5;

pub(crate) fn settings(namespace: &str) -> Id {
    Id::new("v1", "ConfigMap", namespace, "settings")
}

pub(crate) fn service(namespace: &str) -> Id {
    Id::new("v1", "Service", namespace, "web")
}

pub(crate) fn deployment(namespace: &str) -> Id {
    Id::new("apps/v1", "Deployment", namespace, "web")
}

/// A room of that name with the generic plugin enforced and [`app`] declared in a namespace of
/// the same name.
pub(crate) fn room_with_app(cluster: &Cluster, name: &str) -> Result<Room> {
    let room = cluster.room(name)?.with_generic()?;
    room.declare("app.yaml", &app(name))?;
    Ok(room)
}

/// Starts the host and waits until the journal tells that this many objects were made.
pub(crate) async fn converged(room: &Room, objects: usize) -> Result<Host> {
    let mut host = room.start()?;
    host.until(format!("{objects} objects are made"), async |journal| {
        let lines = journal.lines()?;
        let made = lines.iter().filter(|line| line.outcome() == "created").count();
        if made < objects {
            bail!("{made} are made");
        }
        Ok(())
    })
    .await?;
    Ok(host)
}

/// Waits for a pass of this object with this outcome.
pub(crate) async fn pass(
    host: &mut Host,
    mark: usize,
    id: &Id,
    outcome: &str,
) -> Result<std::sync::Arc<Line>> {
    host.line(format!("{id} is {outcome}"), mark, |line| {
        line.kind() == "pass" && line.is_about(id) && line.outcome() == outcome
    })
    .await
}

/// What `trimtab diff` answers of this room's source and cluster: exit status and stdout.
pub(crate) fn diff(room: &Room, arguments: &[&str]) -> Result<(i32, String)> {
    let kubeconfig = room.kubeconfig.clone().context("the room has no kubeconfig")?;
    let output = std::process::Command::new(std::path::absolute(&room.built().trimtab)?)
        .arg("diff")
        .arg("--source")
        .arg(room.source())
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .args(arguments)
        .output()?;
    let status = output.status.code().context("ended by a signal")?;
    Ok((status, String::from_utf8_lossy(&output.stdout).into_owned()))
}

/// Changes the ConfigMap `settings` as a bystander and waits until it is put right: the host is
/// alive, and served by some plugin.
pub(crate) async fn prove_alive(cluster: &Cluster, host: &mut Host, namespace: &str) -> Result<()> {
    let mark = host.journal().mark()?;
    let patch = serde_json::json!({"data": {"color": "red"}});
    cluster.user("bystander")?.merge(&settings(namespace), &patch).await?;
    pass(host, mark, &settings(namespace), "corrected").await?;
    let live = cluster.api().require(&settings(namespace)).await?;
    anyhow::ensure!(live["data"]["color"] == "blue", "the ConfigMap was not put right: {live}");
    Ok(())
}

/// How often each object was made by this user, from the audit log.
pub(crate) async fn creations(
    cluster: &Cluster,
    user: &str,
) -> Result<std::collections::BTreeMap<String, usize>> {
    let mut counts = std::collections::BTreeMap::new();
    for request in cluster.audit().writes_by(user).await? {
        if request.created() {
            *counts.entry(request.object()).or_default() += 1;
        }
    }
    Ok(counts)
}

/// Fails with these requests listed if there are any.
pub(crate) fn none(what: &str, requests: &[trimtab_system_tests::Request]) -> Result<()> {
    let list: Vec<String> = requests
        .iter()
        .map(|request| format!("{} {} → {}", request.verb, request.uri, request.code))
        .collect();
    if list.is_empty() { Ok(()) } else { bail!("{what}:\n{}", list.join("\n")) }
}

/// Text of a file of the state directory.
pub(crate) fn state_file(room: &Room, name: &str) -> Result<String> {
    let path = room.state().join(name);
    std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// A port that is free now.
pub(crate) fn free_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// The answer to a plain HTTP GET, head and body.
pub(crate) async fn get(address: &str, path: &str) -> Result<String> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}
