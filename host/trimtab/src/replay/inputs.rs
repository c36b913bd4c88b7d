//! What one pass's plugin was shown and answered, as one JSON file.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Version of the file's keys.
pub(crate) const VERSION: u32 = 1;

/// All that a plugin saw in a pass, and what it said. Objects are JSON text in a string: bit for bit
/// what crossed into the sandbox.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Inputs {
    pub(crate) v: u32,
    pub(crate) plugin: Build,
    pub(crate) object: Object,
    pub(crate) desired: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) live: Option<String>,
    /// In base64.
    pub(crate) facts: String,
    pub(crate) now_ms: u64,
    pub(crate) field_manager: String,
    pub(crate) retries: u32,
    /// In the order in which they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) reads: Vec<Read>,
    /// The answer to `compare`.
    pub(crate) comparison: Value,
    /// What was left to decide about, and the answer; nothing where it was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) decision: Option<Decided>,
}

/// Which build answered.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Build {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) digest: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Object {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// One read and its answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Read {
    pub(crate) group: String,
    pub(crate) kind: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) namespace: String,
    /// Without one, all objects of the kind in the namespace were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    pub(crate) answer: Answer,
}

/// What a read was answered.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Answer {
    /// The objects; of one object none or one.
    Found(Vec<String>),
    /// The grant does not allow it.
    Denied,
    /// The host did not know, and why.
    Unavailable(String),
}

/// The second question.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Decided {
    /// The differences that were left, as [`super::answers::differences`] writes them.
    pub(crate) about: Vec<Value>,
    pub(crate) answer: Value,
}
