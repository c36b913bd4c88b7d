//! What the API server serves: kinds with their plural, scope and verbs.
//!
//! Takes the server's discovery documents: aggregated (two requests, with an ETag, so asking again
//! costs next to nothing), or the older ones a group-version each. Gives [`Kinds`]. A
//! group-version that the server cannot speak for now (a stale aggregated API) is *unknown*, never
//! "does not exist".

mod aggregated;
mod plain;

use crate::counts::Verb;
use crate::request::{ApiServer, Call, RequestError};
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use trimtab_core::identity::{GroupKind, Gvk};

/// Aggregated discovery first, what older servers answer otherwise.
const ACCEPT: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;q=0.9";
/// Discovery documents of a large cluster are some 2 MB; more than this is no discovery.
pub(crate) const MAX_BYTES: usize = 64 << 20;
/// A server that waits for a broken aggregated API answers within this.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

/// One kind in one version, as served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKind {
    /// Group, version and kind.
    pub gvk: Gvk,
    /// Plural name, as in paths and RBAC rules.
    pub plural: Arc<str>,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// Verbs, such as `list` and `patch`.
    pub verbs: Vec<Arc<str>>,
    /// Whether it has the subresource `status`.
    pub has_status: bool,
}

impl ApiKind {
    /// Whether the server offers this verb for it.
    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.iter().any(|known| &**known == verb)
    }

    /// Whether it is the kind Namespace.
    pub(crate) fn is_namespace(&self) -> bool {
        self.gvk.group.is_empty() && &*self.gvk.kind == "Namespace"
    }
}

/// What discovery says of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup<'a> {
    /// The server serves it.
    Found(&'a ApiKind),
    /// The server does not serve it: no such group, version or kind.
    NotServed,
    /// It cannot be told now, and why.
    Unknown(&'a str),
}

/// What the server serves at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    kinds: HashMap<Gvk, ApiKind>,
    /// Versions of a group, the server's preferred one first.
    versions: HashMap<Arc<str>, Vec<Arc<str>>>,
    /// Group-versions that the server cannot speak for now, and why.
    unknown: BTreeMap<(Arc<str>, Arc<str>), String>,
}

impl Kinds {
    /// What is said of this kind in this version.
    pub fn lookup(&self, gvk: &Gvk) -> Lookup<'_> {
        if let Some(kind) = self.kinds.get(gvk) {
            return Lookup::Found(kind);
        }
        match self.unknown.get(&(gvk.group.clone(), gvk.version.clone())) {
            Some(reason) => Lookup::Unknown(reason),
            None => Lookup::NotServed,
        }
    }

    /// The kind in the version that the server prefers among those that have it. *Unknown* if a
    /// version that might have it cannot be told and none that can has it.
    pub fn preferred(&self, kind: &GroupKind) -> Lookup<'_> {
        let mut answer = Lookup::NotServed;
        for version in self.versions.get(&kind.group).into_iter().flatten() {
            let gvk = Gvk {
                group: kind.group.clone(),
                version: version.clone(),
                kind: kind.kind.clone(),
            };
            match self.lookup(&gvk) {
                Lookup::Found(found) => return Lookup::Found(found),
                Lookup::Unknown(reason) => answer = Lookup::Unknown(reason),
                Lookup::NotServed => {}
            }
        }
        answer
    }

    /// All kinds, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &ApiKind> {
        self.kinds.values()
    }

    /// Group-versions that cannot be told now (`metrics.k8s.io/v1beta1`), each with the reason.
    pub fn unknown(&self) -> impl Iterator<Item = (String, &str)> {
        self.unknown.iter().map(|((group, version), reason)| {
            (format!("{group}/{version}").trim_start_matches('/').to_owned(), reason.as_str())
        })
    }

    fn add_version(&mut self, group: &str, version: &str) {
        self.versions.entry(group.into()).or_default().push(version.into());
    }

    fn add_unknown(&mut self, group: &str, version: &str, reason: String) {
        self.unknown.insert((group.into(), version.into()), reason);
    }

    fn add(&mut self, kind: ApiKind) {
        match self.kinds.get(&kind.gvk) {
            // Two resources of one kind: the one that can be listed is the object itself.
            Some(known) if known.has_verb("list") || !kind.has_verb("list") => {}
            _ => {
                self.kinds.insert(kind.gvk.clone(), kind);
            }
        }
    }
}

/// One of the two aggregated documents, kept for its ETag.
#[derive(Clone, Debug)]
struct Document {
    etag: Option<String>,
    body: Bytes,
}

/// Reads discovery, and remembers enough to ask cheaply again.
#[derive(Debug, Default)]
pub(crate) struct Discovery {
    documents: HashMap<&'static str, Document>,
}

impl Discovery {
    /// What the server serves now.
    ///
    /// # Errors
    /// The server could not be asked at all. What failed for one group-version alone is inside
    /// the answer, as unknown.
    pub(crate) async fn read(&mut self, server: &ApiServer) -> Result<Kinds, RequestError> {
        let mut kinds = Kinds::default();
        for (root, legacy) in [("/api", true), ("/apis", false)] {
            let body = self.document(server, root).await?;
            if !aggregated::add(&mut kinds, &body) {
                plain::add(&mut kinds, server, legacy, &body).await?;
            }
        }
        Ok(kinds)
    }

    async fn document(
        &mut self,
        server: &ApiServer,
        root: &'static str,
    ) -> Result<Bytes, RequestError> {
        let known = self.documents.get(root);
        let mut call = Call::get(Verb::Discovery, root.to_owned());
        call.accept = ACCEPT;
        call.timeout = TIMEOUT;
        call.limit = MAX_BYTES;
        call.if_none_match = known.and_then(|document| document.etag.clone());
        let answer = server.call(call).await?;
        match known {
            Some(document) if answer.code == 304 => Ok(document.body.clone()),
            _ => {
                let document = Document { etag: answer.etag, body: answer.body };
                let body = document.body.clone();
                self.documents.insert(root, document);
                Ok(body)
            }
        }
    }
}
