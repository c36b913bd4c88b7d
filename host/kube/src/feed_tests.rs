//! The whole reading half against a scripted server: what a real one does only on a bad day.

use crate::connect::from_config;
use crate::discovery::Lookup;
use crate::events::{Event, Events};
use crate::store::{Options, Store};
use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use trimtab_core::identity::{GroupKind, Gvk, ObjectKey};
use trimtab_core::object::Live;

/// What the server does with one request.
#[derive(Clone)]
enum Reply {
    /// Answers with this status and body.
    Answer(u16, String),
    /// Sends these pieces of a watch and then closes the connection.
    Ends(Vec<String>),
    /// Sends these pieces of a watch and then nothing.
    Stays(Vec<String>),
}

/// Replies by what is asked; the last of each is repeated.
#[derive(Default)]
struct Script {
    lists: VecDeque<Reply>,
    watches: VecDeque<Reply>,
    gets: VecDeque<Reply>,
    /// Paths that were asked, discovery aside.
    asked: Vec<String>,
    /// Whether discovery does not know the kind.
    hidden: bool,
    /// Whether discovery is answered as old servers do.
    old: bool,
}

const PODS: &str = r#"{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":""},"versions":[{"version":"v1","resources":[
    {"resource":"pods","responseKind":{"kind":"Pod"},"scope":"Namespaced","verbs":["get","list","watch"]}]}]}]}"#;
const NOTHING: &str = r#"{"kind":"APIGroupDiscoveryList","items":[]}"#;

impl Script {
    fn reply(&mut self, path: &str) -> Reply {
        if self.old
            && let Some(reply) = old_discovery(path)
        {
            return reply;
        }
        match path {
            "/api" if self.hidden => return Reply::Answer(200, NOTHING.into()),
            "/api" => return Reply::Answer(200, PODS.into()),
            "/apis" => return Reply::Answer(200, NOTHING.into()),
            _ => self.asked.push(path.into()),
        }
        let replies = if path.contains("watch=true") {
            &mut self.watches
        } else if path.contains("limit=") {
            &mut self.lists
        } else {
            &mut self.gets
        };
        let next = if replies.len() > 1 { replies.pop_front() } else { replies.front().cloned() };
        next.unwrap_or(Reply::Stays(vec![]))
    }
}

/// Discovery without aggregation, where what serves one group is away.
fn old_discovery(path: &str) -> Option<Reply> {
    let body = match path {
        "/api" => r#"{"kind":"APIVersions","versions":["v1"]}"#,
        "/apis" => {
            r#"{"kind":"APIGroupList","groups":[{"name":"metrics.k8s.io","versions":[{"version":"v1beta1"}]}]}"#
        }
        "/api/v1" => {
            r#"{"kind":"APIResourceList","resources":[{"name":"pods","kind":"Pod","namespaced":true,"verbs":["list","watch"]}]}"#
        }
        "/apis/metrics.k8s.io/v1beta1" => return Some(refusal(503)),
        _ => return None,
    };
    Some(Reply::Answer(200, body.into()))
}

async fn serve(mut stream: TcpStream, script: Arc<Mutex<Script>>) -> std::io::Result<()> {
    let mut head = Vec::new();
    loop {
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        let text = String::from_utf8_lossy(&head).into_owned();
        head.clear();
        let path = text.split(' ').nth(1).unwrap_or_default();
        let reply = script.lock().unwrap().reply(path);
        match reply {
            Reply::Answer(code, body) => {
                let extra = if code == 429 { "Retry-After: 1\r\n" } else { "" };
                let answer = format!(
                    "HTTP/1.1 {code} X\r\nContent-Type: application/json\r\n{extra}Content-Length: {}\r\n\r\n{body}",
                    body.len()
                );
                stream.write_all(answer.as_bytes()).await?;
            }
            Reply::Ends(pieces) | Reply::Stays(pieces) if pieces.is_empty() => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await?;
                return std::future::pending().await;
            }
            Reply::Ends(ref pieces) | Reply::Stays(ref pieces) => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await?;
                for piece in pieces {
                    stream
                        .write_all(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes())
                        .await?;
                }
                if matches!(reply, Reply::Stays(_)) {
                    return std::future::pending().await;
                }
                return Ok(());
            }
        }
    }
}

struct World {
    script: Arc<Mutex<Script>>,
    store: Store,
    events: Events,
}

fn gvk() -> Gvk {
    Gvk::from_api_version("v1", "Pod")
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(GroupKind::new("", "Pod"), "s", name)
}

fn pod(name: &str, version: u32) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"s","uid":"u-{name}","resourceVersion":"{version}"}}}}"#
    )
}

