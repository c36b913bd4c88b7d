//! Pod templates: the baseline of the Pod Security Standards, and whose account they run as.
//!
//! A template that a change leaves alone is not judged again: it is what the cluster admitted. One
//! that a change touches anywhere is judged whole, since another image in a privileged container
//! uses the privilege as much as asking for it does.

use super::{Accounts, Denial, Denied};
use crate::identity::{GroupKind, ObjectKey};
use trimtab_json::Value;

/// Built-in kinds with a pod template, and where it is.
pub(super) const KINDS: [(&str, &str, &[&str]); 9] = [
    ("", "Pod", &[]),
    ("", "PodTemplate", &["template"]),
    ("", "ReplicationController", &["spec", "template"]),
    ("apps", "Deployment", &["spec", "template"]),
    ("apps", "StatefulSet", &["spec", "template"]),
    ("apps", "DaemonSet", &["spec", "template"]),
    ("apps", "ReplicaSet", &["spec", "template"]),
    ("batch", "Job", &["spec", "template"]),
    ("batch", "CronJob", &["spec", "jobTemplate", "spec", "template"]),
];

/// Capabilities that a container may add.
const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// Sysctls that touch nobody else on the node.
const SYSCTLS: [&str; 12] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
];

const SELINUX_TYPES: [&str; 5] =
    ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];

/// How the older annotation for AppArmor begins; the container's name follows.
const APPARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

fn place(kind: &GroupKind) -> Option<&'static [&'static str]> {
    KINDS
        .iter()
        .find(|(group, name, _)| **group == *kind.group && **name == *kind.kind)
        .map(|(_, _, place)| *place)
}

/// Whether objects of this kind hold a pod template.
pub(super) fn holds(kind: &GroupKind) -> bool {
    place(kind).is_some()
}

pub(super) fn judge(
    key: &ObjectKey,
    before: Option<&Value<'_>>,
    after: &Value<'_>,
    accounts: &Accounts,
    denied: &mut Vec<Denied>,
) {
    let Some(place) = place(&key.group_kind) else { return };
    let Some(template) = after.at(place) else { return };
    let mut beyond = Baseline { found: Vec::new() };
    beyond.template(template);
    let account = foreign_account(key, template, accounts);
    if beyond.found.is_empty() && account.is_none() {
        return;
    }
    // Asked last: two templates in one spelling cost more than all of the above.
    let seen = before.and_then(|before| before.at(place));
    if seen.is_some_and(|seen| parts(seen) == parts(template)) {
        return;
    }
    if !beyond.found.is_empty() {
        denied.push(Denied {
            denial: Denial::PrivilegedPods,
            what: format!("its pods go beyond the baseline ({})", beyond.found.join(", ")),
        });
    }
    denied.extend(account);
}

/// What of an object's template goes beyond the baseline, each by its place.
pub(super) fn beyond_baseline(key: &ObjectKey, object: &Value<'_>) -> Vec<String> {
    let mut beyond = Baseline { found: Vec::new() };
    if let Some(template) = place(&key.group_kind).and_then(|place| object.at(place)) {
        beyond.template(template);
    }
    beyond.found
}

/// What of a template is judged, in one spelling.
fn parts(template: &Value<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(spec) = template.get("spec") {
        trimtab_json::canonical(spec, &mut bytes);
    }
    for (name, value) in apparmor(template) {
        bytes.extend_from_slice(name.as_bytes());
        trimtab_json::canonical(value, &mut bytes);
    }
    bytes
}

fn apparmor<'v>(template: &'v Value<'_>) -> impl Iterator<Item = (&'v str, &'v Value<'v>)> {
    let annotations = template.at(&["metadata", "annotations"]).and_then(Value::as_object);
    annotations
        .into_iter()
        .flat_map(trimtab_json::Object::iter)
        .filter(|(name, _)| name.starts_with(APPARMOR))
}

fn foreign_account(key: &ObjectKey, template: &Value<'_>, accounts: &Accounts) -> Option<Denied> {
    let name = ["serviceAccountName", "serviceAccount"].into_iter().find_map(|field| {
        let name = template.at(&["spec", field])?.scalar_text()?;
        let declared = || {
            let account =
                ObjectKey::new(GroupKind::new("", "ServiceAccount"), key.namespace_str(), name);
            accounts.contains(&account)
        };
        (!name.is_empty() && name != "default" && !declared()).then_some(name)
    })?;
    Some(Denied {
        denial: Denial::ServiceAccounts,
        what: format!(
            "its pods run as service account {name:?}, which the source does not declare in {}",
            key.namespace_str()
        ),
    })
}

/// Collects what a template asks for beyond the baseline, by path.
struct Baseline {
    found: Vec<String>,
}

