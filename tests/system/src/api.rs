//! The people and programs that change a cluster: a client that says who it is.
//!
//! Each [`Api`] acts as a user of its own (by impersonation, so that the audit log tells users
//! apart) and writes under a field manager of the same name. It refuses any server but the one
//! that was started here.

use crate::Id;
use anyhow::{Context as _, Result};
use http::{Method, Request};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use trimtab_dev::ControlPlane;

/// Who may do everything.
const ADMINISTRATORS: &str = "system:masters";

/// Plural and scope of a kind, by apiVersion and kind.
type Kinds = HashMap<(String, String), (String, bool)>;

/// A client that acts as one user.
#[derive(Clone)]
pub struct Api {
    client: Client,
    config: Config,
    user: String,
    kinds: Arc<Mutex<Kinds>>,
}

/// The API server's refusal.
#[derive(Debug)]
pub struct Failure {
    /// HTTP status.
    pub code: u16,
    /// Its message.
    pub message: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the API server answers {}: {}", self.code, self.message)
    }
}

impl std::error::Error for Failure {}

impl Api {
    /// As this user, to the control plane that was started here.
    ///
    /// # Errors
    /// The kubeconfig names some other server.
    pub async fn connect(plane: &ControlPlane, user: &str) -> Result<Self> {
        let kubeconfig = Kubeconfig::read_from(plane.kubeconfig())?;
        let config =
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        plane.guard(&config.cluster_url.to_string())?;
        Self::with(config, user, Arc::default())
    }

