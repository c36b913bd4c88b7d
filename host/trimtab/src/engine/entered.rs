//! Who vouched for each object when policies let it in, kept over a restart: what two people signed
//! stays signed by both when somebody else signs the next commit.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trimtab_core::identity::ObjectKey;
use trimtab_core::object::Desired;
use trimtab_core::policy::Vouched;

/// Name of the file within the state directory.
const FILE: &str = "entered.json";

/// Objects that were let in and that somebody vouches for, by `ObjectKey`'s text.
#[derive(Debug, Default)]
pub(super) struct Entered {
    /// `None`: nothing is kept.
    file: Option<PathBuf>,
    objects: BTreeMap<String, One>,
    is_kept: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct One {
    source: String,
    /// SHA-256 of what was let in.
    digest: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    author: Option<String>,
    signers: Vec<String>,
}

impl Entered {
    /// As the host before this one left it. What cannot be read is told, and nobody vouches then but
    /// who does by the source: policies may deny what they let in before, and nothing the other way.
    pub(super) fn read(state: &Path) -> Self {
        let file = state.join(FILE);
        let objects = match std::fs::read(&file) {
            Ok(text) => serde_json::from_slice(&text).unwrap_or_else(|error| {
                tracing::error!("{} is passed over: {error}", file.display());
                BTreeMap::new()
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => {
                tracing::error!("{} is passed over: {error}", file.display());
                BTreeMap::new()
            }
        };
        Self { file: Some(file), objects, is_kept: true }
    }

    /// Who vouched for exactly this.
    pub(super) fn of(&self, desired: &Desired) -> Option<Arc<Vouched>> {
        let one = self.objects.get(&desired.key.to_string())?;
        let same = one.source == *desired.source && one.digest == desired.digest.to_string();
        same.then(|| {
            Arc::new(Vouched {
                author: one.author.as_deref().map(Into::into),
                signers: one.signers.iter().map(|name| name.as_str().into()).collect(),
            })
        })
    }

    /// It was let in.
    pub(super) fn note(&mut self, desired: &Desired, vouched: &Vouched) {
        let key = desired.key.to_string();
        if vouched.signers.is_empty() {
            self.is_kept &= self.objects.remove(&key).is_none();
            return;
        }
        let one = One {
            source: desired.source.to_string(),
            digest: desired.digest.to_string(),
            author: vouched.author.as_deref().map(Into::into),
            signers: vouched.signers.iter().map(ToString::to_string).collect(),
        };
        if self.objects.get(&key) != Some(&one) {
            self.objects.insert(key, one);
            self.is_kept = false;
        }
    }

    /// Forgets what is declared no more.
    pub(super) fn retain(&mut self, declared: &HashSet<ObjectKey>) {
        if self.objects.is_empty() {
            return;
        }
        let declared: HashSet<String> = declared.iter().map(ToString::to_string).collect();
        let before = self.objects.len();
        self.objects.retain(|key, _| declared.contains(key));
        self.is_kept &= before == self.objects.len();
    }

    /// Replaces the file at once, where something is other than it has.
    pub(super) fn keep(&mut self) -> anyhow::Result<()> {
        let (Some(path), false) = (&self.file, self.is_kept) else { return Ok(()) };
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        serde_json::to_writer(&mut file, &self.objects)?;
        file.persist(path)?;
        self.is_kept = true;
        Ok(())
    }
}
