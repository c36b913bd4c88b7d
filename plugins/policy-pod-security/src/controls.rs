//! The controls of the Pod Security Standards: pure functions of one pod template.
//!
//! What is allowed is from the official page
//! (<https://kubernetes.io/docs/concepts/security/pod-security-standards/>), from when on from the
//! rules of the API server's own admission, which the system tests hold these against. What is
//! stated and not as a control allows breaks it, values of a strange type among them; `null` counts as
//! absent, as it does for the API server.

use core::fmt;
use trimtab_sdk::pods::{Container, Template};
use trimtab_sdk::{Path, Step, Value};

/// The newest minor version of Kubernetes with a change of the controls that is known here.
pub const NEWEST: u32 = 37;

/// How much a pod may do to its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Anything.
    Privileged,
    /// What has no known way to the node.
    Baseline,
    /// What follows today's practice of hardening.
    Restricted,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        })
    }
}

/// One control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// The stable name, in kebab-case.
    pub name: &'static str,
    /// The level that it belongs to.
    pub level: Level,
}

/// A control that a template breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Which.
    pub control: &'static Control,
    /// What to do.
    pub message: String,
    /// Where in the object.
    pub path: Path,
}

macro_rules! controls {
    ($($constant:ident $name:literal $level:ident,)*) => {
        $(const $constant: &Control = &Control { name: $name, level: Level::$level };)*
        /// Every control, those of the baseline first, in the order of the official page.
        pub const CONTROLS: [&Control; [$($name),*].len()] = [$($constant),*];
    };
}

controls! {
    HOST_PROCESS "host-process" Baseline,
    HOST_NAMESPACES "host-namespaces" Baseline,
    PRIVILEGED "privileged" Baseline,
    CAPABILITIES "capabilities" Baseline,
    HOST_PATH "host-path-volumes" Baseline,
    HOST_PORTS "host-ports" Baseline,
    HOST_PROBES "host-probes" Baseline,
    APP_ARMOR "apparmor" Baseline,
    SE_LINUX "selinux" Baseline,
    PROC_MOUNT "proc-mount" Baseline,
    SECCOMP "seccomp" Baseline,
    SYSCTLS "sysctls" Baseline,
    VOLUME_TYPES "volume-types" Restricted,
    ESCALATION "privilege-escalation" Restricted,
    NON_ROOT "run-as-non-root" Restricted,
    USER "run-as-user" Restricted,
    SECCOMP_RESTRICTED "seccomp-restricted" Restricted,
    CAPABILITIES_RESTRICTED "capabilities-restricted" Restricted,
}

/// Capabilities that a container may add.
const ADDABLE: [&str; 13] = [
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

/// Sysctls that touch nobody else on the node, and the minor version since which they are allowed.
const SAFE_SYSCTLS: [(&str, u32); 14] = [
    ("kernel.shm_rmid_forced", 0),
    ("net.ipv4.ip_local_port_range", 0),
    ("net.ipv4.ip_unprivileged_port_start", 0),
    ("net.ipv4.tcp_syncookies", 0),
    ("net.ipv4.ping_group_range", 0),
    ("net.ipv4.ip_local_reserved_ports", 27),
    ("net.ipv4.tcp_keepalive_time", 29),
    ("net.ipv4.tcp_fin_timeout", 29),
    ("net.ipv4.tcp_keepalive_intvl", 29),
    ("net.ipv4.tcp_keepalive_probes", 29),
    ("net.ipv4.tcp_rmem", 32),
    ("net.ipv4.tcp_wmem", 32),
    ("net.ipv4.tcp_slow_start_after_idle", 37),
    ("net.ipv4.tcp_notsent_lowat", 37),
];

const SE_LINUX_TYPES: [(&str, u32); 5] = [
    ("", 0),
    ("container_t", 0),
    ("container_init_t", 0),
    ("container_kvm_t", 0),
    ("container_engine_t", 31),
];

/// Volumes that the restricted level allows.
const VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

/// How the older annotation for AppArmor begins; the container's name follows.
const APP_ARMOR_ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";

/// Since when hosts of probes and hooks are judged.
const PROBES_SINCE: u32 = 34;
/// Since when a user namespace (`hostUsers: false`) relaxes what it makes harmless.
const USER_NAMESPACES_SINCE: u32 = 35;

/// The controls of a level, as of this minor version of Kubernetes, that a template breaks; several
/// for one control where several places break it.
pub fn broken(template: &Template<'_, '_>, level: Level, minor: u32) -> Vec<Broken> {
    let mut judge = Judge { template, minor, found: Vec::new() };
    if level >= Level::Baseline {
        judge.baseline(level);
    }
    if level >= Level::Restricted {
        judge.restricted();
    }
    judge.found
}

struct Judge<'t, 'v, 'a> {
    template: &'t Template<'v, 'a>,
    minor: u32,
    found: Vec<Broken>,
}