    /// The same server as another user.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn user(&self, user: &str) -> Result<Self> {
        Self::with(self.config.clone(), user, self.kinds.clone())
    }

    fn with(mut config: Config, user: &str, kinds: Arc<Mutex<Kinds>>) -> Result<Self> {
        config.auth_info.impersonate = Some(user.to_owned());
        config.auth_info.impersonate_groups = Some(vec![ADMINISTRATORS.to_owned()]);
        let client = Client::try_from(config.clone())?;
        Ok(Self { client, config, user: user.to_owned(), kinds })
    }

    /// The object; `None` if it is not there.
    ///
    /// # Errors
    /// Any other answer.
    pub async fn get(&self, id: &Id) -> Result<Option<Value>> {
        let path = self.path(id).await?;
        match self.send(Method::GET, &path, None, None).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if code(&error) == Some(404) => Ok(None),
            Err(error) => Err(error).with_context(|| format!("get {id}")),
        }
    }

    /// The object, which must be there.
    ///
    /// # Errors
    /// It is not.
    pub async fn require(&self, id: &Id) -> Result<Value> {
        self.get(id).await?.with_context(|| format!("{id} is not there"))
    }

    /// Makes this object.
    ///
    /// # Errors
    /// The API server's refusal.
    pub async fn create(&self, object: &Value) -> Result<Value> {
        let id = Id::of(object).context("an object without a name")?;
        let path = self.collection(&id).await? + &self.manager("?");
        let json = Some("application/json");
        self.send(Method::POST, &path, json, Some(object))
            .await
            .with_context(|| format!("create {id}"))
    }

    /// Server-side apply; a field that the schema does not know is refused.
    ///
    /// # Errors
    /// The API server's refusal, a conflict among them.
    pub async fn apply(&self, object: &Value) -> Result<Value> {
        self.apply_with(object, "").await
    }

    /// The same, overriding other managers.
    ///
    /// # Errors
    /// The API server's refusal.
    pub async fn apply_by_force(&self, object: &Value) -> Result<Value> {
        self.apply_with(object, "&force=true").await
    }

    async fn apply_with(&self, object: &Value, options: &str) -> Result<Value> {
        let id = Id::of(object).context("an object without a name")?;
        let manager = self.manager("?");
        let path = format!("{}{manager}&fieldValidation=Strict{options}", self.path(&id).await?);
        let apply = Some("application/apply-patch+yaml");
        self.send(Method::PATCH, &path, apply, Some(object))
            .await
            .with_context(|| format!("apply {id}"))
    }

    /// JSON merge patch.
    ///
    /// # Errors
    /// The API server's refusal.
    pub async fn merge(&self, id: &Id, patch: &Value) -> Result<Value> {
        let path = self.path(id).await? + &self.manager("?");
        let merge = Some("application/merge-patch+json");
        self.send(Method::PATCH, &path, merge, Some(patch))
            .await
            .with_context(|| format!("patch {id}"))
    }

    /// A patch of any content type, of the object or of a subresource of it (`""`: the object).
    ///
    /// # Errors
    /// The API server's refusal.
    pub async fn patch(
        &self,
        id: &Id,
        subresource: &str,
        content_type: &str,
        patch: &Value,
    ) -> Result<Value> {
        let slash = if subresource.is_empty() { "" } else { "/" };
        let path = format!("{}{slash}{subresource}{}", self.path(id).await?, self.manager("?"));
        self.send(Method::PATCH, &path, Some(content_type), Some(patch))
            .await
            .with_context(|| format!("patch {id}{slash}{subresource}"))
    }

    /// What would come of making this object: a dry run.
    ///
    /// # Errors
    /// The API server's refusal.
    pub async fn rehearse(&self, object: &Value) -> Result<Value> {
        let id = Id::of(object).context("an object without a name")?;
        let path = format!("{}{}&dryRun=All", self.collection(&id).await?, self.manager("?"));
        let json = Some("application/json");
        self.send(Method::POST, &path, json, Some(object))
            .await
            .with_context(|| format!("rehearse {id}"))
    }

    /// Replaces the object by this one, as an editor does.
    ///
    /// # Errors
    /// The API server's refusal, a changed resourceVersion among them.
    pub async fn replace(&self, object: &Value) -> Result<Value> {
        let id = Id::of(object).context("an object without a name")?;
        let path = self.path(&id).await? + &self.manager("?");
        let json = Some("application/json");
        self.send(Method::PUT, &path, json, Some(object))
            .await
            .with_context(|| format!("replace {id}"))
    }

    /// Reads the object, changes it, and replaces it.
    ///
    /// # Errors
    /// It is not there, or the API server refuses the change.
    pub async fn edit(&self, id: &Id, change: impl Fn(&mut Value)) -> Result<Value> {
        loop {
            let mut object = self.require(id).await?;
            change(&mut object);
            match self.replace(&object).await {
                Err(error) if code(&error) == Some(409) => {}
                other => return other,
            }
        }
    }

    /// Deletes the object.
    ///
    /// # Errors
    /// The API server's refusal.
    pub async fn delete(&self, id: &Id) -> Result<()> {
        let path = self.path(id).await?;
        self.send(Method::DELETE, &path, None, None)
            .await
            .with_context(|| format!("delete {id}"))?;
        Ok(())
    }

    /// Every object of a kind, over all namespaces.
    ///
    /// # Errors
    /// The API server's refusal.
    pub async fn list(&self, api_version: &str, kind: &str) -> Result<Vec<Value>> {
        let (plural, _) = self.kind(api_version, kind).await?;
        let path = format!("{}/{plural}", root(api_version));
        let mut list = self.send(Method::GET, &path, None, None).await?;
        match list["items"].take() {
            Value::Array(items) => Ok(items),
            _ => Ok(Vec::new()),
        }
    }

    /// A token of this service account, good for an hour.
    ///
    /// # Errors
    /// The API server's refusal.
    pub async fn token(&self, namespace: &str, account: &str) -> Result<String> {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 3600},
        });
        let json = Some("application/json");
        let answer = self.send(Method::POST, &path, json, Some(&request)).await?;
        Ok(answer["status"]["token"].as_str().context("the answer has no token")?.to_owned())
    }

    /// One request to this path.
    ///
    /// # Errors
    /// [`Failure`] for the API server's refusal; no answer at all.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: Option<&str>,
        body: Option<&Value>,
    ) -> Result<Value> {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(content_type) = content_type {
            request = request.header("content-type", content_type);
        }
        let body = body.map(serde_json::to_vec).transpose()?.unwrap_or_default();
        match self.client.request_text(request.body(body)?).await {
            Ok(text) => Ok(serde_json::from_str(&text).unwrap_or(Value::String(text))),
            Err(kube::Error::Api(status)) => {
                Err(Failure { code: status.code, message: status.message.clone() }.into())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn manager(&self, before: &str) -> String {
        format!("{before}fieldManager={}", self.user)
    }

    async fn path(&self, id: &Id) -> Result<String> {
        Ok(format!("{}/{}", self.collection(id).await?, id.name))
    }

    async fn collection(&self, id: &Id) -> Result<String> {
        let (plural, namespaced) = self.kind(&id.api_version, &id.kind).await?;
        let root = root(&id.api_version);
        Ok(if namespaced {
            format!("{root}/namespaces/{}/{plural}", id.namespace)
        } else {
            format!("{root}/{plural}")
        })
    }

    async fn kind(&self, api_version: &str, kind: &str) -> Result<(String, bool)> {
        let key = (api_version.to_owned(), kind.to_owned());
        let known = |kinds: &Mutex<Kinds>| {
            kinds.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()
        };
        if let Some(found) = known(&self.kinds) {
            return Ok(found);
        }
        let list = self.send(Method::GET, &root(api_version), None, None).await?;
        for resource in list["resources"].as_array().into_iter().flatten() {
            let (Some(name), Some(kind)) = (resource["name"].as_str(), resource["kind"].as_str())
            else {
                continue;
            };
            if !name.contains('/') {
                let namespaced = resource["namespaced"].as_bool().unwrap_or_default();
                self.kinds.lock().unwrap_or_else(PoisonError::into_inner).insert(
                    (api_version.to_owned(), kind.to_owned()),
                    (name.to_owned(), namespaced),
                );
            }
        }
        known(&self.kinds)
            .with_context(|| format!("the API server serves no {kind} in {api_version}"))
    }
}

/// The API server's HTTP status, if it is the server that failed.
fn code(error: &anyhow::Error) -> Option<u16> {
    error.downcast_ref::<Failure>().map(|failure| failure.code)
}

fn root(api_version: &str) -> String {
    if api_version.contains('/') {
        format!("/apis/{api_version}")
    } else {
        format!("/api/{api_version}")
    }
}
