//! Starts the real thing, and looks at the world rather than at our own values: what the API
//! server answers, what is on disk, and which processes run.
//!
//! The programs come from where `Places::from_env` finds them; the first run ever builds them.
//! Linux and macOS; `ps` is the only tool needed.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use trimtab_dev::{
    AuditLevel, Client, ControlPlane, DevOptions, Error, Options, Places, dev, to_stderr,
};

mod processes;

use processes::{Helper, below, running};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn start(options: Options) -> ControlPlane {
    ControlPlane::start(options, &to_stderr).await.unwrap()
}

async fn create(client: &Client, path: &str, object: Value) -> Value {
    let answer = client.send("POST", path, Some(&object.to_string())).await.unwrap();
    assert_eq!(answer.status, 201, "{}", answer.body);
    serde_json::from_str(&answer.body).unwrap()
}

async fn status(client: &Client, path: &str) -> u16 {
    client.get(path).await.unwrap().status
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}})
}

async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition().await {
        assert!(Instant::now() < deadline, "not within 30 s: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn it_is_ready_in_seconds_and_lets_in_nobody_but_its_administrator() {
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".kube/config"));
    let before = home.as_ref().map(|path| fs::read(path).ok());
    // Builds what is missing, so that the time below is a start's alone.
    start(Options::default()).await.shutdown().await;

    let began = Instant::now();
    let mut plane =
        start(Options { audit: Some(AuditLevel::Metadata), ..Options::default() }).await;
    let took = began.elapsed();
    println!("ready in {took:?}");
    assert!(took < Duration::from_secs(20), "{took:?}");

    let (admin, nobody) = (plane.client().clone(), plane.anonymous().clone());
    create(&admin, CONFIG_MAPS, config_map("seen")).await;
    assert_eq!(status(&admin, "/api").await, 200);
    for path in ["/api", "/apis", CONFIG_MAPS, "/api/v1/secrets", "/metrics"] {
        assert_eq!(status(&nobody, path).await, 403, "{path}");
    }
    assert_eq!(status(&nobody, "/readyz").await, 200);

    let kubeconfig = fs::read_to_string(plane.kubeconfig()).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(plane.kubeconfig()), 0o600);
    assert_eq!(mode(plane.dir()), 0o700);
    assert!(kubeconfig.contains(&format!("    server: {}\n", plane.server())));
    assert!(kubeconfig.contains("current-context: trimtab-dev\n"));
    assert_eq!(home.as_ref().map(|path| fs::read(path).ok()), before);

    plane.guard(plane.server()).unwrap();
    plane.guard(&format!("{}/", plane.server())).unwrap();
    let other = plane.guard("https://prod.example.org").unwrap_err();
    assert!(matches!(other, Error::OtherCluster { .. }));

    let log = fs::read_to_string(plane.audit_log().unwrap()).unwrap();
    let records: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let made =
        |record: &&Value| record["objectRef"]["name"] == "seen" && record["verb"] == "create";
    let record = records.iter().find(made).unwrap();
    assert_eq!(record["user"]["username"], "trimtab-dev-admin");
    assert_eq!((&record["level"], &record["requestObject"]), (&json!("Metadata"), &Value::Null));
    assert!(records.iter().all(|record| record["stage"] != "RequestReceived"));

    let (dir, pids) = (plane.dir().to_owned(), plane.pids());
    assert_eq!(pids.iter().map(|it| it.0).collect::<Vec<_>>(), ["etcd", "kube-apiserver"]);
    plane.shutdown().await;
    assert!(!dir.exists());
    assert!(running(&pids.into_iter().map(|it| it.1).collect()).is_empty());
}

