//! Pods: one that passes, or states nothing, with up to four changes of what the controls look at.

use crate::oracle::random::Random;
use serde_json::{Map, Value, json};

/// What a change is made of: the values that are tried there.
type Values = fn() -> Value;

/// Changes of a `securityContext`, a pod's or a container's.
const SHARED: [Values; 6] = [
    || json!({"seccompProfile": [{"type": "RuntimeDefault"}, {"type": "Unconfined"}, {"type": "Localhost", "localhostProfile": "a.json"}, null]}),
    || json!({"appArmorProfile": [{"type": "RuntimeDefault"}, {"type": "Unconfined"}, {"type": "Localhost", "localhostProfile": "a"}, null]}),
    || {
        json!({"seLinuxOptions": [{}, null, {"type": "container_t", "level": "s0"}, {"type": "container_engine_t"},
        {"type": "spc_t"}, {"user": "system_u"}, {"role": "system_r"}, {"type": "", "user": ""}]})
    },
    || json!({"runAsNonRoot": [true, false, null]}),
    || json!({"runAsUser": [0, 1000, null]}),
    || json!({"windowsOptions": [null, {}, {"runAsUserName": "a"}, {"hostProcess": false}]}),
];

/// Changes of a container's `securityContext` alone.
const CONTAINER: [Values; 4] = [
    || json!({"privileged": [true, false, null]}),
    || json!({"allowPrivilegeEscalation": [true, false, null]}),
    || json!({"procMount": ["Default", "Unmasked", null]}),
    || {
        json!({"capabilities": [null, {}, {"drop": ["ALL"]}, {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]},
        {"drop": ["all"]}, {"drop": ["NET_RAW", "ALL"], "add": ["CHOWN"]}, {"add": ["NET_RAW"]}, {"add": ["SYS_TIME", "KILL"]},
        {"drop": ["ALL"], "add": []}]})
    },
];

/// Changes of a container that the server refuses for one that is added to a running pod.
const CALLED: [Values; 6] = [
    || json!({"ports": [[{"containerPort": 80}], [{"containerPort": 80, "hostPort": 0}], [{"containerPort": 80, "hostPort": 80}]]}),
    || json!({"livenessProbe": [{"httpGet": {"port": 80}}, {"httpGet": {"port": 80, "host": "127.0.0.1"}}, {"tcpSocket": {"port": 80, "host": ""}}]}),
    || json!({"readinessProbe": [{"exec": {"command": ["a"]}}, {"tcpSocket": {"port": 80, "host": "a"}}]}),
    || json!({"startupProbe": [{"grpc": {"port": 80}}, {"httpGet": {"port": 80, "host": "a"}}]}),
    || json!({"lifecycle": [{"postStart": {"exec": {"command": ["a"]}}}, {"postStart": {"httpGet": {"port": 80, "host": "a"}}}, {"preStop": {"httpGet": {"port": 80}}}]}),
    || json!({"lifecycle": [{"preStop": {"tcpSocket": {"port": 80, "host": "a"}}}, {"preStop": {"sleep": {"seconds": 1}}}]}),
];

/// Changes of a pod's `spec`.
const POD: [Values; 5] = [
    || json!({"hostNetwork": [true, false, null]}),
    || json!({"hostPID": [true, false]}),
    || json!({"hostIPC": [true, null]}),
    || json!({"hostUsers": [true, false, false, null]}),
    || {
        json!({"volumes": [
            {"hostPath": {"path": "/var"}}, {"hostPath": {"path": "/"}}, {"hostPath": {"path": "/a", "type": "File"}},
            {"hostPath": {"path": "/b"}}, {"emptyDir": {}}, {"configMap": {"name": "a"}}, {"secret": {"secretName": "a"}},
            {"nfs": {"server": "a", "path": "/"}}, {"downwardAPI": {}}, {"projected": {"sources": []}},
            {"persistentVolumeClaim": {"claimName": "a"}}, {"csi": {"driver": "a.example.com"}}, {},
            {"iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:a", "lun": 0}},
            {"awsElasticBlockStore": {"volumeID": "a"}}, {"gcePersistentDisk": {"pdName": "a"}},
            {"azureDisk": {"diskName": "a", "diskURI": "/subscriptions/a"}}, {"azureFile": {"secretName": "a", "shareName": "a"}},
            {"cephfs": {"monitors": ["a"]}}, {"cinder": {"volumeID": "a"}}, {"fc": {"targetWWNs": ["a"], "lun": 0}},
            {"flexVolume": {"driver": "a/b"}}, {"flocker": {"datasetName": "a"}}, {"glusterfs": {"endpoints": "a", "path": "a"}},
            {"portworxVolume": {"volumeID": "a"}}, {"quobyte": {"registry": "a:1", "volume": "a"}}, {"rbd": {"monitors": ["a"], "image": "a"}},
            {"scaleIO": {"gateway": "a", "system": "a", "volumeName": "a", "secretRef": {"name": "a"}}},
            {"storageos": {"volumeName": "a"}}, {"vsphereVolume": {"volumePath": "a"}}, {"photonPersistentDisk": {"pdID": "a"}},
            {"image": {"reference": "a", "pullPolicy": "Always"}}, {"gitRepo": {"repository": "a"}},
            {"ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}}}}}}
        ]})
    },
];

