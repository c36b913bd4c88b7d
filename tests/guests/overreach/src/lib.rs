//! A plugin that asks for whatever the annotation `overreach.example/ask` says: what the gate is
//! tested with on a real API server.

use trimtab_sdk::{
    Action, Decision, Difference, Object, Path, Reconciler, Snapshot, Value, Verdict,
};

/// Does as it is told.
pub struct Overreach;

impl Reconciler for Overreach {
    fn decide(snapshot: &Snapshot<'_>, _: &[Difference<'_>]) -> Verdict {
        let Some(desired) = snapshot.desired() else { return Verdict::unknown("no desired") };
        let ask = desired.str_at(&["metadata", "annotations", "overreach.example/ask"]);
        let action = match ask.unwrap_or_default() {
            "apply" => Action::ApplyDesired { without: vec![] },
            "adopt" => Action::Adopt,
            "recreate" => Action::Recreate,
            "delete" => Action::Delete,
            "remove" => match Path::parse("/metadata/labels/stray") {
                Ok(path) => Action::RemoveFields(vec![path]),
                Err(_) => return Verdict::unknown("no path"),
            },
            "status" => Action::PatchStatus(Object::new().with("status", Object::new()).into()),
            "content" => content(desired, "labels", Object::new().with("made", "1").into()),
            "omit" => omitting(desired, "data"),
            "elsewhere" => content(desired, "namespace", "kube-system".into()),
            "another" => content(desired, "name", "another".into()),
            "nameless" => content(desired, "generateName", "x-".into()),
            "hold" => {
                content(desired, "finalizers", vec![Value::from("overreach.example/x")].into())
            }
            "own" => content(desired, "ownerReferences", vec![owner()].into()),
            "list" => Action::ApplyContent(
                Object::new()
                    .with("apiVersion", "v1")
                    .with("kind", "List")
                    .with("items", vec![desired.clone().into_owned()])
                    .into(),
            ),
            _ => return Decision::new().leave("nobody asks for anything").into(),
        };
        Decision::new().action(action).into()
    }
}

/// Desired with this in its metadata.
fn content(desired: &Value<'_>, name: &'static str, value: Value<'static>) -> Action {
    let mut made = desired.clone().into_owned();
    let metadata = made.as_object_mut().and_then(|root| root.get_mut("metadata"));
    if let Some(metadata) = metadata.and_then(Value::as_object_mut) {
        metadata.insert(name, value);
    }
    Action::ApplyContent(made)
}

/// Desired without this.
fn omitting(desired: &Value<'_>, name: &str) -> Action {
    let mut made = desired.clone().into_owned();
    if let Some(root) = made.as_object_mut() {
        root.remove(name);
    }
    Action::ApplyContent(made)
}

fn owner() -> Value<'static> {
    Object::new()
        .with("apiVersion", "v1")
        .with("kind", "ConfigMap")
        .with("name", "foreign")
        .with("uid", "00000000-0000-0000-0000-000000000000")
        .into()
}

trimtab_sdk::export!(Overreach);

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_sdk::testing::Case;

    #[test]
    fn it_asks_for_what_it_is_told() {
        let told = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","annotations":{"overreach.example/ask":"delete"}}}"#;
        let live = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}"#;
        Case::new().desired(told).live(live).check::<Overreach>(
            r#"
            missing /metadata/annotations/overreach.example~1ask "delete"
            delete
            "#,
        );
    }
}
