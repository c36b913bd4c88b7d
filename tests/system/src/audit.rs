//! The API server's own account of who asked it for what: its audit log.
//!
//! This, and not the host's word, says what was written. A dry run has a writing verb and writes
//! nothing, so it is told apart. Reviews of access and tokens are questions, whatever their verb.

use crate::Api;
use anyhow::{Context as _, Result};
use http::Method;
use serde_json::Value;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The log, and a client to know how far it is.
#[derive(Clone)]
pub struct Audit {
    path: PathBuf,
    api: Api,
}

/// One request that the API server answered.
#[derive(Clone, Debug)]
pub struct Request {
    /// Who: the impersonated user, or else the authenticated one.
    pub user: String,
    /// `User-Agent`.
    pub agent: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: String,
    /// Path and query.
    pub uri: String,
    /// HTTP status of the answer.
    pub code: u16,
    /// API group of the resource.
    pub group: String,
    /// Plural of the resource.
    pub resource: String,
    /// `status` and the like; usually empty.
    pub subresource: String,
    /// Empty for cluster-scoped resources.
    pub namespace: String,
    /// Empty where the request names no object.
    pub name: String,
}

impl Request {
    /// Whether it changes what the API server keeps, if it succeeds.
    pub fn writes(&self) -> bool {
        self.has_writing_verb() && !self.is_dry_run()
    }

    /// Whether it only asks what a write would do.
    pub fn rehearses(&self) -> bool {
        self.has_writing_verb() && self.is_dry_run()
    }

    /// Whether the API server did what it was asked.
    pub fn succeeded(&self) -> bool {
        (200..300).contains(&self.code)
    }

    /// Whether it made a new object.
    pub fn created(&self) -> bool {
        self.writes() && self.code == 201 && self.subresource.is_empty()
    }

    /// Whether it is about the inventory that a host keeps in the cluster of what it made, and so
    /// about nothing that anybody declared.
    pub fn keeps_inventory(&self) -> bool {
        let home = |name: &str| name.starts_with(crate::room::INVENTORY);
        home(&self.namespace) || self.resource == "namespaces" && home(&self.name)
    }

    /// Whether it is an Event that tells of a finding: a word about objects, and no change of one.
    pub fn tells_a_finding(&self) -> bool {
        self.group == "events.k8s.io" && self.resource == "events"
    }

    /// The object, for messages and for counting: `deployments.apps shop/web`.
    pub fn object(&self) -> String {
        let dot = if self.group.is_empty() { "" } else { "." };
        let slash = if self.namespace.is_empty() { "" } else { "/" };
        format!("{}{dot}{} {}{slash}{}", self.resource, self.group, self.namespace, self.name)
    }

    fn has_writing_verb(&self) -> bool {
        let asks = matches!(&*self.group, "authorization.k8s.io" | "authentication.k8s.io");
        !asks
            && matches!(&*self.verb, "create" | "update" | "patch" | "delete" | "deletecollection")
    }

    fn is_dry_run(&self) -> bool {
        self.uri.contains("dryRun=")
    }
}

impl Audit {
    pub(crate) fn new(path: PathBuf, api: Api) -> Self {
        Self { path, api }
    }

    /// Where it is.
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// Everything that was answered until now, in the log's order, the inventory and Events about
    /// findings aside.
    ///
    /// # Errors
    /// The log cannot be read.
    pub async fn requests(&self) -> Result<Vec<Request>> {
        let mut all = self.all().await?;
        all.retain(|request| !request.keeps_inventory() && !request.tells_a_finding());
        Ok(all)
    }

    /// The same with both.
    ///
    /// # Errors
    /// The log cannot be read.
    pub async fn all(&self) -> Result<Vec<Request>> {
        self.settle().await?;
        lines(&self.from(0)?).map(|line| Ok(request(&serde_json::from_slice(line)?))).collect()
    }

    /// What this user asked for.
    ///
    /// # Errors
    /// As [`Audit::requests`].
    pub async fn by(&self, user: &str) -> Result<Vec<Request>> {
        let mut all = self.requests().await?;
        all.retain(|request| request.user == user);
        Ok(all)
    }

    /// How far the log is now: for [`Audit::writes_since`].
    ///
    /// # Errors
    /// The log cannot be read.
    pub async fn mark(&self) -> Result<u64> {
        self.settle().await
    }

    /// Real writes by this user that were answered after a mark, as [`Audit::requests`] has them.
    ///
    /// # Errors
    /// As [`Audit::requests`].
    pub async fn writes_since(&self, mark: u64, user: &str) -> Result<Vec<Request>> {
        self.settle().await?;
        let named = format!("\"username\":{user:?}");
        let mut writes = Vec::new();
        for line in lines(&self.from(mark)?) {
            // Most lines are others', and reading one costs more than finding a name in it.
            if line.windows(named.len()).any(|window| window == named.as_bytes()) {
                writes.push(request(&serde_json::from_slice(line)?));
            }
        }
        let told = |it: &Request| it.keeps_inventory() || it.tells_a_finding();
        writes.retain(|it| it.user == user && it.writes() && !told(it));
        Ok(writes)
    }

    /// Real writes by this user.
    ///
    /// # Errors
    /// As [`Audit::requests`].
    pub async fn writes_by(&self, user: &str) -> Result<Vec<Request>> {
        let mut all = self.by(user).await?;
        all.retain(Request::writes);
        Ok(all)
    }

    /// A line is written just after its answer was sent: wait until one of our own is there. Gives
    /// how long the log was before that.
    async fn settle(&self) -> Result<u64> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mark = format!(
            "/version?harness={}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let before = std::fs::metadata(&self.path).map_or(0, |file| file.len());
        self.api.send(Method::GET, &mark, None, None).await?;
        crate::until("the audit log has the last request", Duration::from_secs(20), async || {
            let text = self.from(before)?;
            let found = text.windows(mark.len()).any(|window| window == mark.as_bytes());
            found.then_some(before).context("it is not there yet")
        })
        .await
    }

    /// The log's bytes from here on.
    fn from(&self, offset: u64) -> Result<Vec<u8>> {
        let read = || {
            let mut file = std::fs::File::open(&self.path)?;
            file.seek(SeekFrom::Start(offset))?;
            let mut text = Vec::new();
            file.read_to_end(&mut text).map(|_| text)
        };
        read().with_context(|| format!("cannot read {}", self.path.display()))
    }
}

/// Whole lines.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let complete = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    text[..complete].split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

fn request(event: &Value) -> Request {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let object = &event["objectRef"];
    let impersonated = &event["impersonatedUser"]["username"];
    let user = if impersonated.is_string() { impersonated } else { &event["user"]["username"] };
    let code = event["responseStatus"]["code"].as_u64().unwrap_or_default();
    Request {
        user: text(user),
        agent: text(&event["userAgent"]),
        verb: text(&event["verb"]),
        uri: text(&event["requestURI"]),
        code: u16::try_from(code).unwrap_or_default(),
        group: text(&object["apiGroup"]),
        resource: text(&object["resource"]),
        subresource: text(&object["subresource"]),
        namespace: text(&object["namespace"]),
        name: text(&object["name"]),
    }
}
