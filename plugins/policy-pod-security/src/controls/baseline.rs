//! The baseline: what has no known way to the node.

use super::allowed::{
    ADDABLE, APP_ARMOR_ANNOTATION, PROBES_SINCE, SAFE_SYSCTLS, SE_LINUX_TYPES, allowed,
};
use super::*;

impl<'v, 'a> Judge<'_, 'v, 'a> {
    pub(super) fn baseline(&mut self, level: Level) {
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
}
