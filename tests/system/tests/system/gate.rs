//! The gate on a real API server: a plugin that asks for everything, and an audit log that holds
//! granted writes alone.

use crate::world::{Test, run, shared};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use trimtab_system_tests::{Cluster, Room, workspace};

/// What an object asks for that a grant can allow, with the action's word.
const ACTIONS: [(&str, &str); 7] = [
    ("apply", "apply-desired"),
    ("adopt", "adopt"),
    ("recreate", "recreate"),
    ("delete", "delete"),
    ("remove", "remove-fields"),
    ("content", "apply-content"),
    ("status", "patch-status"),
];

/// What no grant allows.
const OVERSTEPS: [&str; 6] = ["elsewhere", "another", "nameless", "hold", "own", "list"];

/// Kinds by apiVersion, with what makes an object of it, and the denial that holds it.
const KINDS: [(&str, &str, bool, &str); 4] = [
    ("v1", "ConfigMap", true, ""),
    ("rbac.authorization.k8s.io/v1", "Role", true, "rbac"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole", false, "rbac"),
    ("scheduling.k8s.io/v1", "PriorityClass", false, ""),
];

/// A grant in its own words, and what it is to let through.
struct Case {
    room: &'static str,
    kinds: &'static [&'static str],
    cluster_scoped: bool,
    actions: &'static [&'static str],
    lifts: &'static [&'static str],
}

impl Case {
    fn grants(&self, kind: &str, namespaced: bool, inside: bool, word: &str, denial: &str) -> bool {
        let named = |pattern: &&str| *pattern == "*" || pattern.split('.').next() == Some(kind);
        self.kinds.iter().any(named)
            && (if namespaced { inside } else { self.cluster_scoped })
            && self.actions.contains(&word)
            && (denial.is_empty() || self.lifts.contains(&denial))
    }
}

/// The object as it lives before, and as it is declared.
fn both(api_version: &str, kind: &str, namespace: &str, name: &str, ask: &str) -> (Value, Value) {
    let mut live = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    if !namespace.is_empty() {
        live["metadata"]["namespace"] = namespace.into();
    }
    match kind {
        "ConfigMap" => live["data"] = json!({"a": "1"}),
        "PriorityClass" => live["value"] = json!(1000),
        _ => live["rules"] = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]),
    }
    let mut desired = live.clone();
    desired["metadata"]["annotations"] =
        json!({"overreach.example/ask": ask, "trimtab.dev/on-immutable": "recreate"});
    live["metadata"]["labels"] = json!({"stray": "1"});
    (live, desired)
}

fn plural(kind: &str) -> String {
    if kind.ends_with('s') {
        format!("{}es", kind.to_lowercase())
    } else {
        format!("{}s", kind.to_lowercase())
    }
}

/// Makes everything live, declares it, and gives the names of what may be written.
async fn prepare(cluster: &Cluster, room: &Room, case: &Case) -> Result<BTreeSet<String>> {
    let mut granted = BTreeSet::new();
    let mut declared = Vec::new();
    let (inside, outside) = (case.room.to_owned(), format!("{}-out", case.room));
    for namespace in [&inside, &outside] {
        let object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        cluster.api().create(&object).await?;
    }
    for (api_version, kind, namespaced, denial) in KINDS {
        let places: &[&str] = if namespaced { &[&inside, &outside] } else { &[""] };
        let asks = ACTIONS.iter().map(|(ask, word)| (*ask, *word));
        for (ask, word) in asks.chain(OVERSTEPS.map(|ask| (ask, ""))) {
            for namespace in places {
                let name = format!("{}-{ask}", case.room);
                let grants = case.grants(kind, namespaced, *namespace == inside, word, denial);
                // None of these kinds has a status: a granted patch of it is the server's to refuse.
                if grants && ask == "status" {
                    continue;
                }
                let (live, desired) = both(api_version, kind, namespace, &name, ask);
                cluster.api().create(&live).await?;
                declared.push(desired.to_string());
                if grants {
                    granted.insert(format!("{} {namespace}/{name}", plural(kind)));
                }
            }
        }
    }
    room.declare("all.yaml", &declared.join("\n---\n"))?;
    Ok(granted)
}

async fn holds(case: Case) -> Result<()> {
    let cluster = shared().await?;
    let room = cluster.room(case.room)?;
    let crate_dir = workspace().join("tests/guests/overreach");
    let plugins = room.plugins();
    room.built().output(&[
        "plugin".as_ref(),
        "build".as_ref(),
        crate_dir.as_os_str(),
        "--out".as_ref(),
        plugins.as_os_str(),
    ])?;
    let file = plugins.join("overreach.wasm");
    let cluster_scoped = case.cluster_scoped.to_string();
    let (kinds, actions) = (case.kinds.join(","), case.actions.join(","));
    let lifts = case.lifts.join(",");
    let mut arguments: Vec<&std::ffi::OsStr> =
        vec!["plugin".as_ref(), "grant".as_ref(), file.as_os_str()];
    for (flag, value) in [
        ("--mode", "enforce"),
        ("--kind", &kinds),
        ("--namespace", case.room),
        ("--cluster-scoped", &cluster_scoped),
        ("--action", &actions),
        ("--allow", &lifts),
    ] {
        if !value.is_empty() {
            arguments.extend([flag.as_ref(), std::ffi::OsStr::new(value)]);
        }
    }
    room.grant("overreach", &room.built().output(&arguments)?)?;
    let granted = prepare(cluster, &room, &case).await?;
    let once = room.once().await?;
    let writes = cluster.audit().writes_by(room.user()).await?;
    let written: BTreeSet<String> =
        writes.iter().map(|it| format!("{} {}/{}", it.resource, it.namespace, it.name)).collect();
    ensure!(
        written == granted,
        "outside the grant: {:?}; granted and not written: {:?}; {:?}",
        written.difference(&granted).collect::<Vec<_>>(),
        granted.difference(&written).collect::<Vec<_>>(),
        once.unsettled()
    );
    let told = room.journal().lines()?;
    for (ask, reason) in [
        ("elsewhere", "ContentOfAnotherObject"),
        ("another", "ContentOfAnotherObject"),
        ("list", "ContentOfAnotherObject"),
        ("nameless", "HostOwnedField"),
        ("hold", "HostOwnedField"),
        ("own", "HostOwnedField"),
    ] {
        let name = format!("{}-{ask}", case.room);
        let refused = told.iter().any(|line| {
            let line = line.0.to_string();
            line.contains(&name) && line.contains(reason) && line.contains("plugin-overstepped")
        });
        ensure!(
            !case.actions.contains(&"apply-content") || refused,
            "{name} is not told as {reason}"
        );
    }
    Ok(())
}

#[test]
fn with_every_action_granted_in_one_namespace_nothing_is_written_elsewhere_or_denied() -> Test {
    run(holds(Case {
        room: "gate-wide",
        kinds: &["ConfigMap", "Role.rbac.authorization.k8s.io", "PriorityClass.scheduling.k8s.io"],
        cluster_scoped: false,
        actions: &[
            "apply-desired",
            "adopt",
            "recreate",
            "delete",
            "remove-fields",
            "apply-content",
            "patch-status",
        ],
        lifts: &[],
    }))
}

#[test]
fn with_one_action_granted_on_every_kind_and_a_denial_lifted_no_other_action_is_done() -> Test {
    run(holds(Case {
        room: "gate-narrow",
        kinds: &["*"],
        cluster_scoped: true,
        actions: &["adopt", "apply-content"],
        lifts: &["rbac"],
    }))
}