fn list(version: u32, next: &str, items: &[String]) -> Reply {
    let items = items.join(",");
    Reply::Answer(
        200,
        format!(
            r#"{{"metadata":{{"resourceVersion":"{version}","continue":"{next}"}},"items":[{items}]}}"#
        ),
    )
}

fn event(kind: &str, object: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

fn refusal(code: u16) -> Reply {
    Reply::Answer(code, format!(r#"{{"kind":"Status","code":{code},"message":"scripted"}}"#))
}

/// A store that is interested in pods a and b of namespace s.
async fn world(script: Script, options: Options) -> World {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let script = Arc::new(Mutex::new(script));
    let shared = script.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, shared.clone()));
        }
    });
    let server = from_config(kube::Config::new(address.parse().unwrap())).unwrap();
    let (store, events) = Store::start(server, options);
    store.set_interest(&gvk(), &HashSet::from([key("a"), key("b")]));
    World { script, store, events }
}

impl World {
    fn shown(&self, name: &str) -> String {
        match self.store.live(&key(name), &gvk()) {
            Live::Present(object) => object.resource_version.to_string(),
            Live::Absent => "absent".into(),
            Live::Unknown(reason) => format!("unknown: {reason}"),
        }
    }

    /// Waits until both pods look so; a text that ends with `…` is a beginning.
    async fn until(&self, a: &str, b: &str) {
        let fits = |shown: &str, wanted: &str| match wanted.strip_suffix('…') {
            Some(beginning) => shown.starts_with(beginning),
            None => shown == wanted,
        };
        let begun = Instant::now();
        while !(fits(&self.shown("a"), a) && fits(&self.shown("b"), b)) {
            assert!(
                begun.elapsed() < Duration::from_secs(10),
                "a: {}, b: {}, asked: {:#?}",
                self.shown("a"),
                self.shown("b"),
                self.script.lock().unwrap().asked
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn asked(&self, part: &str) -> usize {
        self.script.lock().unwrap().asked.iter().filter(|path| path.contains(part)).count()
    }
}

#[tokio::test]
async fn a_relist_finds_a_deletion_that_the_watch_never_showed() {
    let script = Script {
        lists: [list(10, "", &[pod("a", 5), pod("b", 6)]), list(20, "", &[pod("a", 5)])].into(),
        ..Script::default()
    };
    let mut world = world(script, Options::default()).await;
    world.until("5", "6").await;
    while world.events.try_next().is_some() {}
    world.store.relist(&gvk());
    world.until("5", "absent").await;
    let changed = loop {
        match world.events.next().await.expect("open") {
            Event::Changed(changed, _) => break changed,
            other => assert!(matches!(other, Event::KindsChanged), "{other:?}"),
        }
    };
    assert_eq!(changed, key("b"));
}

#[tokio::test]
async fn the_periodic_list_needs_nobody_to_ask_for_it() {
    let script = Script {
        lists: [list(10, "", &[pod("a", 5), pod("b", 6)]), list(20, "", &[pod("a", 5)])].into(),
        ..Script::default()
    };
    let options = Options { relist_every: Duration::from_millis(200), ..Options::default() };
    let world = world(script, options).await;
    world.until("5", "absent").await;
}

#[tokio::test]
async fn an_expired_version_leads_to_a_list_in_either_form() {
    let expired = r#"{"kind":"Status","code":410,"reason":"Expired","message":"too old"}"#;
    let script = Script {
        lists: [
            list(10, "", &[pod("a", 5)]),
            list(20, "", &[pod("a", 15)]),
            list(30, "", &[pod("a", 25), pod("b", 26)]),
        ]
        .into(),
        watches: [
            refusal(410),
            Reply::Stays(vec![event("ERROR", expired)]),
            Reply::Stays(vec![event("MODIFIED", &pod("b", 31))]),
        ]
        .into(),
        ..Script::default()
    };
    let world = world(script, Options::default()).await;
    world.until("25", "31").await;
    assert_eq!((world.asked("limit="), world.asked("watch=true")), (3, 3));
    assert_eq!(world.asked("resourceVersion=30"), 1);
}

#[tokio::test]
async fn an_expired_continue_token_removes_nothing_and_begins_anew() {
    let script = Script {
        lists: [
            list(10, "t", &[pod("a", 5)]),
            refusal(410),
            list(20, "t", &[pod("a", 5)]),
            list(20, "", &[pod("b", 6)]),
        ]
        .into(),
        ..Script::default()
    };
    let world = world(script, Options::default()).await;
    world.until("5", "6").await;
    assert_eq!(world.asked("continue=t"), 2);
}

#[tokio::test]
async fn a_watch_that_breaks_off_in_an_event_goes_on_where_it_was() {
    let whole = event("MODIFIED", &pod("a", 11));
    let script = Script {
        lists: [list(10, "", &[pod("a", 5)])].into(),
        watches: [
            Reply::Ends(vec![
                whole[..20].into(),
                whole[20..].into(),
                event("ADDED", &pod("b", 12))[..30].into(),
            ]),
            Reply::Stays(vec![event("ADDED", &pod("b", 12))]),
        ]
        .into(),
        ..Script::default()
    };
    let world = world(script, Options::default()).await;
    world.until("11", "12").await;
    assert_eq!(world.asked("limit="), 1, "no list was needed");
    assert_eq!(world.asked("resourceVersion=11"), 1);
}

#[tokio::test]
async fn a_forbidden_list_falls_back_to_the_namespaces_that_were_given() {
    let script =
        Script { lists: [refusal(403), list(10, "", &[pod("a", 5)])].into(), ..Script::default() };
    let options = Options { namespaces: ["s".to_owned()].into(), ..Options::default() };
    let world = world(script, options).await;
    world.until("5", "absent").await;
    assert_eq!(world.asked("/api/v1/namespaces/s/pods?watch=true"), 1);
}

#[tokio::test]
async fn a_forbidden_list_without_namespaces_is_unknown_with_the_rule_that_is_missing() {
    let script = Script { lists: [refusal(403)].into(), ..Script::default() };
    let world = world(script, Options::default()).await;
    world
        .until("unknown: cannot list /api/v1/pods: the API server answered 403…", "unknown: …")
        .await;
    assert!(
        world
            .shown("a")
            .ends_with(r#"apiGroups: [""], resources: ["pods"], verbs: [get, list, watch]"#)
    );
}

#[tokio::test]
async fn a_kind_that_goes_away_is_unknown_and_comes_back_by_itself() {
    let script = Script {
        lists: [list(10, "", &[pod("a", 5)]), refusal(404), list(20, "", &[pod("b", 16)])].into(),
        ..Script::default()
    };
    let world = world(script, Options::default()).await;
    world.until("5", "absent").await;
    world.script.lock().unwrap().hidden = true;
    world.store.relist(&gvk());
    world.until("unknown: the API server does not serve v1 Pod", "unknown: …").await;
    world.script.lock().unwrap().hidden = false;
    world.until("absent", "16").await;
}

#[tokio::test]
async fn a_busy_servers_retry_after_is_honoured() {
    let script =
        Script { lists: [refusal(429), list(10, "", &[pod("a", 5)])].into(), ..Script::default() };
    let begun = Instant::now();
    let world = world(script, Options::default()).await;
    world.until("5", "absent").await;
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn late_interest_reads_one_object_and_many_cost_one_list() {
    let script = Script {
        lists: [list(10, "", &[pod("a", 5)])].into(),
        gets: [Reply::Answer(200, pod("c", 7))].into(),
        ..Script::default()
    };
    let world = world(script, Options::default()).await;
    world.until("5", "absent").await;
    world.store.set_interest(&gvk(), &HashSet::from([key("a"), key("b"), key("c")]));
    while world.shown("c") != "7" {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!((world.asked("/pods/c"), world.asked("limit=")), (1, 1));
    let many = (0..100).map(|n| key(&format!("n{n}"))).chain([key("a"), key("b")]).collect();
    world.store.set_interest(&gvk(), &many);
    while world.shown("n99") != "absent" {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!((world.asked("/pods/"), world.asked("limit=")), (1, 2));
}

#[tokio::test]
async fn a_cluster_that_went_back_in_time_is_believed_again() {
    let script = Script {
        lists: [list(1000, "", &[pod("a", 900)]), list(50, "", &[pod("a", 40), pod("b", 41)])]
            .into(),
        ..Script::default()
    };
    let world = world(script, Options::default()).await;
    world.until("900", "absent").await;
    world.store.relist(&gvk());
    world.until("40", "41").await;
}

#[tokio::test]
async fn the_tasks_end_with_the_store() {
    let script = Script { lists: [list(10, "", &[])].into(), ..Script::default() };
    let World { store, mut events, .. } = world(script, Options::default()).await;
    drop(store);
    let all = tokio::time::timeout(Duration::from_secs(5), async {
        while events.next().await.is_some() {}
    });
    all.await.expect("the queue closes");
}

#[tokio::test]
async fn an_old_servers_discovery_is_read_and_what_is_away_is_unknown() {
    let script =
        Script { lists: [list(10, "", &[pod("a", 5)])].into(), old: true, ..Script::default() };
    let world = world(script, Options::default()).await;
    world.until("5", "absent").await;
    let kinds = world.store.kinds().unwrap();
    let metrics = kinds.lookup(&Gvk::from_api_version("metrics.k8s.io/v1beta1", "NodeMetrics"));
    assert!(matches!(metrics, Lookup::Unknown(reason) if reason.contains("503")), "{metrics:?}");
}
