//! The only writer. Each request that may change the cluster is made here.
//!
//! Takes a `Change` (which only core's gate makes) or a `Probe` (rehearsed, never written). Gives
//! what the server made of it, or an [`ApplyError`] that says what to do next.
//!
//! - Everything is under one field manager, [`FIELD_MANAGER`], and as the account that the target
//!   names, dry runs included (`impersonate.rs`).
//! - Content that the schema does not know is refused and not silently dropped: a misspelt field
//!   would otherwise be reported as corrected for ever. Server-side apply refuses unknown fields
//!   whatever `fieldValidation` says (as 500, "failed to create typed patch object"), and with
//!   `Strict`, kubectl's own default, keys that are given twice, too.
//! - A resourceVersion alone does not keep an apply from creating an object that is gone; a UID
//!   does. Core's gate sends both. (All of this was tried on kube-apiserver 1.37.)
//! - The store knows the answer before the caller does, so that no pass sees a state from before
//!   its own write. After *stale*, the object has been read again.
//! - Nothing is retried here: whether a request whose answer was lost was done, the watch tells.

use crate::address::{self, BadName};
use crate::counts::Verb;
use crate::decode;
use crate::dependents;
use crate::discovery::{ApiKind, Lookup};
use crate::refusal::{Asked, meaning};
use crate::request::{Call, RequestError};
use crate::store::Store;
use crate::suspects::Suspects;
use bytes::Bytes;
use http::Method;
use std::sync::Arc;
use trimtab_core::gate::{Change, Effect, Probe, Target};
use trimtab_core::ports::{ApplyError, Cluster, Written};

/// The field manager of everything that Trimtab writes: what `managedFields`, conflicts and
/// `kubectl get --show-managed-fields` name. It must never change: fields under an old name would
/// stay owned by nobody.
pub use trimtab_core::ownership::FIELD_MANAGER;

/// Server-side apply takes YAML, of which JSON is a part. (`application/apply-patch+json` does not
/// exist before 1.36.)
const APPLY: &str = "application/apply-patch+yaml";
const JSON_PATCH: &str = "application/json-patch+json";
const JSON: &str = "application/json";

/// Writes to the cluster. Clones share the connection and the store.
#[derive(Clone, Debug)]
pub struct Writer {
    store: Store,
    suspects: Arc<Suspects>,
}

impl Writer {
    /// Writes through the store's connection.
    pub fn new(store: Store) -> Self {
        Self { store, suspects: Arc::default() }
    }

    /// The user that the API server knows us as.
    ///
    /// # Errors
    /// It cannot be asked, or its answer names nobody.
    pub async fn who_we_are(&self) -> Result<String, String> {
        let review = serde_json::json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "SelfSubjectReview",
        });
        let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews".to_owned();
        let body = Bytes::from(review.to_string());
        let call = Call::send(Verb::Create, Method::POST, path, JSON, body);
        let answer = self.store.server().call(call).await.map_err(|error| error.to_string())?;
        let answer: serde_json::Value =
            serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
        let user = answer["status"]["userInfo"]["username"].as_str();
        user.map(str::to_owned).ok_or_else(|| "the answer names no user".to_owned())
    }

    /// The kind as the server serves it, and the object's path.
    fn locate(&self, target: &Target) -> Result<(ApiKind, String), ApplyError> {
        let unavailable = |message: String| ApplyError::Unavailable { message, retry_after: None };
        let Some(kinds) = self.store.kinds() else {
            return Err(unavailable("discovery has not been read yet".into()));
        };
        let kind = match kinds.lookup(&target.gvk) {
            Lookup::Found(kind) => kind.clone(),
            Lookup::NotServed => {
                return Err(ApplyError::NotYet(format!(
                    "the API server does not serve {}: is its CRD installed?",
                    target.gvk
                )));
            }
            Lookup::Unknown(reason) => return Err(unavailable(reason.to_owned())),
        };
        let key = &target.key;
        let path = address::object(&kind, key.namespace.as_deref(), &key.name)
            .map_err(|bad: BadName| ApplyError::Rejected(bad.to_string()))?;
        Ok((kind, path))
    }

    /// Sends a change and takes its answer into the store.
    async fn send(
        &self,
        target: &Target,
        asked: Asked,
        call: Call,
        kind: &ApiKind,
    ) -> Result<Bytes, ApplyError> {
        let call = Call { acts_as: target.acts_as.clone(), ..call };
        match self.store.server().call(call).await {
            Ok(answer) => Ok(answer.body),
            Err(error) => Err(self.failed(target, asked, error, kind).await),
        }
    }

    async fn failed(
        &self,
        target: &Target,
        asked: Asked,
        error: RequestError,
        kind: &ApiKind,
    ) -> ApplyError {
        let error = meaning(error, asked, kind, &target.key);
        if matches!(error, ApplyError::Stale(_)) {
            // The watch will show it too, but the next pass may come first.
            self.store.read_again(&target.key, &target.gvk).await;
        }
        error
    }

    async fn delete(
        &self,
        target: &Target,
        kind: &ApiKind,
        path: String,
        (uid, version): (&Arc<str>, &str),
        orphan: bool,
    ) -> Result<Written, ApplyError> {
        let options = serde_json::json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": { "uid": &**uid, "resourceVersion": version },
            "propagationPolicy": if orphan { "Orphan" } else { "Background" },
        });
        let body = Bytes::from(options.to_string());
        let call = Call::send(Verb::Delete, Method::DELETE, path.clone(), JSON, body);
        let answer = self.send(target, Asked::Delete, call, kind).await?;
        // Some kinds answer a delete with the object, whether it is gone or only marked.
        if decode::meta(&answer).is_ok_and(|meta| *meta.uid == **uid) {
            match self.store.server().call(Call::get(Verb::Get, path)).await {
                Ok(now) if decode::meta(&now.body).is_ok_and(|meta| *meta.uid == **uid) => {
                    self.store.observe_written(&target.key, &now.body);
                    return Ok(Written::Object(now.body[..].into()));
                }
                Ok(_) => {}
                Err(error) if error.code() == 404 => {}
                // It is marked at least; the watch shows its end.
                Err(_) => return Ok(Written::Object(answer[..].into())),
            }
        }
        self.store.observe_deleted(&target.key, &target.gvk, uid);
        Ok(Written::Deleted)
    }
}