const SYSCTLS: [&str; 9] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_notsent_lowat",
    "kernel.msgmax",
    "net.core.somaxconn",
];

/// A pod that every level admits.
pub(super) fn compliant() -> Value {
    let security = json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    let container = |name: &str| json!({"name": name, "image": "registry.example.com/a:1", "securityContext": security});
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {},
        "spec": {
            "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [container("a"), container("b")],
            "initContainers": [container("i")],
        }
    })
}

/// A pod.
pub(super) fn pod(random: &mut Random) -> Value {
    if random.once_in(12) {
        return windows(random);
    }
    let mut pod = compliant();
    if random.once_in(4) {
        // One that states nothing.
        for list in ["containers", "initContainers"] {
            for container in pod["spec"][list].as_array_mut().into_iter().flatten() {
                container["securityContext"] = Value::Null;
            }
        }
        pod["spec"]["securityContext"] = json!({});
    }
    for _ in 0..random.below(5) {
        change(&mut pod, random);
    }
    settle(&mut pod);
    pod
}

fn change(pod: &mut Value, random: &mut Random) {
    let spec = &mut pod["spec"];
    match random.below(12) {
        0 | 1 => set(spec, POD[random.below(POD.len())](), random),
        2 | 3 => set(&mut spec["securityContext"], SHARED[random.below(SHARED.len())](), random),
        4..=6 => {
            let container = some_container(spec, random);
            set(&mut container["securityContext"], SHARED[random.below(SHARED.len())](), random);
        }
        7 | 8 => {
            let container = some_container(spec, random);
            set(
                &mut container["securityContext"],
                CONTAINER[random.below(CONTAINER.len())](),
                random,
            );
        }
        9 | 10 => {
            let ports = random.below(2) * random.below(CALLED.len());
            // Containers that run before others are not probed.
            let list = if ports == 0 { "initContainers" } else { "containers" };
            set(&mut spec[list][0], CALLED[ports](), random);
        }
        _ if random.once_in(2) => {
            let name = SYSCTLS[random.below(SYSCTLS.len())];
            spec["securityContext"]["sysctls"] = json!([{"name": name, "value": "1"}]);
        }
        _ => {
            let profiles = ["runtime/default", "localhost/a", "unconfined"];
            let profile = profiles[random.below(profiles.len())];
            pod["metadata"]["annotations"] =
                json!({"container.apparmor.security.beta.kubernetes.io/a": profile});
        }
    }
}

fn some_container<'v>(spec: &'v mut Value, random: &mut Random) -> &'v mut Value {
    match random.below(3) {
        0 => &mut spec["initContainers"][0],
        index => &mut spec["containers"][index - 1],
    }
}

/// Sets one member to one of the values that are tried for it.
fn set(holder: &mut Value, values: Value, random: &mut Random) {
    let Value::Object(values) = values else { return };
    for (name, values) in values {
        let tried = values.as_array().map(Vec::as_slice).unwrap_or_default();
        let Some(value) = random.pick(tried).cloned() else { continue };
        if holder.is_null() {
            *holder = Value::Object(Map::new());
        }
        if name == "volumes" {
            let mut volume = value;
            volume["name"] = "v".into();
            holder[&name] = json!([volume, {"name": "w", "emptyDir": {}}]);
        } else {
            holder[&name] = value;
        }
    }
}

/// Takes out what the server's validation refuses together, whatever the level.
fn settle(pod: &mut Value) {
    let text = pod.to_string();
    if text.contains("Unmasked") {
        // Only a pod with users of its own may ask for it.
        for shared in ["hostNetwork", "hostPID", "hostIPC"] {
            pod["spec"][shared] = Value::Null;
        }
        pod["spec"]["hostUsers"] = false.into();
    }
    for list in ["containers", "initContainers"] {
        for container in pod["spec"][list].as_array_mut().into_iter().flatten() {
            let context = &mut container["securityContext"];
            if context["privileged"] == Value::Bool(true)
                && context["allowPrivilegeEscalation"] == Value::Bool(false)
            {
                context["allowPrivilegeEscalation"] = Value::Null;
            }
        }
    }
}

/// A pod for Windows; now and then with a process of the node's own.
fn windows(random: &mut Random) -> Value {
    let container = json!({"name": "a", "image": "registry.example.com/a:1"});
    let mut spec =
        json!({"os": {"name": "windows"}, "containers": [container], "securityContext": {}});
    if random.once_in(2) {
        spec["hostNetwork"] = true.into();
        spec["securityContext"]["windowsOptions"] = json!({"hostProcess": true});
    }
    if random.once_in(2) {
        spec["securityContext"]["runAsNonRoot"] = (!random.once_in(4)).into();
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": spec})
}

/// A container that is added to a running pod.
pub(super) fn ephemeral(random: &mut Random) -> Value {
    let mut container = compliant()["spec"]["containers"][0].take();
    container["name"] = "debug".into();
    for _ in 0..random.below(3) {
        let changes = if random.once_in(2) { &SHARED[..5] } else { &CONTAINER[..] };
        set(&mut container["securityContext"], changes[random.below(changes.len())](), random);
    }
    let mut pod = json!({"spec": {"containers": [container]}});
    settle(&mut pod);
    pod["spec"]["containers"][0].take()
}
