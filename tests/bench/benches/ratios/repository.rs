//! A repository as a source: the first sync of 5,000 manifests, a look when nothing changed, a
//! change of one file; and how long a commit takes to the cluster, against the poll interval.

use crate::table::{Table, time};
use anyhow::{Context as _, Result, ensure};
use std::time::{Duration, Instant};
use trimtab_source::Source as _;
use trimtab_source::git::{Git, GitOptions, location::Url};
use trimtab_system_tests::{Cluster, GitServer, Id, PATIENCE, Repository, until};

const MANIFESTS: usize = 5_000;
/// A look without a change against the first sync.
const LOOK: f64 = 0.05;
/// A change of one file against the first sync.
const ONE_FILE: f64 = 0.25;
const INTERVAL: Duration = Duration::from_secs(5);
/// What comes after the poll: fetch, pass, write.
const AFTER_POLL: Duration = Duration::from_secs(2);
const COMMITS: usize = 6;

pub(crate) async fn measure(cluster: &Cluster, table: &mut Table) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let repository = Repository::new(&folder.path().join("repository"))?;
    let server = GitServer::of(folder.path())?;
    // Its client blocks.
    tokio::task::block_in_place(|| reading(folder.path(), &repository, &server, table))?;
    applied(cluster, table).await
}

fn manifest(namespace: &str, name: &str, value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {namespace}}}\ndata: {{value: {value}, text: {}}}\n",
        "x".repeat(1_000)
    )
}

/// What one look or reading cost.
struct Cost {
    took: Duration,
    requests: usize,
    bytes: usize,
    decoded: usize,
}

impl Cost {
    fn of(source: &Git, server: &GitServer, work: impl FnOnce() -> Result<()>) -> Result<Self> {
        server.asked();
        let (start, before) = (Instant::now(), source.decodings());
        work()?;
        let took = start.elapsed();
        let asked = server.asked();
        Ok(Self {
            took,
            requests: asked.len(),
            bytes: asked.iter().map(|it| it.bytes).sum(),
            decoded: source.decodings() - before,
        })
    }

    fn told(&self) -> String {
        let Self { took, requests, bytes, decoded } = self;
        format!("{}, {requests} requests, {bytes} bytes, {decoded} files decoded", time(*took))
    }
}

fn reading(
    folder: &std::path::Path,
    repository: &Repository,
    server: &GitServer,
    table: &mut Table,
) -> Result<()> {
    for number in 0..MANIFESTS {
        let path = repository.folder().join(format!("{}", number % 50));
        std::fs::create_dir_all(&path)?;
        let text = manifest("shop", &format!("map-{number}"), "one");
        std::fs::write(path.join(format!("{number}.yaml")), text)?;
    }
    repository.commit_all("all", false)?;
    let mut options = GitOptions::new(
        Url::parse(&server.address("repository/.git")).map_err(anyhow::Error::msg)?,
    );
    options.allow_plain_http = true;
    let source = Git::open("bench", options, folder, "default")?;
    let take = || -> Result<()> {
        let revision = source.read()?;
        ensure!(revision.manifests.len() == MANIFESTS);
        Ok(source.accept(&revision)?)
    };
    let first = Cost::of(&source, server, take)?;
    let what = "first sync of 5,000 manifests";
    table.figure(what, first.told(), "5000 decoded", first.decoded == MANIFESTS);

    let known = source.fingerprint()?;
    let look = Cost::of(&source, server, || {
        let now = source.fingerprint()?;
        ensure!(known.still_holds(&now), "it would be read again");
        Ok(())
    })?;
    let share = look.took.as_secs_f64() / first.took.as_secs_f64();
    let met = look.decoded == 0 && look.requests <= 2 && share <= LOOK;
    let goal = format!("0 decoded, ≤ 2 requests, ≤ {LOOK}× of the first");
    table.figure("a look when nothing changed", look.told(), &goal, met);

    repository.commit("3/3.yaml", &manifest("shop", "map-3", "two"))?;
    let one = Cost::of(&source, server, take)?;
    let share = one.took.as_secs_f64() / first.took.as_secs_f64();
    let goal = format!("1 decoded, ≤ {ONE_FILE}× of the first");
    table.figure("one file changed", one.told(), &goal, one.decoded == 1 && share <= ONE_FILE);
    Ok(())
}

/// From the end of `git commit` to the object in the cluster.
async fn applied(cluster: &Cluster, table: &mut Table) -> Result<()> {
    let name = "bench-commits";
    let mut room = cluster.room(name)?.with_generic()?;
    let repository = Repository::new(&room.path().join("repository"))?;
    let server = GitServer::of(room.path())?;
    let namespace = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n---\n");
    let text = |value: usize| namespace.clone() + &manifest(name, "one", &format!("v{value}"));
    repository.commit("all.yaml", &text(0))?;
    let config = room.path().join("config.yaml");
    let seconds = INTERVAL.as_secs();
    let address = server.address("repository/.git");
    std::fs::write(
        &config,
        format!(
            "apiVersion: trimtab.dev/v1alpha1\nkind: Config\nsources:\n  - {{name: bench, interval: {seconds}s, git: {{url: \"{address}\", branch: main, plainHttp: true}}}}\n"
        ),
    )?;
    room.config = Some(config);
    let _host = room.start()?;
    let id = Id::new("v1", "ConfigMap", name, "one");
    let has = async |value: usize| {
        let wanted = format!("v{value}");
        until(format!("{wanted} is in the cluster"), PATIENCE, async || {
            let live = cluster.api().require(&id).await?;
            ensure!(live["data"]["value"] == *wanted, "it is {}", live["data"]["value"]);
            Ok(())
        })
        .await
    };
    has(0).await?;
    let mut times = Vec::new();
    for value in 1..=COMMITS {
        repository.commit("all.yaml", &text(value))?;
        let start = Instant::now();
        has(value).await?;
        times.push(start.elapsed());
        // Not in step with the poll.
        tokio::time::sleep(Duration::from_millis(700 * value as u64)).await;
    }
    times.sort();
    let (median, longest) = (times[COMMITS / 2], *times.last().context("a commit")?);
    table.figure(
        &format!("from commit to applied, polled every {seconds} s"),
        format!("median {}, longest {}", time(median), time(longest)),
        &format!("≤ {seconds} s + {} s", AFTER_POLL.as_secs()),
        longest <= INTERVAL + AFTER_POLL,
    );
    Ok(())
}
