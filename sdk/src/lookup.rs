//! Reads of related objects: those that the manifest declares (`reads`) and the grant allows,
//! answered from what the host already holds. Natively [`crate::testing::Case`] answers.

use crate::{Unknown, Value, json};
use std::fmt;

/// Why a read gave no answer. Never the same as an absent object. Becomes an [`Unknown`] with `?`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookupError {
    /// The plugin's manifest does not declare this read.
    Undeclared,
    /// The grant does not allow this read.
    Denied,
    /// The host cannot say at present, and why.
    Unavailable(String),
    /// The pass has used up its reads.
    Exhausted,
}

impl fmt::Display for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undeclared => f.write_str("the plugin's manifest does not declare this read"),
            Self::Denied => f.write_str("the grant does not allow this read"),
            Self::Unavailable(why) => f.write_str(why),
            Self::Exhausted => f.write_str("the pass has used up its reads"),
        }
    }
}

impl std::error::Error for LookupError {}

impl From<LookupError> for Unknown {
    fn from(error: LookupError) -> Self {
        Unknown::new(format!("a related object could not be read: {error}"))
    }
}

/// A related object as the host last saw it.
#[derive(Clone, Debug)]
pub struct Related(Vec<u8>);

impl Related {
    /// Reads it.
    ///
    /// # Errors
    /// [`Unknown`], where it is not JSON.
    pub fn value(&self) -> Result<Value<'_>, Unknown> {
        json::parse(&self.0)
            .map_err(|error| Unknown::new(format!("a related object cannot be read: {error}")))
    }
}

impl From<Vec<u8>> for Related {
    fn from(json: Vec<u8>) -> Self {
        Self(json)
    }
}

/// The object as the host last saw it; `None`: it is known to be absent. The group is empty for
/// the core group, the namespace for a cluster-scoped object.
///
/// # Errors
/// [`LookupError`]: no answer, which is never the same as absence.
pub fn get(
    group: &str,
    kind: &str,
    namespace: &str,
    name: &str,
) -> Result<Option<Related>, LookupError> {
    #[cfg(target_arch = "wasm32")]
    return crate::guest::lookup(group, kind, namespace, name);
    #[cfg(not(target_arch = "wasm32"))]
    return crate::testing::lookup(group, kind, namespace, name);
}

/// Every object of this kind in this namespace (empty for a cluster-scoped kind), as the host last
/// saw them, in the order of their names. None is an answer: there is none.
///
/// The host answers for kinds that the manifest names in `reads` one by one, in the namespaces of
/// the objects that the plugin judges. What was read is remembered with the answer: when one of
/// these objects changes, comes or goes, the object is judged anew.
///
/// # Errors
/// [`LookupError`]: no answer, which is never the same as an empty one.
pub fn find(group: &str, kind: &str, namespace: &str) -> Result<Vec<Related>, LookupError> {
    #[cfg(target_arch = "wasm32")]
    return crate::guest::find(group, kind, namespace);
    #[cfg(not(target_arch = "wasm32"))]
    return crate::testing::find(group, kind, namespace);
}
