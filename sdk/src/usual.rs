//! The decision that every type gets, in one call ([`decide`]) and in its parts, so that a plugin
//! writes only what is special about its type.

use crate::{
    Action, Decision, Difference, DifferenceKind, Finding, ObjectId, Path, Snapshot, Value, Verdict,
};
use std::time::Duration;

/// The annotation by which an object says what may be done when a field that cannot change has to:
/// `leave` (as without it), `recreate`, or `recreate-stateful`. Read from desired.
pub const ON_IMMUTABLE: &str = "trimtab.dev/on-immutable";

/// How long to leave an object alone that waits for its finalizers.
const DELETION_WAIT: Duration = Duration::from_secs(10);

/// What is usually done about differences.
///
/// # Rules
/// | what is found | what is done |
/// | --- | --- |
/// | the live object is on its way out | nothing until it is gone: [`await_deletion`] |
/// | a field that cannot change | left and reported, or recreated where the object says so: [`on_immutable`] |
/// | what only live has | removed |
/// | anything else | desired is applied, which also releases what is no longer stated: [`correct`] |
pub fn decide(snapshot: &Snapshot<'_>, differences: &[Difference<'_>]) -> Verdict {
    decide_without(snapshot, differences, &[])
}

/// [`decide`], with these paths of desired left out of what is applied, and differences within them
/// left as they are: they are somebody else's. A path that desired does not state may be named.
pub fn decide_without(
    snapshot: &Snapshot<'_>,
    differences: &[Difference<'_>],
    without: &[Path],
) -> Verdict {
    await_deletion(snapshot)
        .or_else(|| on_immutable(snapshot, differences, loss(snapshot.id())).map(Verdict::from))
        .unwrap_or_else(|| correct(snapshot, differences, without).into())
}

/// *Not now*, if the live object has been deleted and waits for its finalizers.
pub fn await_deletion(snapshot: &Snapshot<'_>) -> Option<Verdict> {
    let reason = "the live object is being deleted: it is made anew once it is gone";
    snapshot.is_being_deleted().then(|| Verdict::defer(reason, DELETION_WAIT))
}

/// Applies desired without these paths, and removes what only live has. Differences within the
/// paths count for nothing.
pub fn correct(
    snapshot: &Snapshot<'_>,
    differences: &[Difference<'_>],
    without: &[Path],
) -> Decision {
    let mut decision = Decision::new();
    let mut strays: Vec<Path> = Vec::new();
    let mut applies = false;
    for difference in differences {
        if without.iter().any(|path| difference.path.starts_with(path)) {
            continue;
        }
        match difference.kind {
            DifferenceKind::Stray => strays.push(difference.path.clone()),
            _ => applies = true,
        }
    }
    if applies {
        let stated = |path: &&Path| {
            snapshot.desired().is_some_and(|desired| path.resolve(desired).is_some())
        };
        decision = decision.apply_desired_without(without.iter().filter(stated).cloned());
    }
    if !strays.is_empty() {
        decision = decision.remove_fields(strays);
    }
    decision
}

/// What to do if a difference lies in a field that cannot change once the object exists; `None`:
/// none does. The gate decides whether a recreation is done; here it is only asked for.
///
/// # Rules
/// Without a word of the object's own it is left, with the reason. `recreate` in
/// [`ON_IMMUTABLE`] is enough where nothing is lost by it; where `loss` says what is, only
/// `recreate-stateful` is.
pub fn on_immutable(
    snapshot: &Snapshot<'_>,
    differences: &[Difference<'_>],
    loss: Option<&str>,
) -> Option<Decision> {
    let field = differences.iter().find_map(|each| each.immutable.as_ref())?;
    let policy = annotation(snapshot.desired(), ON_IMMUTABLE);
    let asked = match policy {
        Some("recreate") => loss.is_none(),
        Some("recreate-stateful") => true,
        _ => false,
    };
    if asked {
        let lost = loss.map(|loss| format!(", and {loss}")).unwrap_or_default();
        let text = format!(
            "{field} cannot change once the object exists: it is deleted and made anew, as {ON_IMMUTABLE} says{lost}"
        );
        let finding = Finding::warning("immutable-field-recreated", text).at(field.clone());
        return Some(Decision::new().action(Action::Recreate).finding(finding));
    }
    let decision = Decision::new().leave(match loss {
        None => format!(
            "immutable_field: {field} cannot change once the object exists; declare its old value, or let it be made anew: delete it, or annotate it with {ON_IMMUTABLE}: recreate"
        ),
        Some(loss) => format!(
            "immutable_field_stateful: {field} cannot change once the object exists, and if it is made anew {loss}; declare its old value, or annotate it with {ON_IMMUTABLE}: recreate-stateful"
        ),
    });
    Some(match policy {
        None | Some("leave" | "recreate" | "recreate-stateful") => decision,
        Some(other) => decision.finding(Finding::warning(
            "annotation-not-understood",
            format!(
                "{ON_IMMUTABLE} is {other}, and can be leave, recreate or recreate-stateful: the object is left"
            ),
        )),
    })
}

/// What is lost when an object of this kind is deleted and made anew, as the end of a sentence;
/// `None`: nothing but its own time.
pub fn loss(id: &ObjectId<'_>) -> Option<&'static str> {
    Some(match (id.group, id.kind) {
        ("", "PersistentVolumeClaim") => "its volume may be deleted with the data on it",
        ("", "PersistentVolume") => "its claim loses the volume, and the data may be deleted",
        ("", "Namespace") => "everything in the namespace is deleted",
        ("apps", "StatefulSet") => "all of its Pods are deleted at once",
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            "every object of the kind is deleted"
        }
        _ => return None,
    })
}

/// An annotation of an object.
pub fn annotation<'v>(object: Option<&'v Value<'_>>, name: &str) -> Option<&'v str> {
    object?.str_at(&["metadata", "annotations", name])
}

#[cfg(test)]
mod tests {
    use crate::testing::Case;
    use crate::{Comparison, Difference, NoComparison, Path, Reconciler, Snapshot, Verdict};

    /// Finds `spec.fixed` immutable, and leaves `spec.theirs` to somebody else.
    struct Plain;

    impl Reconciler for Plain {
        fn compare<'s>(snapshot: &'s Snapshot<'_>) -> Result<Comparison<'s>, NoComparison> {
            let mut comparison = crate::compare(snapshot)?;
            for difference in &mut comparison.differences {
                let path = difference.path.clone();
                difference.immutable = (path == Path::fields(&["spec", "fixed"])).then_some(path);
            }
            Ok(comparison)
        }

        fn decide(snapshot: &Snapshot<'_>, differences: &[Difference<'_>]) -> Verdict {
            let theirs = ["theirs", "absent"].map(|name| Path::fields(&["spec", name]));
            crate::decide_without(snapshot, differences, &theirs)
        }
    }

    fn object(kind: &str, spec: &str, policy: &str) -> String {
        format!(
            r#"{{"apiVersion":"apps/v1","kind":"{kind}","metadata":{{"name":"a",
            "annotations":{{"a":"b"{policy}}}}},"spec":{spec}}}"#
        )
    }

    fn found(kind: &str, policy: &str) -> String {
        let policy = format!(r#","trimtab.dev/on-immutable":"{policy}""#);
        let desired = object(kind, r#"{"fixed":1}"#, &policy);
        let run = Case::new().desired(desired).live(object(kind, r#"{"fixed":2}"#, &policy));
        let run = run.run::<Plain>();
        run.lines().skip(1).map(|line| line.to_owned() + "\n").collect()
    }

    #[test]
    fn the_paths_of_others_are_left_out_as_far_as_they_are_stated() {
        let (desired, live) = (r#"{"a":1,"theirs":1}"#, r#"{"a":2,"theirs":1}"#);
        Case::new()
            .desired(object("Thing", desired, ""))
            .live(object("Thing", live, ""))
            .check::<Plain>(
                "
            changed /spec/a 1 <- 2
            apply-desired without /spec/theirs
            ",
            );
    }

    #[test]
    fn what_cannot_change_is_left_until_the_object_itself_allows_to_recreate_it() {
        let left = found("Deployment", "leave");
        assert!(left.starts_with("leave: immutable_field: /spec/fixed cannot change"), "{left}");
        assert_eq!(
            found("Deployment", "recreate"),
            "recreate\nfinding warning immutable-field-recreated /spec/fixed\n"
        );
    }

    #[test]
    fn what_loses_data_when_it_is_recreated_needs_a_word_of_its_own() {
        for policy in ["leave", "recreate"] {
            let left = found("StatefulSet", policy);
            assert!(left.starts_with("leave: immutable_field_stateful: "), "{left}");
        }
        assert!(found("StatefulSet", "recreate-stateful").starts_with("recreate\n"));
    }

    #[test]
    fn a_policy_that_is_misspelt_is_told_and_nothing_is_recreated() {
        let found = found("Deployment", "Recreate");
        assert!(found.starts_with("leave: immutable_field: "), "{found}");
        assert!(found.ends_with("finding warning annotation-not-understood\n"), "{found}");
    }
}
