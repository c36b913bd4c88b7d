//! Where inputs lie: one file each, named by its digest, in a folder that only the host reads. The
//! oldest go when there are too many.

use super::Inputs;
use anyhow::Context as _;
use std::collections::VecDeque;
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use trimtab_core::identity::Digest;

/// Name of the folder within the state directory.
const FOLDER: &str = "inputs";
/// Bytes that all files together may have if nothing is said: some 10,000 passes over 4 KB objects.
pub(crate) const KEPT_BYTES: u64 = 128 << 20;
/// Bytes of one file: what is larger is not kept.
const FILE_BYTES: usize = 4 << 20;
const SUFFIX: &str = ".json";

/// The inputs that a running host keeps.
#[derive(Debug)]
pub(crate) struct Kept {
    folder: PathBuf,
    max_bytes: u64,
    files: Mutex<Files>,
}

#[derive(Debug, Default)]
struct Files {
    oldest_first: VecDeque<(PathBuf, u64)>,
    bytes: u64,
}

impl Kept {
    /// What is kept in this state directory, up to so many bytes.
    ///
    /// # Errors
    /// The folder cannot be made or read.
    pub(crate) fn open(state: &Path, max_bytes: u64) -> anyhow::Result<Self> {
        let folder = state.join(FOLDER);
        let wrong = || format!("cannot keep inputs of passes in {}", folder.display());
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .with_context(wrong)?;
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&folder).with_context(wrong)? {
            let entry = entry.with_context(wrong)?;
            let data = entry.metadata().with_context(wrong)?;
            found.push((data.modified().with_context(wrong)?, entry.path(), data.len()));
        }
        found.sort();
        let bytes = found.iter().map(|(_, _, bytes)| bytes).sum();
        let oldest_first = found.into_iter().map(|(_, path, bytes)| (path, bytes)).collect();
        let kept = Self { folder, max_bytes, files: Mutex::new(Files { oldest_first, bytes }) };
        kept.make_room(0)
            .with_context(|| format!("cannot make room in {}", kept.folder.display()))?;
        Ok(kept)
    }

    /// Keeps one; its digest, or `None` where it is too large.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn keep(&self, inputs: &Inputs) -> anyhow::Result<Option<Digest>> {
        let json = serde_json::to_vec(inputs)?;
        let size = json.len() as u64;
        if json.len() > FILE_BYTES || size > self.max_bytes {
            return Ok(None);
        }
        let digest = Digest::of(&json);
        let path = path(&self.folder, &digest);
        let wrong = || format!("cannot write {}", path.display());
        self.make_room(size).with_context(wrong)?;
        // Whole or not there: a file under a digest is never half of it, whenever we are killed.
        let mut file = tempfile::NamedTempFile::new_in(&self.folder).with_context(wrong)?;
        file.write_all(&json).with_context(wrong)?;
        match file.persist_noclobber(&path) {
            Ok(_) => {}
            Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => {
                return Ok(Some(digest));
            }
            Err(error) => return Err(error.error).with_context(wrong),
        }
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.oldest_first.push_back((path, size));
        files.bytes += size;
        Ok(Some(digest))
    }

    fn make_room(&self, bytes: u64) -> std::io::Result<()> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        while files.bytes + bytes > self.max_bytes {
            let Some((path, size)) = files.oldest_first.pop_front() else { break };
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => files.bytes -= size,
            }
        }
        Ok(())
    }
}

fn path(folder: &Path, digest: &Digest) -> PathBuf {
    let hex = digest.to_string().replace("sha256:", "");
    folder.join(format!("{hex}{SUFFIX}"))
}

impl Inputs {
    /// The ones with this digest, of this state directory, as they were written.
    ///
    /// # Errors
    /// They are not kept (any more), are not what was written, or are of another version.
    pub(crate) fn of(state: &Path, digest: &Digest) -> anyhow::Result<Self> {
        let path = path(&state.join(FOLDER), digest);
        let bytes = std::fs::read(&path).with_context(|| {
            format!("the inputs of that pass are not kept (any more) in {}", path.display())
        })?;
        if Digest::of(&bytes) != *digest {
            anyhow::bail!("{} is not what the host wrote: its digest is another", path.display());
        }
        Self::read(&bytes).with_context(|| path.display().to_string())
    }

    /// From the file's bytes.
    ///
    /// # Errors
    /// They are none, or of another version.
    pub(crate) fn read(bytes: &[u8]) -> anyhow::Result<Self> {
        let inputs: Self = serde_json::from_slice(bytes).context("no inputs of a pass")?;
        if inputs.v != super::inputs::VERSION {
            anyhow::bail!(
                "inputs of version {}; this trimtab reads version {}",
                inputs.v,
                super::inputs::VERSION
            );
        }
        Ok(inputs)
    }
}

#[cfg(test)]
mod tests {
    use super::super::inputs::{Build, Object, VERSION};
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn inputs(desired: &str) -> Inputs {
        Inputs {
            v: VERSION,
            plugin: Build { name: "p".into(), version: "1".into(), digest: "d".into() },
            object: Object {
                group: String::new(),
                version: "v1".into(),
                kind: "ConfigMap".into(),
                namespace: "shop".into(),
                name: "a".into(),
            },
            desired: desired.into(),
            live: None,
            facts: String::new(),
            now_ms: 1,
            field_manager: "trimtab".into(),
            retries: 0,
            reads: vec![],
            comparison: "in-sync".into(),
            decision: None,
        }
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many_and_what_is_kept_is_read_again() {
        let state = tempfile::tempdir().unwrap();
        let one = serde_json::to_vec(&inputs("0")).unwrap().len() as u64;
        let kept = Kept::open(state.path(), 2 * one).unwrap();
        let digests: Vec<Digest> =
            ["1", "2", "3"].map(|it| kept.keep(&inputs(it)).unwrap().unwrap()).into();
        let read = |digest: &Digest| Inputs::of(state.path(), digest).map(|it| it.desired);
        assert!(read(&digests[0]).unwrap_err().to_string().contains("not kept (any more)"));
        assert_eq!([read(&digests[1]).unwrap(), read(&digests[2]).unwrap()], ["2", "3"]);
        let files: Vec<_> = std::fs::read_dir(state.path().join(FOLDER)).unwrap().collect();
        assert_eq!(files.len(), 2, "{files:?}");
        for file in files {
            assert_eq!(file.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        // The same once more is the same file; a host after this one goes on with what is there.
        assert_eq!(kept.keep(&inputs("3")).unwrap(), Some(digests[2]));
        let less = Kept::open(state.path(), one).unwrap();
        assert!(read(&digests[1]).is_err() && read(&digests[2]).is_ok(), "{less:?}");
        assert_eq!(less.keep(&inputs(&"x".repeat(4096))).unwrap(), None, "larger than all of it");
    }

    #[test]
    fn what_was_altered_or_is_of_another_version_is_refused() {
        let state = tempfile::tempdir().unwrap();
        let kept = Kept::open(state.path(), 1 << 20).unwrap();
        let digest = kept.keep(&inputs("1")).unwrap().unwrap();
        std::fs::write(path(&kept.folder, &digest), b"{}").unwrap();
        let error = Inputs::of(state.path(), &digest).unwrap_err().to_string();
        assert!(error.contains("its digest is another"), "{error}");
        let mut other = inputs("1");
        other.v = VERSION + 1;
        let error = Inputs::read(&serde_json::to_vec(&other).unwrap()).unwrap_err().to_string();
        assert!(error.contains("of version 2"), "{error}");
    }
}