/// Who has a `securityContext`: the pod, or one container.
#[derive(Clone, Copy)]
enum Holder<'v, 'a> {
    Pod(Template<'v, 'a>),
    Container(Container<'v, 'a>),
}

impl<'v, 'a> Holder<'v, 'a> {
    /// What it states there, `null` not counted.
    fn stated(&self, names: &[&str]) -> Option<&'v Value<'a>> {
        let holder = match self {
            Holder::Pod(template) => template.spec()?,
            Holder::Container(container) => container.value(),
        };
        holder.get("securityContext")?.at(names).filter(|value| !value.is_null())
    }

    fn path(&self, names: &[&str]) -> Path {
        let mut path = match self {
            Holder::Pod(template) => template.fields(&["spec", "securityContext"]),
            Holder::Container(container) => container.fields(&["securityContext"]),
        };
        for name in names {
            path.push(Step::Field((*name).to_owned()));
        }
        path
    }
}

impl<'v, 'a> Judge<'_, 'v, 'a> {
    fn add(&mut self, control: &'static Control, message: impl Into<String>, path: Path) {
        self.found.push(Broken { control, message: message.into(), path });
    }

    fn holders(&self) -> impl Iterator<Item = Holder<'v, 'a>> + use<'v, 'a> {
        let template = *self.template;
        core::iter::once(Holder::Pod(template)).chain(template.containers().map(Holder::Container))
    }

    fn baseline(&mut self, level: Level) {
        let template = *self.template;
        self.pod_switches();
        for (name, value) in template.annotations() {
            let profile = value.as_str().unwrap_or("?");
            let allowed = profile.is_empty()
                || profile == "runtime/default"
                || profile.starts_with("localhost/");
            if name.starts_with(APP_ARMOR_ANNOTATION) && !allowed {
                let path = template.fields(&["metadata", "annotations", name]);
                self.add(
                    APP_ARMOR,
                    "the profile is runtime/default, or localhost/ and a name",
                    path,
                );
            }
        }
        for holder in self.holders() {
            self.security_context(holder, level);
        }
        for container in template.containers() {
            self.container(container, level);
        }
        // Among the restricted level's volumes there is no hostPath.
        for (path, volume) in template.volumes().filter(|_| level == Level::Baseline) {
            if stated(volume, &["hostPath"]).is_some() {
                let path = path.join(Step::Field("hostPath".to_owned()));
                self.add(HOST_PATH, "a volume may not be a path of the node", path);
            }
        }
    }

    fn pod_switches(&mut self) {
        let template = *self.template;
        let Some(spec) = template.spec() else { return };
        for name in ["hostNetwork", "hostPID", "hostIPC"] {
            if stated(spec, &[name]).is_some_and(|value| value.as_bool() != Some(false)) {
                let path = template.fields(&["spec", name]);
                self.add(HOST_NAMESPACES, "a pod may not share the node's namespaces", path);
            }
        }
        let sysctls = stated(spec, &["securityContext", "sysctls"]).and_then(Value::as_array);
        for (index, sysctl) in sysctls.unwrap_or_default().iter().enumerate() {
            let name = sysctl.str_at(&["name"]).unwrap_or_default();
            if !allowed(&SAFE_SYSCTLS, name, self.minor) {
                let path = template.fields(&["spec", "securityContext", "sysctls"]);
                let message = format!("{name} is none of the sysctls that are safe for others");
                self.add(SYSCTLS, message, path.join(Step::Index(index)));
            }
        }
    }

    /// What pods and containers share.
    fn security_context(&mut self, holder: Holder<'v, 'a>, level: Level) {
        let process = ["windowsOptions", "hostProcess"];
        if holder.stated(&process).is_some_and(|value| value.as_bool() != Some(false)) {
            let message = "no process of the node's own (hostProcess) is allowed";
            self.add(HOST_PROCESS, message, holder.path(&process));
        }
        if bad_profile(&holder, "appArmorProfile") {
            let message = "the AppArmor profile is RuntimeDefault or Localhost";
            self.add(APP_ARMOR, message, holder.path(&["appArmorProfile", "type"]));
        }
        // The restricted level asks for more in its own words.
        if level == Level::Baseline && bad_profile(&holder, "seccompProfile") {
            let message = "the seccomp profile is RuntimeDefault or Localhost";
            self.add(SECCOMP, message, holder.path(&["seccompProfile", "type"]));
        }
        let minor = self.minor;
        let known = |text: &str| allowed(&SE_LINUX_TYPES, text, minor);
        if let Some(kind) = holder.stated(&["seLinuxOptions", "type"])
            && !kind.as_str().is_some_and(known)
        {
            let message = "the SELinux type is none of those for containers";
            self.add(SE_LINUX, message, holder.path(&["seLinuxOptions", "type"]));
        }
        for name in ["user", "role"] {
            let path = ["seLinuxOptions", name];
            if holder.stated(&path).is_some_and(|value| value.as_str() != Some("")) {
                let message = format!("no SELinux {name} may be set");
                self.add(SE_LINUX, message, holder.path(&path));
            }
        }
    }

    fn container(&mut self, container: Container<'v, 'a>, level: Level) {
        let holder = Holder::Container(container);
        if holder.stated(&["privileged"]).is_some_and(|value| value.as_bool() != Some(false)) {
            let message = "a privileged container is as good as the node itself";
            self.add(PRIVILEGED, message, holder.path(&["privileged"]));
        }
        let relaxed = level == Level::Baseline && self.in_user_namespace();
        if holder.stated(&["procMount"]).is_some_and(|mount| mount.as_str() != Some("Default"))
            && !relaxed
        {
            let message = "/proc is mounted with its masks (procMount: Default)";
            self.add(PROC_MOUNT, message, holder.path(&["procMount"]));
        }
        if level == Level::Baseline {
            self.added(&holder, CAPABILITIES, &ADDABLE);
        }
        let ports = stated(container.value(), &["ports"]).and_then(Value::as_array);
        for (index, port) in ports.unwrap_or_default().iter().enumerate() {
            if stated(port, &["hostPort"]).is_some_and(|port| port.as_i64() != Some(0)) {
                let path = container.fields(&["ports"]).join(Step::Index(index));
                let path = path.join(Step::Field("hostPort".to_owned()));
                self.add(HOST_PORTS, "no port of the node may be taken", path);
            }
        }
        if self.minor >= PROBES_SINCE {
            self.probes(container);
        }
    }

    fn probes(&mut self, container: Container<'v, 'a>) {
        const CALLERS: [&[&str]; 5] = [
            &["livenessProbe"],
            &["readinessProbe"],
            &["startupProbe"],
            &["lifecycle", "postStart"],
            &["lifecycle", "preStop"],
        ];
        for caller in CALLERS {
            let Some(caller_value) = stated(container.value(), caller) else { continue };
            for handler in ["httpGet", "tcpSocket"] {
                let host = stated(caller_value, &[handler, "host"]);
                if host.is_some_and(|host| host.as_str() != Some("")) {
                    let mut path = container.fields(caller);
                    path.push(Step::Field(handler.to_owned()));
                    path.push(Step::Field("host".to_owned()));
                    let message = "probes and hooks go to the pod itself: leave the host out";
                    self.add(HOST_PROBES, message, path);
                }
            }
        }
    }

    fn restricted(&mut self) {
        let template = *self.template;
        for (path, volume) in template.volumes() {
            let members = volume.as_object().into_iter().flat_map(|volume| volume.iter());
            for (kind, _) in members.filter(|(_, value)| !value.is_null()) {
                if kind != "name" && !VOLUMES.contains(&kind) {
                    let message = format!(
                        "a volume of type {kind} is not allowed; {} are",
                        VOLUMES.join(", ")
                    );
                    self.add(VOLUME_TYPES, message, path.join(Step::Field(kind.to_owned())));
                }
            }
        }
        if !self.in_user_namespace() {
            self.users();
        }
        let windows = template.spec().and_then(|spec| spec.str_at(&["os", "name"]));
        if windows == Some("windows") {
            return;
        }
        self.seccomp();
        for container in template.containers() {
            let holder = Holder::Container(container);
            let escalation = holder.stated(&["allowPrivilegeEscalation"]);
            if escalation.and_then(Value::as_bool) != Some(false) {
                let message = "allowPrivilegeEscalation has to be false";
                self.add(ESCALATION, message, holder.path(&["allowPrivilegeEscalation"]));
            }
            let dropped = holder.stated(&["capabilities", "drop"]).and_then(Value::as_array);
            if !dropped.unwrap_or_default().iter().any(|name| name.as_str() == Some("ALL")) {
                let message = "capabilities have to be dropped: drop: [ALL]";
                self.add(CAPABILITIES_RESTRICTED, message, holder.path(&["capabilities", "drop"]));
            }
            self.added(&holder, CAPABILITIES_RESTRICTED, &["NET_BIND_SERVICE"]);
        }
    }

    fn users(&mut self) {
        let pod = Holder::Pod(*self.template);
        let non_root =
            |holder: &Holder<'_, '_>| holder.stated(&["runAsNonRoot"]).map(Value::as_bool);
        let of_pod = non_root(&pod);
        for holder in self.holders() {
            let stated = non_root(&holder);
            let inherits = matches!(holder, Holder::Container(_)) && of_pod == Some(Some(true));
            let absent = matches!(holder, Holder::Pod(_)) || inherits;
            if stated != Some(Some(true)) && !(stated.is_none() && absent) {
                let message = "runAsNonRoot has to be true, for the pod or every container";
                self.add(NON_ROOT, message, holder.path(&["runAsNonRoot"]));
            }
            if let Some(user) = holder.stated(&["runAsUser"])
                && user.as_i64().is_none_or(|user| user == 0)
            {
                let message = "runAsUser may not be 0, which is root";
                self.add(USER, message, holder.path(&["runAsUser"]));
            }
        }
    }

    fn seccomp(&mut self) {
        let pod = Holder::Pod(*self.template);
        let is_stated = |holder: &Holder<'_, '_>| holder.stated(&["seccompProfile"]).is_some();
        let by_pod = is_stated(&pod) && !bad_profile(&pod, "seccompProfile");
        for holder in self.holders() {
            let missing = matches!(holder, Holder::Container(_)) && !is_stated(&holder) && !by_pod;
            if missing || bad_profile(&holder, "seccompProfile") {
                let message = "a seccomp profile has to be set, RuntimeDefault or Localhost, for the pod or every container";
                self.add(SECCOMP_RESTRICTED, message, holder.path(&["seccompProfile", "type"]));
            }
        }
    }

    fn added(&mut self, holder: &Holder<'v, 'a>, control: &'static Control, addable: &[&str]) {
        let added = holder.stated(&["capabilities", "add"]).and_then(Value::as_array);
        for capability in added.unwrap_or_default() {
            let name = capability.as_str().unwrap_or("?");
            if !addable.contains(&name) {
                let message =
                    format!("the capability {name} may not be added; {} may", addable.join(", "));
                let path = holder.path(&["capabilities", "add"]);
                self.add(control, message, path.join(Step::Element(name.to_owned())));
            }
        }
    }

    fn in_user_namespace(&self) -> bool {
        let users = self.template.spec().and_then(|spec| spec.get("hostUsers"));
        self.minor >= USER_NAMESPACES_SINCE && users.and_then(Value::as_bool) == Some(false)
    }
}

/// Whether a profile is stated and neither the runtime's own nor one on the node.
fn bad_profile(holder: &Holder<'_, '_>, name: &str) -> bool {
    let Some(profile) = holder.stated(&[name]) else { return false };
    !matches!(profile.str_at(&["type"]), Some("RuntimeDefault" | "Localhost"))
}

fn allowed(list: &[(&str, u32)], name: &str, minor: u32) -> bool {
    list.iter().any(|(allowed, since)| *allowed == name && *since <= minor)
}

fn stated<'v, 'a>(holder: &'v Value<'a>, names: &[&str]) -> Option<&'v Value<'a>> {
    holder.at(names).filter(|value| !value.is_null())
}