#[tokio::test]
async fn objects_outlive_the_api_server_and_its_address_stays() {
    let mut plane = start(Options::default()).await;
    let (client, server) = (plane.client().clone(), plane.server().to_owned());
    let created = create(&client, CONFIG_MAPS, config_map("kept")).await;
    let path = format!("{CONFIG_MAPS}/kept");

    for crash in [false, true] {
        let began = Instant::now();
        if crash {
            plane.kill_apiserver();
        } else {
            plane.stop_apiserver().await;
        }
        println!("down (crash: {crash}) in {:?}", began.elapsed());
        assert!(client.get(&path).await.is_err());
        assert!(plane.failure().is_none(), "an outage that was asked for is no failure");
        let began = Instant::now();
        plane.start_apiserver().await.unwrap();
        println!("up again in {:?}", began.elapsed());
        let found = client.get(&path).await.unwrap();
        let found: Value = serde_json::from_str(&found.body).unwrap();
        assert_eq!(found["metadata"]["uid"], created["metadata"]["uid"]);
        assert_eq!(plane.server(), server);
    }
    let began = Instant::now();
    plane.shutdown().await;
    println!("shut down in {:?}", began.elapsed());
}

#[tokio::test]
async fn a_given_folder_keeps_its_objects_and_serves_one_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    // Longer than a socket's path may be.
    let dir = dir.path().join("long".repeat(30));
    let options = || Options { dir: Some(dir.clone()), ..Options::default() };
    let plane = start(options()).await;
    create(plane.client(), CONFIG_MAPS, config_map("kept")).await;
    let second = ControlPlane::start(options(), &to_stderr).await.err().unwrap();
    assert!(matches!(second, Error::Busy { .. }), "{second}");
    plane.kill();

    let plane = start(options()).await;
    assert_eq!(status(plane.client(), &format!("{CONFIG_MAPS}/kept")).await, 200);
    plane.shutdown().await;
    assert!(dir.join("logs/etcd.log").exists());
}

#[tokio::test]
async fn with_a_controller_manager_what_an_object_owns_goes_with_it() {
    let plane = start(Options { controller_manager: true, ..Options::default() }).await;
    let client = plane.client();
    let owner = create(client, CONFIG_MAPS, config_map("owner")).await;
    let mut owned = config_map("owned");
    owned["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"],
    }]);
    create(client, CONFIG_MAPS, owned).await;
    let deleted = client.send("DELETE", &format!("{CONFIG_MAPS}/owner"), None).await.unwrap();
    assert_eq!(deleted.status, 200, "{}", deleted.body);
    let path = format!("{CONFIG_MAPS}/owned");
    eventually("the owned object goes", async || status(client, &path).await == 404).await;

    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let labels = json!({"app": "web"});
    create(
        client,
        deployments,
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": "example.org/web"}]},
            },
        }}),
    )
    .await;
    eventually("a Deployment makes a Pod", async || {
        let pods = client.get("/api/v1/namespaces/default/pods").await.unwrap();
        pods.body.contains("\"name\":\"web-")
    })
    .await;
    plane.shutdown().await;
}