impl Cluster for Writer {
    /// A server-side dry run: one request, nothing written, the store untouched.
    async fn rehearse(&self, probe: &Probe) -> Result<Arc<[u8]>, ApplyError> {
        let target = probe.target();
        let (kind, path) = self.locate(target)?;
        let (asked, path, form) = match probe.patches() {
            false => (Asked::Apply, apply_path(&path, probe.force()), APPLY),
            true => (Asked::Patch, patch_path(&path), JSON_PATCH),
        };
        let body = Bytes::copy_from_slice(probe.body());
        let path = format!("{path}&dryRun=All");
        let call = Call::send(Verb::Rehearse, Method::PATCH, path, form, body);
        Ok(self.send(target, asked, call, &kind).await?[..].into())
    }

    async fn suspects(&self, probe: &Probe) -> Result<Vec<String>, String> {
        let target = probe.target();
        let (kind, _) = self.locate(target).map_err(|error| error.to_string())?;
        let live = self.store.live(&target.key, &target.gvk);
        let live = live.object().map(|live| &*live.json);
        self.suspects.of(&self.store, &kind, target, live, probe.body()).await
    }

    async fn dependents(&self, target: &Target, live: &[u8]) -> Vec<String> {
        dependents::dependents(&self.store, &target.key, live).await
    }

    async fn write(&self, change: &Change) -> Result<Written, ApplyError> {
        let target = change.target();
        let (kind, path) = self.locate(target)?;
        let _hold = self.store.hold(&target.key, &target.gvk);
        let bytes = |body: &Arc<[u8]>| Bytes::copy_from_slice(body);
        let (asked, call) = match change.effect() {
            Effect::Apply { body, force } => {
                let path = apply_path(&path, *force);
                (Asked::Apply, Call::send(Verb::Apply, Method::PATCH, path, APPLY, bytes(body)))
            }
            Effect::Create { body } => {
                let path = address::collection(&kind, target.key.namespace.as_deref());
                let path = format!("{path}?fieldManager={FIELD_MANAGER}&fieldValidation=Strict");
                (Asked::Create, Call::send(Verb::Create, Method::POST, path, JSON, bytes(body)))
            }
            Effect::ApplyStatus { body } => {
                if !kind.has_status {
                    let reason = format!("{} has no status of its own", kind.gvk);
                    return Err(ApplyError::Rejected(reason));
                }
                let path = apply_path(&format!("{path}/status"), false);
                let call = Call::send(Verb::ApplyStatus, Method::PATCH, path, APPLY, bytes(body));
                (Asked::ApplyStatus, call)
            }
            Effect::Patch { body } => {
                let path = patch_path(&path);
                (
                    Asked::Patch,
                    Call::send(Verb::Patch, Method::PATCH, path, JSON_PATCH, bytes(body)),
                )
            }
            Effect::Delete { uid, resource_version, orphan } => {
                let preconditions = (uid, &**resource_version);
                return self.delete(target, &kind, path, preconditions, *orphan).await;
            }
        };
        let answer = self.send(target, asked, call, &kind).await?;
        self.store.observe_written(&target.key, &answer);
        Ok(Written::Object(answer[..].into()))
    }
}

/// Not strict: a patch of ours that is written only removes, and what is unknown in the rest is not
/// its fault; besides, that refusal would quote the whole object.
fn patch_path(path: &str) -> String {
    format!("{path}?fieldManager={FIELD_MANAGER}&fieldValidation=Warn")
}

fn apply_path(path: &str, force: bool) -> String {
    format!("{path}?fieldManager={FIELD_MANAGER}&force={force}&fieldValidation=Strict")
}
