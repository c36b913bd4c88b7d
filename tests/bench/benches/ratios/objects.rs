//! The objects that everything is measured with: made here, stored by the real API server, so that
//! defaults and managedFields are the server's own.

use anyhow::{Context as _, Result};
use http::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use trimtab_core::identity::{Digest, Gvk, ObjectKey};
use trimtab_core::object::{Desired, Live, LiveObject, Origin};
use trimtab_core::ownership::FIELD_MANAGER;
use trimtab_core::snapshot::Snapshot;
use trimtab_kube::ApiServer;
use trimtab_system_tests::{Api, Cluster, Id};

/// A Deployment of some 4 KB as a team writes it: two containers with probes, limits, environment
/// and volumes.
pub(crate) fn deployment(namespace: &str, name: &str) -> Value {
    let env = |n: usize| {
        let variable = |i: usize| json!({"name": format!("SHOP_SETTING_{i:02}"), "value": format!("value-{i}.shop.example")});
        (0..n).map(variable).collect::<Vec<_>>()
    };
    let probe = |path: &str| json!({"httpGet": {"path": path, "port": "http"}, "periodSeconds": 10, "failureThreshold": 3});
    let container = |name: &str, variables: usize| {
        json!({
            "name": name,
            "image": format!("registry.shop.example/{name}:1.27.3"),
            "args": ["--listen=:8080", "--log-format=json", format!("--service={name}")],
            "ports": [{"name": "http", "containerPort": 8080}, {"name": "metrics", "containerPort": 9090}],
            "env": env(variables),
            "envFrom": [{"configMapRef": {"name": format!("{name}-settings")}}],
            "resources": {"requests": {"cpu": "0.25", "memory": "256Mi"}, "limits": {"memory": "1Gi"}},
            "readinessProbe": probe("/ready"),
            "livenessProbe": probe("/live"),
            "volumeMounts": [
                {"name": "config", "mountPath": "/etc/shop", "readOnly": true},
                {"name": "cache", "mountPath": "/var/cache/shop"},
            ],
            "securityContext": {
                "runAsNonRoot": true, "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
            },
        })
    };
    let labels = json!({
        "app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "shop",
        "app.kubernetes.io/managed-by": "trimtab",
    });
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": name, "namespace": namespace, "labels": labels,
            "annotations": {
                "shop.example/team": "checkout", "shop.example/build": "1207",
                "shop.example/runbook": "https://runbooks.shop.example/checkout/web",
            },
        },
        "spec": {
            "replicas": 3,
            "revisionHistoryLimit": 5,
            "selector": {"matchLabels": {"app.kubernetes.io/name": name}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": name,
                    "terminationGracePeriodSeconds": 45,
                    "securityContext": {"fsGroup": 2000, "runAsUser": 1000},
                    "containers": [container("web", 12), container("proxy", 8)],
                    "volumes": [
                        {"name": "config", "configMap": {"name": format!("{name}-files")}},
                        {"name": "cache", "emptyDir": {"sizeLimit": "1Gi"}},
                    ],
                },
            },
        },
    })
}

/// A ConfigMap that is 4 KB as the server stores it, managedFields included.
pub(crate) fn config_map(namespace: &str, name: &str) -> Value {
    let mut data = serde_json::Map::new();
    for i in 0..16 {
        let value = format!("setting-{i} of {name}: ").repeat(8);
        data.insert(format!("setting-{i:02}.conf"), value[..190].into());
    }
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": {"shop.example/team": "checkout"}},
        "data": data,
    })
}

/// The status that the Deployment controller writes, as its own manager: half of what makes a live
/// Deployment larger than a declared one.
pub(crate) async fn run(cluster: &Cluster, deployment: &Value) -> Result<()> {
    let condition = |kind: &str, reason: &str| {
        json!({
            "type": kind, "status": "True", "reason": reason, "message": "Deployment is well.",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z",
        })
    };
    let conditions = [
        condition("Available", "MinimumReplicasAvailable"),
        condition("Progressing", "NewReplicaSetAvailable"),
    ];
    let status = json!({
        "observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3,
        "availableReplicas": 3, "conditions": conditions,
    });
    let manager = cluster.user("kube-controller-manager")?;
    patch_status(&manager, deployment, &json!({"status": status})).await
}

/// Changes the status of a Deployment.
pub(crate) async fn patch_status(api: &Api, deployment: &Value, patch: &Value) -> Result<()> {
    let Id { namespace, name, .. } = Id::of(deployment).context("no name")?;
    let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}/status");
    let merge = Some("application/merge-patch+json");
    api.send(Method::PATCH, &path, merge, Some(patch)).await?;
    Ok(())
}

/// What the server's own schema says of a kind.
pub(crate) async fn facts(server: &ApiServer, gvk: &Gvk) -> Result<Arc<[u8]>> {
    let index = server.schema_index().await?;
    let address = index.address(gvk).context("no schema document")?;
    let document = server.schema(address).await?;
    let document = trimtab_json::parse(&document)?;
    Ok(trimtab_compare::facts::build(&document, &gvk.group, &gvk.version, &gvk.kind)?.into())
}

/// As the host holds a declared object.
pub(crate) fn desired(object: &Value) -> Result<Desired> {
    let json: Arc<[u8]> = serde_json::to_vec(object)?.into();
    let id = Id::of(object).context("no name")?;
    let gvk = Gvk::from_api_version(&id.api_version, &id.kind);
    Ok(Desired {
        key: ObjectKey::new(gvk.group_kind(), &id.namespace, &id.name),
        gvk,
        digest: Digest::of(&json),
        json,
        source: "bench".into(),
        revision: "1".into(),
        origin: Origin { file: "bench.yaml".into(), line: 1 },
        ignore: Default::default(),
        terms: Default::default(),
    })
}

/// As the host holds a live object.
pub(crate) fn live(object: &Value) -> Result<LiveObject> {
    let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default().into();
    Ok(LiveObject {
        json: serde_json::to_vec(object)?.into(),
        uid: text("uid"),
        resource_version: text("resourceVersion"),
        deleting: false,
    })
}

/// What a pass over these is given.
pub(crate) fn snapshot(desired: Arc<Desired>, live: Live, facts: Arc<[u8]>) -> Snapshot {
    Snapshot {
        key: desired.key.clone(),
        gvk: desired.gvk.clone(),
        desired,
        live,
        facts,
        applied_uid: None,
        now_ms: 1_767_225_600_000,
        retries: 0,
        standoff: None,
    }
}

/// Stores these objects as the host would have applied them, some at a time.
pub(crate) async fn apply_all(cluster: &Cluster, objects: &[Value]) -> Result<()> {
    use futures::{StreamExt as _, TryStreamExt as _};
    const AT_ONCE: usize = 8;
    let host = cluster.user(FIELD_MANAGER)?;
    futures::stream::iter(objects)
        .map(|object| host.apply(object))
        .buffer_unordered(AT_ONCE)
        .try_for_each(|_| std::future::ready(Ok(())))
        .await
}
