//! Listening to a pass: a judge that hands everything on and remembers it. The sandbox's
//! [`Recording`] does the same for reads.

use super::answers;
use super::inputs::{Answer, Build, Decided, Inputs, Object, Read, VERSION};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};
use trimtab_core::decision::{Comparison, Difference, Verdict};
use trimtab_core::identity::GroupKind;
use trimtab_core::ownership::FIELD_MANAGER;
use trimtab_core::plugin::PluginIdentity;
use trimtab_core::ports::{Judge, PluginFault};
use trimtab_core::redact::Redactor;
use trimtab_core::snapshot::Snapshot;
use trimtab_wasm::{LookupError, Reads, Recording};

/// A judge that is listened to.
pub(crate) struct Keeping<J> {
    pub(crate) inner: J,
    /// What its reads were answered; `None`: nothing is kept of this pass.
    reads: Option<Arc<Recording>>,
    heard: Mutex<Heard>,
}

#[derive(Default)]
struct Heard {
    shown: Option<Snapshot>,
    comparison: Option<Value>,
    decision: Option<Decided>,
}

impl<J: Judge> Keeping<J> {
    /// Listens where there are `reads` to listen to as well.
    pub(crate) fn new(inner: J, reads: Option<Arc<Recording>>) -> Self {
        Self { inner, reads, heard: Mutex::default() }
    }

    /// What was heard, once the pass is over. `None` where the plugin gave no answer, or saw anything
    /// that must not be shown.
    pub(crate) fn inputs(&self, plugin: &PluginIdentity, redactor: &Redactor) -> Option<Inputs> {
        let reads = self.reads.as_ref()?;
        let mut heard = self.heard();
        let shown = heard.shown.take()?;
        let quotes = |json: &[u8]| redactor.quotes(json);
        if redactor.concerns(&shown.key.group_kind)
            || !self.inner.secrets_read().is_empty()
            || quotes(&shown.desired.json)
            || shown.live_object().is_some_and(|live| quotes(&live.json))
        {
            return None;
        }
        let reads = told(reads.take());
        let found = reads.iter().filter_map(|read| match &read.answer {
            Answer::Found(found) => Some((GroupKind::new(&read.group, &read.kind), found)),
            _ => None,
        });
        for (kind, found) in found {
            if redactor.concerns(&kind) || found.iter().any(|json| quotes(json.as_bytes())) {
                return None;
            }
        }
        let text = |json: &[u8]| String::from_utf8(json.to_vec()).ok();
        Some(Inputs {
            v: VERSION,
            plugin: Build {
                name: plugin.name.clone(),
                version: plugin.version.clone(),
                digest: plugin.digest.to_string(),
            },
            object: Object {
                group: shown.gvk.group.to_string(),
                version: shown.gvk.version.to_string(),
                kind: shown.gvk.kind.to_string(),
                namespace: shown.key.namespace_str().to_owned(),
                name: shown.key.name.to_string(),
            },
            desired: text(&shown.desired.json)?,
            live: match shown.live_object() {
                Some(live) => Some(text(&live.json)?),
                None => None,
            },
            facts: BASE64_STANDARD.encode(&shown.facts),
            now_ms: shown.now_ms,
            field_manager: FIELD_MANAGER.to_owned(),
            retries: shown.retries,
            reads,
            comparison: heard.comparison.take()?,
            decision: heard.decision.take(),
        })
    }

    fn heard(&self) -> std::sync::MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<J: Judge + Sync> Judge for Keeping<J> {
    async fn compare(&self, snapshot: &Snapshot) -> Result<Comparison, PluginFault> {
        let answer = self.inner.compare(snapshot).await?;
        if self.reads.is_some() {
            let mut heard = self.heard();
            heard.shown = Some(snapshot.clone());
            heard.comparison = Some(answers::comparison(&answer));
        }
        Ok(answer)
    }

    async fn decide(
        &self,
        snapshot: &Snapshot,
        differences: &[Difference],
    ) -> Result<Verdict, PluginFault> {
        let answer = self.inner.decide(snapshot, differences).await?;
        if self.reads.is_some() {
            self.heard().decision = Some(Decided {
                about: answers::differences(differences),
                answer: answers::verdict(&answer),
            });
        }
        Ok(answer)
    }

    fn secrets_read(&self) -> Vec<Arc<[u8]>> {
        self.inner.secrets_read()
    }
}

/// Reads as the file has them.
fn told(reads: Reads) -> Vec<Read> {
    let text = |json: &Arc<[u8]>| String::from_utf8_lossy(json).into_owned();
    let told = reads.into_iter().map(|((kind, namespace, name), answer)| Read {
        group: kind.group.to_string(),
        kind: kind.kind.to_string(),
        namespace,
        name,
        answer: match answer {
            Ok(found) => Answer::Found(found.iter().map(text).collect()),
            Err(LookupError::Denied) => Answer::Denied,
            Err(LookupError::Unavailable(why)) => Answer::Unavailable(why),
        },
    });
    told.collect()
}