#[tokio::test]
async fn a_component_that_does_not_start_shows_the_end_of_its_log_and_keeps_it() {
    let error = ControlPlane::start(
        Options { apiserver_args: vec!["--no-such-flag".to_owned()], ..Options::default() },
        &to_stderr,
    )
    .await
    .err()
    .unwrap();
    let Error::Component { component, log_tail, log, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(*component, "kube-apiserver");
    assert!(log_tail.contains("unknown flag: --no-such-flag"), "{error}");
    assert!(fs::read_to_string(log).unwrap().contains("unknown flag"));
    fs::remove_dir_all(log.ancestors().nth(2).unwrap()).unwrap();
}

#[tokio::test]
async fn without_programs_and_without_go_there_is_one_sentence_and_no_file() {
    let empty = tempfile::tempdir().unwrap();
    let places = Places {
        assets: Some(empty.path().into()),
        path: empty.path().into(),
        cache: Some(empty.path().join("cache")),
    };
    let options = Options { places, ..Options::default() };
    let said = std::sync::Mutex::new(Vec::new());
    let progress = |line: &str| said.lock().unwrap().push(line.to_owned());
    let error = ControlPlane::start(options, &progress).await.err().unwrap();
    assert!(matches!(error, Error::NoGo { program: "etcd", .. }), "{error}");
    assert_eq!(error.to_string().lines().count(), 1);
    assert!(said.lock().unwrap().is_empty());
    assert_eq!(fs::read_dir(empty.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_command_runs_inside_and_its_status_is_ours() {
    let run = async |script: &str| {
        let command = ["/bin/sh", "-c", script].map(OsString::from).to_vec();
        let options = DevOptions { command, ..DevOptions::default() };
        dev(options, &to_stderr).await
    };
    let seen = tempfile::NamedTempFile::new().unwrap();
    let script = format!("cp \"$KUBECONFIG\" {}; exit 7", seen.path().display());
    assert_eq!(run(&script).await.unwrap(), 7);
    let copied = fs::read_to_string(seen.path()).unwrap();
    assert!(copied.contains("server: https://127.0.0.1:"));
    assert_eq!(run("kill -KILL $$").await.unwrap(), 128 + 9);

    let missing = DevOptions { command: vec!["/no/such/program".into()], ..DevOptions::default() };
    let error = dev(missing, &to_stderr).await.unwrap_err();
    assert!(error.to_string().starts_with("cannot run /no/such/program: "), "{error}");
}

#[tokio::test]
async fn nothing_outlives_a_parent_that_is_killed() {
    let mut helper = Helper::start("plane");
    helper.wait_for("ready");
    let children = below(helper.child.id());
    let commands: Vec<String> = running(&children).into_iter().map(|it| it.2).collect();
    for program in ["etcd --data-dir", "kube-apiserver --etcd-servers"] {
        assert!(commands.iter().any(|it| it.contains(program)), "{commands:?}");
    }
    helper.signal(Signal::KILL);
    helper.child.wait().unwrap();
    eventually("its children are gone", async || running(&children).is_empty()).await;
    // What a killed process cannot do itself.
    fs::remove_dir_all(helper.dir.as_ref().unwrap()).unwrap();
}

#[tokio::test]
async fn nothing_outlives_a_panic() {
    let mut helper = Helper::start("panic");
    helper.wait_for("ready");
    let children = below(helper.child.id());
    assert!(children.len() >= 2);
    assert!(!helper.child.wait().unwrap().success());
    eventually("its children are gone", async || running(&children).is_empty()).await;
    assert!(!Path::new(helper.dir.as_ref().unwrap()).exists());
}

#[tokio::test]
async fn a_signal_is_passed_on_to_the_command_and_ends_a_wait() {
    for (what, signal, expected) in [
        ("dev with a command", Signal::TERM, 42),
        ("dev with a command", Signal::INT, 130),
        ("dev", Signal::INT, 0),
        ("dev", Signal::TERM, 0),
    ] {
        let mut helper = Helper::start(what);
        helper.wait_for("ready");
        let children = below(helper.child.id());
        helper.signal(signal);
        assert_eq!(helper.child.wait().unwrap().code(), Some(expected), "{what} {signal:?}");
        eventually("its children are gone", async || running(&children).is_empty()).await;
    }
}

#[tokio::test]
#[ignore = "run by the tests above"]
async fn helper() {
    let Ok(what) = std::env::var("TRIMTAB_DEV_HELPER") else {
        return;
    };
    if what.starts_with("dev") {
        let script = "trap 'kill $!; exit 42' TERM; trap 'kill $!; trap - INT; kill -INT $$' INT
            sleep 600 & echo ready; wait";
        let mut command = ["/bin/sh", "-c", script].map(OsString::from).to_vec();
        if what == "dev" {
            command.clear();
        }
        let options = DevOptions { command, ..DevOptions::default() };
        // Only this test makes a line for a person go to standard output.
        let progress = |line: &str| {
            if line == "Ctrl-C ends it" {
                println!("ready");
            }
        };
        std::process::exit(dev(options, &progress).await.unwrap());
    }
    let plane = start(Options::default()).await;
    println!("dir={}", plane.dir().display());
    println!("ready");
    if what == "panic" {
        tokio::time::sleep(Duration::from_secs(1)).await;
        panic!("on purpose");
    }
    std::future::pending::<()>().await;
}
