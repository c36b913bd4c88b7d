//! Wraps its object in a List, or says one key twice.

use crate::content::{and_apply, desired, raw, with_all};
use crate::shape;
use trimtab_sdk::{Action, Snapshot, Verdict};

pub(super) fn decide(snapshot: &Snapshot<'_>) -> Verdict {
    if shape(snapshot) == "list" {
        let items = vec![desired(snapshot); 2];
        let mut list = desired(snapshot);
        if let Some(object) = list.as_object_mut() {
            object.insert("kind", "List");
            object.insert("apiVersion", "v1");
            object.insert("items", items.clone());
        }
        let mut typed = desired(snapshot);
        if let Some(object) = typed.as_object_mut() {
            object.insert("kind", "TrialList");
            object.insert("items", items);
        }
        return and_apply([Action::ApplyContent(list), Action::ApplyContent(typed)]);
    }
    let twice = raw(
        r#"{"apiVersion":"hostile.example/v1","kind":"Trial","kind":"Secret","metadata":{"name":"a"}}"#,
    );
    and_apply([Action::ApplyContent(twice), with_all(snapshot, &[])])
}
