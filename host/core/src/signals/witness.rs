//! The API server's own audit log as a witness: who asked it to change which object.
//!
//! Takes lines of its JSON form (`audit.k8s.io/v1`); keeps the last [`WRITES_AT_MOST`] writes that
//! were done by others. Whoever reads the file is the caller's.

use crate::decision::Manager;
use crate::ownership::FIELD_MANAGER;
use std::collections::{BTreeSet, VecDeque};
use trimtab_json::Value;

/// Writes that are remembered.
pub const WRITES_AT_MOST: usize = 4096;
/// How long before and after the time in question a write may have been, in milliseconds: times of
/// managedFields are to the second, and a watch may be late.
pub const NEAR_MS: u64 = 30_000;
/// Longest text of a client's making that is kept.
const TEXT_AT_MOST: usize = 128;

/// One write that the API server did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiWrite {
    /// When it was answered, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// The user in whose name it was done: the impersonated one, where there is one.
    pub user: String,
    /// Who authenticated.
    pub authenticated: String,
    /// The client's own word for itself.
    pub agent: String,
    /// `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: String,
    /// The field manager that it states, or the one that follows from its agent.
    pub manager: String,
    /// API group of the resource.
    pub group: String,
    /// Plural of the resource.
    pub resource: String,
    /// Empty for a cluster-scoped one.
    pub namespace: String,
    /// Empty for a whole collection.
    pub name: String,
    /// The API server's id of the request.
    pub audit_id: String,
}

/// What the witness saw of an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// This request.
    Request(Box<ApiWrite>),
    /// The log is read, and has none.
    Nothing,
}

/// An object as requests name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// API group.
    pub group: &'a str,
    /// Plural.
    pub resource: &'a str,
    /// Empty for a cluster-scoped one.
    pub namespace: &'a str,
    /// Name.
    pub name: &'a str,
}

/// The last writes by others.
#[derive(Clone, Debug, Default)]
pub struct Witness {
    writes: VecDeque<ApiWrite>,
    /// Users that are this host.
    us: BTreeSet<String>,
}

