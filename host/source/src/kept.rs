//! A source that remembers: what was in force is kept in the state directory, so that a restart
//! while the source cannot be read goes on with it.
//!
//! For sources that have no memory of their own. One file, replaced whole, readable by the host
//! alone, since Secrets stand in it as in the source. It is written only when the revision is
//! another, and one that is damaged, or of another place, is none.

use crate::{Fingerprint, Source, SourceError};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use trimtab_core::identity::Gvk;
use trimtab_core::object::{Manifest, Origin, Provenance, Revision};

/// Version of the file's form; of another one nothing is known.
const VERSION: u32 = 1;
/// Largest file that is read back: no source that can be read is larger.
const BYTES_AT_MOST: u64 = 1 << 30;

/// A source together with a copy of what was in force.
#[derive(Debug)]
pub struct Kept<S> {
    inner: S,
    /// What the copy is of: one of another place is not served.
    place: String,
    file: PathBuf,
    /// The revision in the file, as far as it is known.
    written: Mutex<Option<Box<str>>>,
}

#[derive(Serialize, Deserialize)]
struct Head {
    v: u32,
    place: String,
    revision: String,
    /// Digest of place, revision and the lines that follow.
    sha256: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    file: String,
    line: u32,
    api_version: String,
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    name: String,
    json: String,
}

impl<S: Source> Kept<S> {
    /// This source, with its copy in `folder`, which is the source's own and is made when needed.
    pub fn new(inner: S, place: &str, folder: &Path) -> Self {
        let file = folder.join("last-good.jsonl");
        Self { inner, place: place.to_owned(), file, written: Mutex::default() }
    }

    fn read_copy(&self) -> Option<Revision> {
        if fs::metadata(&self.file).ok()?.len() > BYTES_AT_MOST {
            return None;
        }
        let text = fs::read_to_string(&self.file).ok()?;
        let (head, lines) = text.split_once('\n')?;
        let head: Head = serde_json::from_str(head).ok()?;
        if head.v != VERSION
            || head.place != self.place
            || head.sha256 != digest(&head.place, &head.revision, lines)
        {
            return None;
        }
        let manifest = |line: &str| {
            let line: Line = serde_json::from_str(line).ok()?;
            Some(Manifest {
                gvk: Gvk::from_api_version(&line.api_version, &line.kind),
                namespace: line.namespace.map(Into::into),
                name: line.name.into(),
                json: line.json.into_bytes().into(),
                origin: Origin { file: line.file.into(), line: line.line },
            })
        };
        Some(Revision {
            source: self.inner.name().into(),
            id: head.revision.into(),
            manifests: lines.lines().map(manifest).collect::<Option<_>>()?,
            provenance: Provenance::default(),
        })
    }

    fn write_copy(&self, revision: &Revision) -> io::Result<()> {
        let mut lines = String::new();
        for manifest in &revision.manifests {
            let json = std::str::from_utf8(&manifest.json).map_err(io::Error::other)?;
            let line = Line {
                file: manifest.origin.file.to_string(),
                line: manifest.origin.line,
                api_version: manifest.gvk.api_version(),
                kind: manifest.gvk.kind.to_string(),
                namespace: manifest.namespace.as_deref().map(str::to_owned),
                name: manifest.name.to_string(),
                json: json.to_owned(),
            };
            lines.push_str(&serde_json::to_string(&line)?);
            lines.push('\n');
        }
        let head = Head {
            v: VERSION,
            place: self.place.clone(),
            revision: revision.id.to_string(),
            sha256: digest(&self.place, &revision.id, &lines),
        };
        let folder = self.file.parent().unwrap_or(Path::new(""));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let beside = self.file.with_extension("new");
        let _ = fs::remove_file(&beside);
        let mut file =
            fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        writeln!(file, "{}", serde_json::to_string(&head)?)?;
        file.write_all(lines.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, &self.file)?;
        fs::File::open(folder)?.sync_all()
    }
}

