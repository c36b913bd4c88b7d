//! The controls of the Pod Security Standards: pure functions of one pod template.
//!
//! What is allowed is from the official page
//! (<https://kubernetes.io/docs/concepts/security/pod-security-standards/>), from when on from the
//! rules of the API server's own admission, which the system tests hold these against. What is
//! stated and not as a control allows breaks it, values of a strange type among them; `null` counts as
//! absent, as it does for the API server.

mod allowed;
mod baseline;
mod restricted;

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
        self.minor >= allowed::USER_NAMESPACES_SINCE
            && users.and_then(Value::as_bool) == Some(false)
    }
}

/// Whether a profile is stated and neither the runtime's own nor one on the node.
fn bad_profile(holder: &Holder<'_, '_>, name: &str) -> bool {
    let Some(profile) = holder.stated(&[name]) else { return false };
    !matches!(profile.str_at(&["type"]), Some("RuntimeDefault" | "Localhost"))
}

fn stated<'v, 'a>(holder: &'v Value<'a>, names: &[&str]) -> Option<&'v Value<'a>> {
    holder.at(names).filter(|value| !value.is_null())
}