/// Reads a line of the log. `None`: it is no write that was done (a read, a dry run, a refusal, a
/// question, or an earlier stage of a request).
///
/// # Errors
/// It is no event of the form that is understood.
pub fn read(line: &[u8]) -> Result<Option<ApiWrite>, String> {
    let event = trimtab_json::parse(line).map_err(|error| error.to_string())?;
    if event.get("auditID").is_none() {
        return Err("it has no auditID".into());
    }
    let text = |path: &[&str]| {
        let text = event.str_at(path).unwrap_or_default();
        text.chars().take(TEXT_AT_MOST).collect::<String>()
    };
    let verb = text(&["verb"]);
    let uri = event.str_at(&["requestURI"]).unwrap_or_default();
    let group = text(&["objectRef", "apiGroup"]);
    let code = event.at(&["responseStatus", "code"]).and_then(Value::as_u64).unwrap_or_default();
    let done = text(&["stage"]) == "ResponseComplete" && (200..300).contains(&code);
    let writes =
        matches!(verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection");
    let asks = matches!(group.as_str(), "authorization.k8s.io" | "authentication.k8s.io");
    if !done || !writes || asks || uri.contains("dryRun=") {
        return Ok(None);
    }
    let time = text(&["stageTimestamp"]);
    let at_ms = ms_of(&time).ok_or_else(|| format!("its stageTimestamp {time:?} is no time"))?;
    let authenticated = text(&["user", "username"]);
    let user = match event.str_at(&["impersonatedUser", "username"]) {
        Some(_) => text(&["impersonatedUser", "username"]),
        None => authenticated.clone(),
    };
    let agent = text(&["userAgent"]);
    let stated = parameter(uri, "fieldManager=");
    let manager = stated.unwrap_or_else(|| agent.split('/').next().unwrap_or_default().to_owned());
    Ok(Some(ApiWrite {
        at_ms,
        user,
        authenticated,
        agent,
        verb,
        manager,
        group,
        resource: text(&["objectRef", "resource"]),
        namespace: text(&["objectRef", "namespace"]),
        name: text(&["objectRef", "name"]),
        audit_id: text(&["auditID"]),
    }))
}

fn parameter(uri: &str, name: &str) -> Option<String> {
    let query = uri.split_once('?')?.1;
    let value = query.split('&').find_map(|part| part.strip_prefix(name))?;
    Some(value.chars().take(TEXT_AT_MOST).collect())
}

impl Witness {
    /// This user is the host itself, or an account that it acts as.
    pub fn is_us(&mut self, user: &str) {
        self.us.insert(user.to_owned());
    }

    /// Takes up a write.
    pub fn saw(&mut self, write: ApiWrite) {
        // Whoever authenticates as we do can be nobody else to the API server.
        if self.us.contains(&write.user) {
            return;
        }
        self.writes.push_back(write);
        while self.writes.len() > WRITES_AT_MOST {
            self.writes.pop_front();
        }
    }

    /// The write of this object near this time: by this manager if one was, else the last one.
    pub fn edit(
        &self,
        place: Place<'_>,
        manager: Option<&Manager>,
        at_ms: u64,
    ) -> Option<&ApiWrite> {
        let near = |it: &&ApiWrite| {
            it.is_of(place) && it.verb != "delete" && it.at_ms.abs_diff(at_ms) <= NEAR_MS
        };
        let by = |it: &&ApiWrite| manager.is_some_and(|manager| manager.name == it.manager);
        let newest = || self.writes.iter().rev().filter(near);
        newest().find(by).or_else(|| newest().next())
    }

    /// The deletion of this object before this time, of its collection or its namespace included.
    pub fn deletion(&self, place: Place<'_>, at_ms: u64) -> Option<&ApiWrite> {
        self.writes.iter().rev().find(|it| {
            let of_it = it.is_of(place)
                || it.verb == "deletecollection"
                    && (&*it.group, &*it.resource) == (place.group, place.resource)
                    && (it.namespace.is_empty() || it.namespace == place.namespace);
            it.verb.starts_with("delete") && of_it && it.at_ms.abs_diff(at_ms) <= NEAR_MS
        })
    }
}

impl ApiWrite {
    fn is_of(&self, place: Place<'_>) -> bool {
        let mine = (&*self.group, &*self.resource, &*self.namespace, &*self.name);
        mine == (place.group, place.resource, place.namespace, place.name)
    }

    /// Why what managedFields say cannot be of this request, if so.
    pub fn contradicts(&self, manager: Option<&Manager>) -> Option<String> {
        let manager = manager?;
        if manager.name == FIELD_MANAGER {
            return Some("that name is this host's, and the user is not".into());
        }
        let component = manager.name.starts_with("kube-") || manager.name == "kubelet";
        if component && !self.user.starts_with("system:") && !self.user.starts_with("kubernetes-") {
            return Some("that name is a component's of Kubernetes, and the user is none".into());
        }
        (manager.name != self.manager)
            .then(|| format!("its request was made as field manager {:?}", self.manager))
    }
}

/// Milliseconds since the Unix epoch of a time in RFC 3339 and UTC (`…Z`); `None` for anything
/// else.
pub fn ms_of(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Option<u64> {
        let part = text.get(from..to)?;
        if part.bytes().all(|byte| byte.is_ascii_digit()) { part.parse().ok() } else { None }
    };
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let signs = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if bytes.last() != Some(&b'Z') || signs.iter().any(|(at, sign)| bytes.get(*at) != Some(sign)) {
        return None;
    }
    if year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let fraction = text.get(19..text.len() - 1)?;
    let ms = match fraction.strip_prefix('.') {
        None if fraction.is_empty() => 0,
        None => return None,
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{digits:0<3}").get(..3)?.parse::<u64>().ok()?
        }
        Some(_) => return None,
    };
    // Days since the epoch, by years that begin in March.
    let (y, m) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719_468;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(verb: &str, uri: &str, user: &str, name: &str) -> String {
        format!(
            r#"{{"kind":"Event","auditID":"id-{name}","stage":"ResponseComplete","requestURI":"{uri}","verb":"{verb}","user":{{"username":"{user}"}},"userAgent":"kubectl/v1.37","objectRef":{{"resource":"configmaps","namespace":"shop","name":"{name}"}},"responseStatus":{{"code":200}},"stageTimestamp":"2026-01-02T03:04:05.678901Z"}}"#
        )
    }

    fn place(name: &str) -> Place<'_> {
        Place { group: "", resource: "configmaps", namespace: "shop", name }
    }

    #[test]
    fn writes_that_were_done_are_read_and_everything_else_is_passed_over() {
        let write = read(line("patch", "/x?fieldManager=me", "mallory", "c").as_bytes());
        let write = write.unwrap().unwrap();
        assert_eq!(
            (&*write.user, &*write.manager, write.at_ms),
            ("mallory", "me", 1_767_323_045_678)
        );
        let by_agent = read(line("update", "/x", "mallory", "c").as_bytes()).unwrap().unwrap();
        assert_eq!(by_agent.manager, "kubectl");
        for other in [line("get", "/x", "m", "c"), line("patch", "/x?dryRun=All", "m", "c")] {
            assert_eq!(read(other.as_bytes()), Ok(None));
        }
        for wrong in [
            "{}",
            "no JSON",
            r#"{"auditID":1,"stage":"ResponseComplete","verb":"patch","responseStatus":{"code":200}}"#,
        ] {
            assert!(read(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_impersonated_user_is_the_one_who_did_it() {
        let text = line("patch", "/x", "admin", "c").replace(
            "\"userAgent\"",
            "\"impersonatedUser\":{\"username\":\"alice\"},\"userAgent\"",
        );
        let write = read(text.as_bytes()).unwrap().unwrap();
        assert_eq!((&*write.user, &*write.authenticated), ("alice", "admin"));
    }

    #[test]
    fn an_edit_is_found_by_its_object_its_time_and_its_manager_and_never_our_own() {
        let mut witness = Witness::default();
        witness.is_us("the-host");
        for (user, uri) in [
            ("alice", "/x?fieldManager=a"),
            ("bob", "/x?fieldManager=b"),
            ("the-host", "/x?fieldManager=a"),
        ] {
            witness.saw(read(line("patch", uri, user, "c").as_bytes()).unwrap().unwrap());
        }
        let at = 1_767_323_045_000;
        let manager = |name: &str| Manager {
            name: name.into(),
            operation: "Update".into(),
            subresource: String::new(),
            time: String::new(),
        };
        let user = |manager: Option<Manager>, at: u64| {
            witness.edit(place("c"), manager.as_ref(), at).map(|it| it.user.clone())
        };
        assert_eq!(user(Some(manager("a")), at).as_deref(), Some("alice"));
        assert_eq!(user(Some(manager("z")), at).as_deref(), Some("bob"));
        assert_eq!(user(None, at).as_deref(), Some("bob"));
        assert_eq!(user(None, at + 3 * NEAR_MS), None);
        assert!(witness.edit(place("d"), None, at).is_none());
    }

    #[test]
    fn a_borrowed_name_is_a_contradiction() {
        let write = read(line("patch", "/x?fieldManager=trimtab", "mallory", "c").as_bytes());
        let write = write.unwrap().unwrap();
        let manager = |name: &str| Manager {
            name: name.into(),
            operation: "Update".into(),
            subresource: String::new(),
            time: String::new(),
        };
        assert!(write.contradicts(Some(&manager("trimtab"))).is_some());
        assert!(write.contradicts(Some(&manager("kube-controller-manager"))).is_some());
        let honest = read(line("patch", "/x?fieldManager=me", "mallory", "c").as_bytes());
        let honest = honest.unwrap().unwrap();
        assert_eq!(honest.contradicts(Some(&manager("me"))), None);
        assert!(honest.contradicts(Some(&manager("alice"))).is_some());
    }

    #[test]
    fn times_of_leap_years_and_of_none_are_read() {
        assert_eq!(ms_of("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(ms_of("2024-02-29T12:00:00Z"), Some(1_709_208_000_000));
        assert_eq!(ms_of("2026-12-01T00:00:00.5Z"), Some(1_796_083_200_500));
        for wrong in [
            "",
            "2026",
            "2026-01-02T03:04:05",
            "2026-01-02T03:04:05+01:00",
            "2026-13-02T03:04:05Z",
            "é026-01-02T03:04:05Z",
            "2026-01-02T03:04:05.xZ",
        ] {
            assert_eq!(ms_of(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_line_of_any_content_breaks_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&bytes);
            let _ = ms_of(&String::from_utf8_lossy(&bytes));
        }
    }

    #[test]
    fn memory_is_bounded_however_many_writes_there_are() {
        let mut witness = Witness::default();
        let write = read(line("patch", "/x", "alice", "c").as_bytes()).unwrap().unwrap();
        (0..WRITES_AT_MOST + 50).for_each(|_| witness.saw(write.clone()));
        assert_eq!(witness.writes.len(), WRITES_AT_MOST);
    }
}