impl<S: Source> Source for Kept<S> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn fingerprint(&self) -> Result<Fingerprint, SourceError> {
        self.inner.fingerprint()
    }

    fn read(&self) -> Result<Revision, SourceError> {
        self.inner.read()
    }

    fn watched_paths(&self) -> Vec<PathBuf> {
        self.inner.watched_paths()
    }

    fn last_good(&self) -> Option<Revision> {
        let revision = self.read_copy()?;
        *self.known() = Some((*revision.id).into());
        Some(revision)
    }

    fn accept(&self, revision: &Revision) -> Result<(), SourceError> {
        let mut written = self.known();
        if written.as_deref() == Some(&*revision.id) {
            return Ok(());
        }
        let state = |error: io::Error| SourceError::State {
            place: self.inner.name().into(),
            folder: self.file.parent().unwrap_or(Path::new("")).to_string_lossy().into(),
            reason: error.to_string().into(),
        };
        self.write_copy(revision).map_err(state)?;
        *written = Some((*revision.id).into());
        Ok(())
    }
}

impl<S> Kept<S> {
    fn known(&self) -> std::sync::MutexGuard<'_, Option<Box<str>>> {
        self.written.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn digest(place: &str, revision: &str, lines: &str) -> String {
    let digest = Sha256::digest(format!("{place}\n{revision}\n{lines}"));
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Directory;
    use std::os::unix::fs::MetadataExt as _;

    const TEXT: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n";

    struct Place {
        folder: tempfile::TempDir,
    }

    impl Place {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir(folder.path().join("source")).unwrap();
            fs::write(folder.path().join("source/a.yaml"), TEXT).unwrap();
            Self { folder }
        }

        fn kept(&self, place: &str) -> Kept<Directory> {
            let directory = Directory::new("shop", self.folder.path().join("source"), "default");
            Kept::new(directory, place, &self.folder.path().join("state/shop"))
        }

        fn file(&self) -> PathBuf {
            self.folder.path().join("state/shop/last-good.jsonl")
        }
    }

    #[test]
    fn what_was_accepted_comes_back_whole_after_a_restart_and_is_readable_by_us_alone() {
        let place = Place::new();
        let kept = place.kept("source");
        assert!(kept.last_good().is_none());
        let revision = kept.read().unwrap();
        kept.accept(&revision).unwrap();
        assert_eq!(fs::metadata(place.file()).unwrap().mode() & 0o777, 0o600);
        fs::remove_dir_all(place.folder.path().join("source")).unwrap();
        let back = place.kept("source").last_good().unwrap();
        assert_eq!(back.id, revision.id);
        assert_eq!(format!("{:?}", back.manifests), format!("{:?}", revision.manifests));
        assert!(place.kept("elsewhere").last_good().is_none(), "it is of another place");
    }

    #[test]
    fn the_same_revision_is_not_written_again() {
        let place = Place::new();
        let revision = place.kept("source").read().unwrap();
        place.kept("source").accept(&revision).unwrap();
        let inode = || fs::metadata(place.file()).unwrap().ino();
        let before = inode();
        let kept = place.kept("source");
        kept.last_good().unwrap();
        kept.accept(&revision).unwrap();
        assert_eq!(inode(), before);
    }

    #[test]
    fn a_copy_that_is_damaged_anywhere_is_none() {
        let place = Place::new();
        let kept = place.kept("source");
        kept.accept(&kept.read().unwrap()).unwrap();
        let whole = fs::read(place.file()).unwrap();
        for at in (0..whole.len()).step_by(7) {
            let mut torn = whole.clone();
            torn[at] ^= 1;
            fs::write(place.file(), &torn).unwrap();
            assert!(place.kept("source").last_good().is_none(), "byte {at}");
            fs::write(place.file(), &whole[..at]).unwrap();
            assert!(place.kept("source").last_good().is_none(), "cut at {at}");
        }
    }
}
