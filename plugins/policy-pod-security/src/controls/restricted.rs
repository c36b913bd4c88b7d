//! The restricted level: what it asks for beyond the baseline.

use super::allowed::VOLUMES;
use super::*;

impl Judge<'_, '_, '_> {
    pub(super) fn restricted(&mut self) {
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
}
