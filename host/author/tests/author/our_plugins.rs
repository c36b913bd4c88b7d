//! Our own plugins, built inside the workspace and run in the sandbox.

use crate::project;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use trimtab_author::{BuildOptions, Built, SIZE_GOAL_BYTES, build};
use trimtab_core::decision::{Action, Comparison, Difference, Verdict};
use trimtab_core::identity::{Digest, Gvk, ObjectKey};
use trimtab_core::object::{Desired, Live, LiveObject, Origin};
use trimtab_core::snapshot::Snapshot;
use trimtab_plugin_generic::Generic;
use trimtab_sdk::testing::Case;
use trimtab_wasm::{Lookups, NoLookups, Plugin, Sandbox, SandboxOptions};

/// Every plugin of ours: the crates under `plugins/`.
fn ours() -> Vec<String> {
    let entries = fs::read_dir(project().join("plugins")).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Where our plugins stand, on the way down to [`SIZE_GOAL_BYTES`]: some 50 KB are the SDK with
/// JSON and Rust's formatting, the rest is the comparison by meaning.
const CEILING_BYTES: u64 = 144 << 10;

fn built(name: &str) -> Built {
    let out = Some(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("plugins"));
    build(&project().join("plugins").join(name), &BuildOptions { out }).unwrap()
}

fn load(name: &str) -> Plugin {
    let sandbox = Sandbox::new(SandboxOptions::default()).unwrap();
    Plugin::load(&fs::read(built(name).file).unwrap(), &sandbox).unwrap()
}

static GENERIC: LazyLock<Plugin> = LazyLock::new(|| load("generic"));

fn no_lookups() -> Arc<dyn Lookups> {
    Arc::new(NoLookups)
}

fn snapshot(desired: &str, live: Option<&str>) -> Snapshot {
    let gvk = Gvk::from_api_version("v1", "ConfigMap");
    let key = ObjectKey::new(gvk.group_kind(), "shop", "a");
    let json = |text: &str| -> Arc<[u8]> { text.as_bytes().into() };
    Snapshot {
        key: key.clone(),
        gvk: gvk.clone(),
        desired: Arc::new(Desired {
            key,
            gvk,
            digest: Digest::of(desired.as_bytes()),
            json: json(desired),
            source: "test".into(),
            revision: "1".into(),
            origin: Origin { file: "a.yaml".into(), line: 1 },
            ignore: Default::default(),
            terms: Arc::default(),
        }),
        live: live.map_or(Live::Absent, |live| {
            Live::Present(LiveObject {
                json: json(live),
                uid: "u".into(),
                resource_version: "1".into(),
                deleting: false,
            })
        }),
        facts: Arc::default(),
        applied_uid: None,
        now_ms: 0,
        retries: 0,
        standoff: None,
    }
}

/// What came of it in the sandbox, as `trimtab_sdk::testing` writes it.
fn in_sandbox(desired: &str, live: Option<&str>) -> String {
    let snapshot = snapshot(desired, live);
    let text = |json: &Option<Vec<u8>>| {
        json.as_ref().map(|json| String::from_utf8(json.clone()).unwrap()).unwrap_or_default()
    };
    let shown = |each: &Difference| {
        let path = if each.path.is_empty() { "(root)" } else { &each.path };
        let live = each.live.as_ref().map(|_| format!(" <- {}", text(&each.live)));
        let desired = each.desired.as_ref().map(|_| format!(" {}", text(&each.desired)));
        let (desired, live) = (desired.unwrap_or_default(), live.unwrap_or_default());
        format!("{} {path}{desired}{live}\n", each.kind.as_str())
    };
    let differences = match GENERIC.compare(&snapshot, &no_lookups()).unwrap() {
        Comparison::InSync => return "in-sync\n".into(),
        Comparison::Invalid(how) => return format!("invalid: {how}\n"),
        Comparison::Unknown(why) => return format!("unknown: {why}\n"),
        Comparison::Different(differences) => differences,
    };
    let mut out: String = differences.iter().map(shown).collect();
    match GENERIC.decide(&snapshot, &differences, &no_lookups()).unwrap() {
        Verdict::Decided(decision) => {
            for action in &decision.actions {
                let paths = match action {
                    Action::RemoveFields(paths) => format!(" {}", paths.join(" ")),
                    _ => String::new(),
                };
                out.push_str(&format!("{}{paths}\n", action.kind().unwrap()));
            }
            for each in &decision.findings {
                out.push_str(&format!("finding {} {}\n", each.severity.as_str(), each.name));
            }
        }
        Verdict::Unknown(why) => out.push_str(&format!("unknown: {why}\n")),
        Verdict::Defer { reason, after_ms } => {
            out.push_str(&format!("defer {}s: {reason}\n", after_ms / 1000));
        }
    }
    out
}

#[test]
fn our_plugins_build_into_small_files_that_a_host_accepts() {
    for name in &ours() {
        let built = built(name);
        assert_eq!(built.inspection.manifest.name, *name);
        assert_eq!(built.file.file_name().unwrap().to_str().unwrap(), format!("{name}.wasm"));
        let size = fs::metadata(&built.file).unwrap().len();
        assert!(size <= CEILING_BYTES, "{name} has {size} bytes");
        assert_eq!(built.warning.is_some(), size > SIZE_GOAL_BYTES as u64);
    }
}

#[test]
fn a_built_file_does_not_tell_where_it_was_built() {
    let bytes = fs::read(built("generic").file).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    assert!(!text.contains(&*project().to_string_lossy()), "the project's folder");
    let home = std::env::var("HOME").unwrap_or_else(|_| "/nowhere".into());
    assert!(!text.contains(&format!("{home}/")), "the home folder");
}

#[test]
fn the_sandbox_answers_what_the_same_code_answers_natively() {
    let object = |data: &str| {
        format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a"}},"data":{data}}}"#
        )
    };
    let deleting = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a",
        "deletionTimestamp":"2026-01-01T00:00:00Z"},"data":{"a":"2"}}"#;
    for (desired, live) in [
        (object(r#"{"a":"1"}"#), Some(object(r#"{"a":"1"}"#))),
        (object(r#"{"a":"1"}"#), Some(object(r#"{"a":"2"}"#))),
        (object(r#"{"a":"1","b":"ö\u0000\"\\"}"#), Some(object("{}"))),
        (object(r#"{"a":"1"}"#), None),
        (object(r#"{"a":"1"}"#), Some(deleting.to_owned())),
        ("[]".to_owned(), None),
        (object(r#"{"a":"1","a":"2"}"#), None),
    ] {
        let mut case = Case::new().desired(&desired);
        if let Some(live) = &live {
            case = case.live(live);
        }
        assert_eq!(in_sandbox(&desired, live.as_deref()), case.run::<Generic>(), "{desired}");
    }
}

#[test]
fn the_deepest_object_that_is_read_fits_in_the_guests_stack() {
    // The object itself and its first field are levels too.
    let nested = |levels: usize, leaf: &str| {
        format!(
            r#"{{"apiVersion":"a.example/v1","kind":"Deep","spec":{}{leaf}{}}}"#,
            r#"{"a":"#.repeat(levels),
            "}".repeat(levels)
        )
    };
    let levels = trimtab_sdk::json::parse(nested(0, "1").as_bytes()).map(|_| 150).unwrap();
    let found = in_sandbox(&nested(levels, "1"), Some(&nested(levels, "2")));
    assert!(found.starts_with("changed /spec/a/a/"), "{found}");
    let found = in_sandbox(&nested(5000, "1"), None);
    assert!(found.contains("too deep"), "{found}");
    let brackets = "[".repeat(1_000_000);
    assert!(in_sandbox(&brackets, None).contains("too deep"));
}

#[test]
fn the_largest_objects_that_a_cluster_holds_fit_in_the_guests_memory() {
    let data: String = (0..40_000).map(|i| format!(r#""key-{i}":"{i:032}","#)).collect();
    let object = |last: &str| {
        format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a"}},"data":{{{data}"last":"{last}"}}}}"#
        )
    };
    assert!(object("").len() > 1_500_000);
    let found = in_sandbox(&object("1"), Some(&object("2")));
    assert!(found.starts_with("changed /data/last"), "{}", &found[..found.len().min(200)]);
}

#[test]
fn no_two_of_our_plugins_claim_one_kind() {
    let mut claims: Vec<String> = Vec::new();
    // Policies review what others serve.
    for name in ours().iter().filter(|name| !name.starts_with("policy-")) {
        for claim in &built(name).inspection.manifest.claims {
            assert!(!claims.contains(&claim.to_string()), "{name} claims {claim} as another does");
            claims.push(claim.to_string());
        }
    }
}

#[test]
fn a_plugin_that_may_not_read_autoscalers_goes_by_who_wrote_the_replicas() {
    let plugin = load("workloads");
    let live = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","managedFields":[
        {"manager":"kube-controller-manager","operation":"Update","subresource":"scale",
         "apiVersion":"apps/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}}}}]},
        "spec":{"replicas":5,"paused":false}}"#;
    let desired = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},
        "spec":{"replicas":2,"paused":true}}"#;
    let mut snapshot = snapshot(desired, Some(live));
    snapshot.gvk = Gvk::from_api_version("apps/v1", "Deployment");
    snapshot.key = ObjectKey::new(snapshot.gvk.group_kind(), "shop", "web");
    let Comparison::Different(all) = plugin.compare(&snapshot, &no_lookups()).unwrap() else {
        panic!("no difference");
    };
    let paths: Vec<_> = all.iter().map(|each| &*each.path).collect();
    assert_eq!(paths, ["/spec/paused"]);
    let Verdict::Decided(decision) = plugin.decide(&snapshot, &all, &no_lookups()).unwrap() else {
        panic!("no decision");
    };
    assert_eq!(decision.actions, [Action::ApplyDesired { without: vec!["/spec/replicas".into()] }]);
    assert_eq!(decision.findings[0].name, "field-owned-by-autoscaler");
}
