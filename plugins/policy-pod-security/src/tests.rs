//! Control by control: what passes and what fails, in every kind that holds a template and every
//! list of containers; and what the configuration does.

use super::*;
use std::collections::BTreeSet;
use trimtab_sdk::{Object, json};

/// Where a row's members go.
#[derive(Clone, Copy, PartialEq)]
enum At {
    /// Into the template.
    Template,
    /// Into the pod's `spec`.
    Pod,
    /// Into the container.
    Container,
    /// Into the pod's `spec` and into the container: both have a `securityContext`.
    Both,
}

use At::{Both, Container, Pod, Template};

/// A control, where the members go, what passes, what fails. Members are merged into a template that
/// passes at the restricted level; `null` takes out what is there.
type Row = (&'static str, At, &'static [&'static str], &'static [&'static str]);

const ROWS: &[Row] = &[
    (
        "host-process",
        Both,
        &[
            r#"{"securityContext":{"windowsOptions":{"hostProcess":false}}}"#,
            r#"{"securityContext":{"windowsOptions":{"hostProcess":null}}}"#,
            r#"{"securityContext":{"windowsOptions":{"runAsUserName":"a"}}}"#,
        ],
        &[r#"{"securityContext":{"windowsOptions":{"hostProcess":true}}}"#],
    ),
    (
        "host-namespaces",
        Pod,
        &[
            r#"{"hostNetwork":false,"hostPID":false,"hostIPC":false}"#,
            r#"{"hostNetwork":null,"hostPID":null,"hostIPC":null,"shareProcessNamespace":true}"#,
        ],
        &[r#"{"hostNetwork":true}"#, r#"{"hostPID":true}"#, r#"{"hostIPC":true}"#],
    ),
    (
        "privileged",
        Container,
        &[
            r#"{"securityContext":{"privileged":false}}"#,
            r#"{"securityContext":{"privileged":null}}"#,
        ],
        &[r#"{"securityContext":{"privileged":true}}"#],
    ),
    (
        "capabilities",
        Container,
        &[
            r#"{"securityContext":{"capabilities":{"add":[]}}}"#,
            r#"{"securityContext":{"capabilities":{"add":["AUDIT_WRITE","CHOWN","DAC_OVERRIDE","FOWNER",
               "FSETID","KILL","MKNOD","NET_BIND_SERVICE","SETFCAP","SETGID","SETPCAP","SETUID",
               "SYS_CHROOT"]}}}"#,
        ],
        &[
            r#"{"securityContext":{"capabilities":{"add":["NET_RAW"]}}}"#,
            r#"{"securityContext":{"capabilities":{"add":["CHOWN","SYS_ADMIN"]}}}"#,
            r#"{"securityContext":{"capabilities":{"add":["ALL"]}}}"#,
            r#"{"securityContext":{"capabilities":{"add":["CAP_CHOWN"]}}}"#,
            r#"{"securityContext":{"capabilities":{"add":["chown"]}}}"#,
        ],
    ),
    (
        "host-path-volumes",
        Pod,
        &[r#"{"volumes":[{"name":"a","hostPath":null,"emptyDir":{}}]}"#, r#"{"volumes":[]}"#],
        &[
            r#"{"volumes":[{"name":"a","hostPath":{"path":"/"}}]}"#,
            r#"{"volumes":[{"name":"a","emptyDir":{}},{"name":"b","hostPath":{}}]}"#,
        ],
    ),
    (
        "host-ports",
        Container,
        &[
            r#"{"ports":[{"containerPort":80}]}"#,
            r#"{"ports":[{"containerPort":80,"hostPort":0}]}"#,
        ],
        &[r#"{"ports":[{"containerPort":80},{"containerPort":81,"hostPort":81}]}"#],
    ),
    (
        "host-probes",
        Container,
        &[
            r#"{"livenessProbe":{"httpGet":{"port":80}},"readinessProbe":{"tcpSocket":{"port":80,"host":""}}}"#,
            r#"{"lifecycle":{"preStop":{"exec":{"command":["a"]}}},"startupProbe":{"httpGet":{"host":null}}}"#,
        ],
        &[
            r#"{"livenessProbe":{"httpGet":{"port":80,"host":"127.0.0.1"}}}"#,
            r#"{"readinessProbe":{"httpGet":{"port":80,"host":"a"}}}"#,
            r#"{"startupProbe":{"tcpSocket":{"port":80,"host":"a"}}}"#,
            r#"{"lifecycle":{"postStart":{"httpGet":{"port":80,"host":"a"}}}}"#,
            r#"{"lifecycle":{"preStop":{"tcpSocket":{"port":80,"host":"a"}}}}"#,
        ],
    ),
    (
        "apparmor",
        Both,
        &[
            r#"{"securityContext":{"appArmorProfile":{"type":"RuntimeDefault"}}}"#,
            r#"{"securityContext":{"appArmorProfile":{"type":"Localhost","localhostProfile":"a"}}}"#,
            r#"{"securityContext":{"appArmorProfile":null}}"#,
        ],
        &[r#"{"securityContext":{"appArmorProfile":{"type":"Unconfined"}}}"#],
    ),
    (
        "apparmor",
        Template,
        &[
            r#"{"metadata":{"annotations":{"container.apparmor.security.beta.kubernetes.io/a":"runtime/default"}}}"#,
            r#"{"metadata":{"annotations":{"container.apparmor.security.beta.kubernetes.io/a":"localhost/x"}}}"#,
            r#"{"metadata":{"annotations":{"container.apparmor.security.beta.kubernetes.io/a":""}}}"#,
        ],
        &[
            r#"{"metadata":{"annotations":{"container.apparmor.security.beta.kubernetes.io/a":"unconfined"}}}"#,
        ],
    ),
    (
        "selinux",
        Both,
        &[
            r#"{"securityContext":{"seLinuxOptions":{"type":"container_t","user":"","level":"s0"}}}"#,
            r#"{"securityContext":{"seLinuxOptions":{"type":"container_init_t"}}}"#,
            r#"{"securityContext":{"seLinuxOptions":{"type":"container_kvm_t"}}}"#,
            r#"{"securityContext":{"seLinuxOptions":{"type":"container_engine_t"}}}"#,
            r#"{"securityContext":{"seLinuxOptions":{"type":"","role":""}}}"#,
        ],
        &[
            r#"{"securityContext":{"seLinuxOptions":{"type":"spc_t"}}}"#,
            r#"{"securityContext":{"seLinuxOptions":{"user":"system_u"}}}"#,
            r#"{"securityContext":{"seLinuxOptions":{"role":"system_r"}}}"#,
        ],
    ),
    (
        "proc-mount",
        Container,
        &[
            r#"{"securityContext":{"procMount":"Default"}}"#,
            r#"{"securityContext":{"procMount":null}}"#,
        ],
        &[
            r#"{"securityContext":{"procMount":"Unmasked"}}"#,
            r#"{"securityContext":{"procMount":""}}"#,
        ],
    ),
    (
        "seccomp",
        Both,
        &[
            r#"{"securityContext":{"seccompProfile":{"type":"RuntimeDefault"}}}"#,
            r#"{"securityContext":{"seccompProfile":{"type":"Localhost","localhostProfile":"a"}}}"#,
            r#"{"securityContext":{"seccompProfile":null}}"#,
        ],
        &[
            r#"{"securityContext":{"seccompProfile":{"type":"Unconfined"}}}"#,
            r#"{"securityContext":{"seccompProfile":{"type":null}}}"#,
        ],
    ),
    (
        "sysctls",
        Pod,
        &[r#"{"securityContext":{"sysctls":[{"name":"kernel.shm_rmid_forced","value":"0"},
               {"name":"net.ipv4.ip_local_port_range","value":"1 2"},{"name":"net.ipv4.tcp_syncookies"},
               {"name":"net.ipv4.ping_group_range"},{"name":"net.ipv4.ip_unprivileged_port_start"},
               {"name":"net.ipv4.ip_local_reserved_ports"},{"name":"net.ipv4.tcp_keepalive_time"},
               {"name":"net.ipv4.tcp_fin_timeout"},{"name":"net.ipv4.tcp_keepalive_intvl"},
               {"name":"net.ipv4.tcp_keepalive_probes"},{"name":"net.ipv4.tcp_rmem"},
               {"name":"net.ipv4.tcp_wmem"},{"name":"net.ipv4.tcp_slow_start_after_idle"},
               {"name":"net.ipv4.tcp_notsent_lowat"}]}}"#],
        &[
            r#"{"securityContext":{"sysctls":[{"name":"kernel.msgmax","value":"1"}]}}"#,
            r#"{"securityContext":{"sysctls":[{"value":"1"}]}}"#,
        ],
    ),
    (
        "volume-types",
        Pod,
        &[r#"{"volumes":[{"name":"a"},{"name":"b","configMap":{}},{"name":"c","csi":{}},
             {"name":"d","downwardAPI":{}},{"name":"e","emptyDir":{}},{"name":"f","ephemeral":{}},
             {"name":"g","image":{}},{"name":"h","persistentVolumeClaim":{}},{"name":"i","projected":{}},
             {"name":"j","secret":{},"nfs":null}]}"#],
        &[
            r#"{"volumes":[{"name":"a","hostPath":{"path":"/"}}]}"#,
            r#"{"volumes":[{"name":"a","nfs":{"server":"a","path":"/"}}]}"#,
            r#"{"volumes":[{"name":"a","gitRepo":{}}]}"#,
            r#"{"volumes":[{"name":"a","iscsi":{}}]}"#,
            r#"{"volumes":[{"name":"a","ofTheFuture":{}}]}"#,
        ],
    ),
    (
        "privilege-escalation",
        Container,
        &[r#"{"securityContext":{"allowPrivilegeEscalation":false}}"#],
        &[
            r#"{"securityContext":{"allowPrivilegeEscalation":true}}"#,
            r#"{"securityContext":{"allowPrivilegeEscalation":null}}"#,
            r#"{"securityContext":null}"#,
        ],
    ),
    (
        "run-as-non-root",
        Both,
        &[r#"{"securityContext":{"runAsNonRoot":true}}"#],
        &[r#"{"securityContext":{"runAsNonRoot":false}}"#],
    ),
    (
        "run-as-non-root",
        Pod,
        &[],
        &[r#"{"securityContext":{"runAsNonRoot":null}}"#, r#"{"securityContext":null}"#],
    ),
    (
        "run-as-user",
        Both,
        &[
            r#"{"securityContext":{"runAsUser":1000}}"#,
            r#"{"securityContext":{"runAsUser":null,"runAsGroup":0}}"#,
        ],
        &[r#"{"securityContext":{"runAsUser":0}}"#],
    ),
    (
        "seccomp-restricted",
        Both,
        &[
            r#"{"securityContext":{"seccompProfile":{"type":"RuntimeDefault"}}}"#,
            r#"{"securityContext":{"seccompProfile":{"type":"Localhost","localhostProfile":"a"}}}"#,
        ],
        &[r#"{"securityContext":{"seccompProfile":{"type":"Unconfined"}}}"#],
    ),
    ("seccomp-restricted", Pod, &[], &[r#"{"securityContext":{"seccompProfile":null}}"#]),
    (
        "capabilities-restricted",
        Container,
        &[
            r#"{"securityContext":{"capabilities":{"drop":["ALL"],"add":["NET_BIND_SERVICE"]}}}"#,
            r#"{"securityContext":{"capabilities":{"drop":["CHOWN","ALL"]}}}"#,
        ],
        &[
            r#"{"securityContext":{"capabilities":{"drop":["NET_RAW"]}}}"#,
            r#"{"securityContext":{"capabilities":{"drop":["all"]}}}"#,
            r#"{"securityContext":{"capabilities":null}}"#,
            r#"{"securityContext":{"capabilities":{"add":["CHOWN"]}}}"#,
        ],
    ),
];

/// Passes at the restricted level; `CONTAINER` stands in each list.
const CONTAINER: &str = r#"{"name":"a","image":"a","securityContext":
    {"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}}"#;
const POD: &str =
    r#"{"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}}}"#;

fn read(text: &'static str) -> Value<'static> {
    json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Objects are merged, all else is replaced.
fn merge(into: &mut Value<'static>, from: Value<'static>) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                match into.get_mut(&name) {
                    Some(held) => merge(held, value),
                    None => {
                        into.insert(name, value);
                    }
                }
            }
        }
        (into, from) => *into = from,
    }
}

/// An object of a kind whose template passes but for these members.
fn object(kind: usize, list: &'static str, at: At, members: &'static str) -> Value<'static> {
    let (mut container, mut spec) = (read(CONTAINER), read(POD));
    if at == Container {
        merge(&mut container, read(members));
    }
    let spec_object = spec.as_object_mut().unwrap();
    spec_object.insert("containers", vec![read(CONTAINER)]);
    spec_object.insert(list, vec![read(CONTAINER), container]);
    if at == Pod {
        merge(&mut spec, read(members));
    }
    let mut template = Value::from(Object::new().with("spec", spec));
    if at == Template {
        merge(&mut template, read(members));
    }
    pods::KINDS[kind]
        .2
        .iter()
        .rev()
        .fold(template, |inner, name| Value::from(Object::new().with(*name, inner)))
}

fn id(kind: usize) -> ObjectId<'static> {
    let (group, kind, _) = pods::KINDS[kind];
    ObjectId { group, version: "v1", kind, namespace: "shop", name: "a" }
}

fn names(kind: usize, object: &Value<'_>, level: Level, minor: u32) -> BTreeSet<&'static str> {
    let template = pods::template(&id(kind), object).expect("a template");
    let found = broken(&template, level, minor);
    found.into_iter().map(|found| found.control.name).collect()
}

/// The places that a row's members are tried in.
fn places(at: At) -> Vec<(&'static str, At)> {
    match at {
        Template | Pod => vec![("containers", at)],
        Container => pods::LISTS.map(|list| (list, at)).to_vec(),
        Both => [places(Pod), places(Container)].concat(),
    }
}

#[test]
fn every_control_passes_and_fails_what_the_official_page_says_in_every_place() {
    let mut tried = 0;
    for (control, at, passes, fails) in ROWS {
        let level = CONTROLS.iter().find(|it| it.name == *control).expect("a control").level;
        for (kind, (list, at)) in (0..pods::KINDS.len())
            .flat_map(|kind| places(*at).into_iter().map(move |it| (kind, it)))
        {
            for (members, wanted) in
                passes.iter().map(|it| (it, false)).chain(fails.iter().map(|it| (it, true)))
            {
                let object = object(kind, list, at, members);
                let found = names(kind, &object, level, NEWEST);
                let place = format!("{control} in {} {list}: {members}: {found:?}", id(kind).kind);
                assert_eq!(found.contains(control), wanted, "{place}");
                if level == Level::Baseline {
                    assert_eq!(found.len(), usize::from(wanted), "{place}");
                }
                tried += 1;
            }
        }
    }
    assert!(tried > 1000, "{tried}");
}

#[test]
fn every_control_has_a_row_with_what_fails() {
    for control in CONTROLS {
        assert!(ROWS.iter().any(|(name, _, _, fails)| *name == control.name && !fails.is_empty()));
    }
}

#[test]
fn the_template_that_rows_begin_with_passes_at_every_level_and_breaks_nothing_of_another() {
    for kind in 0..pods::KINDS.len() {
        let object = object(kind, "initContainers", Pod, "{}");
        assert!(names(kind, &object, Level::Restricted, NEWEST).is_empty());
    }
}

#[test]
fn a_user_namespace_relaxes_who_runs_since_1_35_and_proc_at_the_baseline_alone() {
    let members = r#"{"hostUsers":false,"securityContext":{"runAsUser":0,"runAsNonRoot":false}}"#;
    let root = object(0, "containers", Pod, members);
    assert!(names(0, &root, Level::Restricted, 35).is_empty());
    let found = names(0, &root, Level::Restricted, 34);
    assert_eq!(found, BTreeSet::from(["run-as-non-root", "run-as-user"]));

    let unmasked = r#"{"hostUsers":false,"containers":[{"name":"a","securityContext":{
        "allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]},"procMount":"Unmasked"}}]}"#;
    let unmasked = object(0, "initContainers", Pod, unmasked);
    assert!(names(0, &unmasked, Level::Baseline, 35).is_empty());
    assert_eq!(names(0, &unmasked, Level::Baseline, 34), BTreeSet::from(["proc-mount"]));
    assert_eq!(names(0, &unmasked, Level::Restricted, 35), BTreeSet::from(["proc-mount"]));
}

#[test]
fn pods_of_windows_need_not_state_what_only_linux_has() {
    let members = r#"{"os":{"name":"windows"},"securityContext":{"runAsNonRoot":true,"seccompProfile":null},
        "containers":[{"name":"a"}]}"#;
    let windows = object(0, "initContainers", Pod, members);
    assert!(names(0, &windows, Level::Restricted, NEWEST).is_empty());
    let linux = object(0, "initContainers", Pod, members);
    let mut linux = linux;
    merge(&mut linux, read(r#"{"spec":{"os":{"name":"linux"}}}"#));
    assert_eq!(
        names(0, &linux, Level::Restricted, NEWEST),
        BTreeSet::from(["capabilities-restricted", "privilege-escalation", "seccomp-restricted"])
    );
}

#[test]
fn the_version_decides_which_sysctls_types_and_probes_are_judged() {
    let sysctl = |name: &'static str| object(0, "containers", Pod, name);
    let rmem = sysctl(r#"{"securityContext":{"sysctls":[{"name":"net.ipv4.tcp_rmem"}]}}"#);
    assert_eq!(names(0, &rmem, Level::Baseline, 31), BTreeSet::from(["sysctls"]));
    assert!(names(0, &rmem, Level::Baseline, 32).is_empty());
    let engine = r#"{"securityContext":{"seLinuxOptions":{"type":"container_engine_t"}}}"#;
    let engine = object(0, "containers", Container, engine);
    assert_eq!(names(0, &engine, Level::Baseline, 30), BTreeSet::from(["selinux"]));
    assert!(names(0, &engine, Level::Baseline, 31).is_empty());
    let probe = r#"{"livenessProbe":{"httpGet":{"host":"a"}}}"#;
    let probe = object(0, "containers", Container, probe);
    assert!(names(0, &probe, Level::Baseline, 33).is_empty());
    assert_eq!(names(0, &probe, Level::Baseline, 34), BTreeSet::from(["host-probes"]));
}

#[track_caller]
fn check(namespace: &'static str, configuration: &'static str, denied: &[&str]) {
    let object = object(
        3,
        "containers",
        Container,
        r#"{"securityContext":{"privileged":true,"capabilities":null}}"#,
    );
    let id = ObjectId { namespace, ..id(3) };
    let reasons = review(&id, &object, &read(configuration));
    let found: Vec<_> = reasons.denied.iter().map(|reason| reason.control.as_str()).collect();
    assert_eq!(found, denied, "{reasons:?}");
}

#[test]
fn the_level_is_that_of_the_first_pattern_that_fits_the_namespace() {
    let levels = r#"{"default":"restricted","namespaces":[{"match":"kube-*","level":"privileged"},
        {"match":"*","level":"baseline"}]}"#;
    check("kube-system", levels, &[]);
    check("shop", levels, &["privileged"]);
    check("shop", "null", &["privileged"]);
    check("shop", r#"{"default":"restricted"}"#, &["privileged", "capabilities-restricted"]);
    check("shop", r#"{"effect":"warn"}"#, &[]);
}

#[test]
fn who_is_exempt_is_so_from_the_controls_that_are_named() {
    let exempt = |rest: &str| -> &'static str {
        format!(r#"{{"default":"restricted","exempt":[{rest}]}}"#).leak()
    };
    check(
        "shop",
        exempt(r#"{"namespaces":["sh*"],"controls":["privileged"]}"#),
        &["capabilities-restricted"],
    );
    check("shop", exempt(r#"{"kinds":["Deployment.apps"],"names":["a"]}"#), &[]);
    check(
        "shop",
        exempt(r#"{"kinds":["Deployment"]}"#),
        &["privileged", "capabilities-restricted"],
    );
}

#[test]
fn a_configuration_that_cannot_be_read_denies_and_says_why() {
    for (text, told) in [
        (r#"{"levels":{}}"#, "there is no key \"levels\""),
        (r#"{"default":"strict"}"#, "\"strict\" is none of privileged, baseline, restricted"),
        (r#"{"version":"1.30"}"#, "\"latest\" or a version from \"v1.25\" on is wanted"),
        (r#"{"version":"v1.24"}"#, "\"latest\" or a version"),
        (r#"{"namespaces":[{"match":"a"}]}"#, "/namespaces/0: level has to be stated"),
    ] {
        let reasons = review(&id(0), &Value::Null, &read(text));
        assert_eq!(reasons.denied.len(), 1);
        assert_eq!(reasons.denied[0].control, "configuration");
        assert!(reasons.denied[0].message.contains(told), "{}", reasons.denied[0].message);
    }
}

#[test]
fn what_looks_like_pods_in_an_unknown_kind_is_told_as_not_seen() {
    let farm = read(r#"{"spec":{"pods":{"containers":[{"image":"a"}]}}}"#);
    let id = ObjectId { group: "example.com", kind: "Farm", ..id(0) };
    let reasons = review(&id, &farm, &Value::Null);
    assert!(reasons.denied.is_empty());
    assert_eq!(reasons.warned[0].control, "pod-template-not-seen");
    assert_eq!(reasons.warned[0].path.as_ref().unwrap().to_string(), "/spec/pods/containers");
    assert_eq!(review(&id, &farm, &read(r#"{"unseen":"deny"}"#)).denied.len(), 1);
    assert!(review(&id, &farm, &read(r#"{"default":"privileged"}"#)).is_empty());
}

#[test]
fn a_reason_has_the_level_what_to_do_and_the_place() {
    let object = object(
        8,
        "initContainers",
        Container,
        r#"{"name":"b","securityContext":{"privileged":true}}"#,
    );
    let reasons = review(&id(8), &object, &Value::Null);
    let reason = &reasons.denied[0];
    assert_eq!(reason.message, "baseline: a privileged container is as good as the node itself");
    assert_eq!(
        reason.path.as_ref().unwrap().to_string(),
        "/spec/jobTemplate/spec/template/spec/initContainers/[name=b]/securityContext/privileged"
    );
}
