//! Steps: what people and programs do to a cluster, each under its own name.

use super::form::Step;
use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use trimtab_system_tests::{Api, Cluster, Id, PATIENCE, until};

/// One step, by whom it says.
pub(super) async fn take(cluster: &Cluster, first: Option<&Id>, step: &Step) -> Result<()> {
    let api = cluster.user(&step.by)?;
    let id = match (&step.of, first) {
        (Some([api_version, kind, name]), first) => {
            let namespace = first.map(|id| id.namespace.clone()).unwrap_or_default();
            Id::new(api_version, kind, &namespace, name)
        }
        (None, Some(first)) => first.clone(),
        (None, None) => bail!("there is no first object"),
    };
    if let Some(object) = &step.apply {
        api.apply(object).await?;
    }
    if let Some(object) = &step.force {
        api.apply_by_force(object).await?;
    }
    if let Some(object) = &step.client_side_apply {
        client_side_apply(&api, object).await?;
    }
    if let Some(object) = &step.create {
        api.create(object).await?;
    }
    if let Some(object) = &step.put {
        put(&api, object).await?;
    }
    if let Some(patch) = &step.patch {
        api.merge(&id, patch).await?;
    }
    if let Some(patch) = &step.json_patch {
        api.patch(&id, "", "application/json-patch+json", patch).await?;
    }
    if let Some(replicas) = step.scale {
        let patch = json!({"spec": {"replicas": replicas}});
        api.patch(&id, "scale", "application/merge-patch+json", &patch).await?;
    }
    if let Some(patch) = &step.status {
        api.patch(&id, "status", "application/merge-patch+json", patch).await?;
    }
    if step.delete {
        api.delete(&id).await?;
    }
    if let Some(object) = &step.rehearse {
        until(format!("a rehearsal has {:?}", step.has), PATIENCE, async || {
            let made = api.rehearse(object).await?;
            let has = step.has.iter().all(|(pointer, value)| made.pointer(pointer) == Some(value));
            has.then_some(()).context("it has not")
        })
        .await?;
    }
    Ok(())
}

/// Everything but identity as `wanted` says.
async fn put(api: &Api, wanted: &Value) -> Result<()> {
    let id = Id::of(wanted).context("an object without a name")?;
    api.edit(&id, |live| {
        let Some(members) = live.as_object_mut() else { return };
        let kept = ["apiVersion", "kind", "metadata", "status"];
        members.retain(|name, _| kept.contains(&&**name));
        for (name, value) in wanted.as_object().into_iter().flatten() {
            if !kept.contains(&&**name) {
                members.insert(name.clone(), value.clone());
            }
        }
        for name in ["labels", "annotations", "finalizers", "ownerReferences"] {
            live["metadata"][name] = wanted["metadata"][name].clone();
        }
    })
    .await?;
    Ok(())
}

async fn client_side_apply(api: &Api, object: &Value) -> Result<()> {
    let id = Id::of(object).context("an object without a name")?;
    let mut annotated = object.clone();
    annotated["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] =
        format!("{object}\n").into();
    match api.get(&id).await? {
        Some(_) => api.merge(&id, &annotated).await?,
        None => api.create(&annotated).await?,
    };
    Ok(())
}