impl Baseline {
    fn template(&mut self, template: &Value<'_>) {
        for (name, value) in apparmor(template) {
            let profile = value.as_str().unwrap_or("?");
            if profile != "runtime/default" && !profile.starts_with("localhost/") {
                self.found.push(format!("annotation {name}"));
            }
        }
        let Some(spec) = template.get("spec") else { return };
        for field in ["hostNetwork", "hostPID", "hostIPC"] {
            self.only_false(spec, &[field], "spec");
        }
        self.security(spec, "spec");
        let sysctls = spec.at(&["securityContext", "sysctls"]).and_then(Value::as_array);
        for sysctl in sysctls.unwrap_or_default() {
            let name = sysctl.str_at(&["name"]).unwrap_or_default();
            if !SYSCTLS.contains(&name) {
                self.found.push(format!("spec.securityContext.sysctls {name:?}"));
            }
        }
        for volume in items(spec, "volumes") {
            if volume.get("hostPath").is_some_and(|path| !path.is_null()) {
                self.found.push(format!("spec.volumes[{}].hostPath", name(volume)));
            }
        }
        for list in ["initContainers", "containers", "ephemeralContainers"] {
            for container in items(spec, list) {
                self.container(container, &format!("spec.{list}[{}]", name(container)));
            }
        }
    }

    fn container(&mut self, container: &Value<'_>, at: &str) {
        self.security(container, at);
        self.only_false(container, &["securityContext", "privileged"], at);
        self.only(container, &["securityContext", "procMount"], at, |mount| mount == "Default");
        let added = container.at(&["securityContext", "capabilities", "add"]);
        for capability in added.and_then(Value::as_array).unwrap_or_default() {
            let capability = capability.as_str().unwrap_or("?");
            if !CAPABILITIES.contains(&capability) {
                self.found.push(format!("{at}.securityContext.capabilities.add {capability}"));
            }
        }
        for port in items(container, "ports") {
            self.only(port, &["hostPort"], &format!("{at}.ports"), |port| port == "0");
        }
        for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
            for handler in ["httpGet", "tcpSocket"] {
                self.only(container, &[probe, handler, "host"], at, str::is_empty);
            }
        }
        for hook in ["postStart", "preStop"] {
            for handler in ["httpGet", "tcpSocket"] {
                self.only(container, &["lifecycle", hook, handler, "host"], at, str::is_empty);
            }
        }
    }

    /// What pods and containers share.
    fn security(&mut self, holder: &Value<'_>, at: &str) {
        self.only_false(holder, &["securityContext", "windowsOptions", "hostProcess"], at);
        let profile = |kind: &str| matches!(kind, "RuntimeDefault" | "Localhost");
        self.only(holder, &["securityContext", "seccompProfile", "type"], at, profile);
        self.only(holder, &["securityContext", "appArmorProfile", "type"], at, profile);
        let selinux = |kind: &str| SELINUX_TYPES.contains(&kind);
        self.only(holder, &["securityContext", "seLinuxOptions", "type"], at, selinux);
        for field in ["user", "role"] {
            self.only(holder, &["securityContext", "seLinuxOptions", field], at, str::is_empty);
        }
    }

    fn only_false(&mut self, holder: &Value<'_>, names: &[&str], at: &str) {
        self.only(holder, names, at, |text| text == "false");
    }

    /// What is stated and not as allowed is found; what is no scalar is not allowed either.
    fn only(
        &mut self,
        holder: &Value<'_>,
        names: &[&str],
        at: &str,
        allowed: impl Fn(&str) -> bool,
    ) {
        let Some(value) = holder.at(names).filter(|value| !value.is_null()) else { return };
        if !value.scalar_text().is_some_and(allowed) {
            self.found.push(format!("{at}.{}", names.join(".")));
        }
    }
}

fn items<'v, 'a>(holder: &'v Value<'a>, name: &str) -> &'v [Value<'a>] {
    holder.get(name).and_then(Value::as_array).unwrap_or_default()
}

fn name<'v>(element: &'v Value<'_>) -> &'v str {
    element.str_at(&["name"]).unwrap_or_default()
}

/// Where an object of another kind holds a list of containers.
pub(super) fn unjudged(key: &ObjectKey, object: &Value<'_>) -> Option<String> {
    if place(&key.group_kind).is_some() {
        return None;
    }
    let mut at = String::new();
    containers(object, &mut at).then_some(at)
}

/// Depth-first; leaves the way to the find in `at`.
fn containers(value: &Value<'_>, at: &mut String) -> bool {
    let length = at.len();
    match value {
        Value::Object(object) => {
            for (name, child) in object.iter() {
                at.push('/');
                at.push_str(&name.replace('~', "~0").replace('/', "~1"));
                let list = matches!(name, "containers" | "initContainers" | "ephemeralContainers");
                let holds = |item: &Value<'_>| item.str_at(&["image"]).is_some();
                let found = list && child.as_array().is_some_and(|items| items.iter().any(holds));
                if found || containers(child, at) {
                    return true;
                }
                at.truncate(length);
            }
        }
        Value::Array(items) => {
            for (index, child) in items.iter().enumerate() {
                at.push_str(&format!("/{index}"));
                if containers(child, at) {
                    return true;
                }
                at.truncate(length);
            }
        }
        _ => {}
    }
    false
}
