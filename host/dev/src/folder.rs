//! The one folder that holds everything of one control plane, and who may be in it.
//!
//! Takes: a path, or nothing for a temporary folder. Gives: a [`Folder`] that nobody else starts
//! a control plane in, and that goes with the value when it is temporary.
//!
//! It holds keys, so it is made for its owner alone, and every key in it is too.

use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::Error;
use crate::flags;
use crate::process::Process;

#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) audit_log: PathBuf,
    temporary: Option<TempDir>,
    /// Held until the value goes, or the process however it ends.
    lock: File,
}

impl Folder {
    /// # Errors
    /// [`Error::Busy`] when another control plane lives there; [`Error::Io`].
    pub(crate) fn open(given: Option<&Path>) -> Result<Self, Error> {
        let mut temporary = None;
        let path = match given {
            Some(path) => std::path::absolute(path).map_err(Error::io("find", path))?,
            None => {
                let made = tempfile::Builder::new()
                    .prefix("trimtab-dev-")
                    .permissions(Permissions::from_mode(0o700))
                    .tempdir();
                let parent = std::env::temp_dir();
                let made = made.map_err(Error::io("create a folder in", &parent))?;
                temporary.insert(made).path().to_owned()
            }
        };
        for folder in [path.clone(), path.join(flags::PKI), path.join(LOGS)] {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&folder)
                .map_err(Error::io("create", &folder))?;
        }
        let lock_path = path.join("lock");
        let lock = File::create(&lock_path).map_err(Error::io("create", &lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::Busy { dir: path }),
            Err(TryLockError::Error(source)) => return Err(Error::io("lock", &lock_path)(source)),
        }
        // Of an etcd that was killed; the next one shows with it that it listens.
        let socket = path.join(flags::ETCD_SOCKET);
        match fs::remove_file(&socket) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io("remove", &socket)(error));
            }
            _ => {}
        }
        Ok(Self {
            kubeconfig: path.join(flags::KUBECONFIG),
            audit_log: path.join(flags::AUDIT_LOG),
            path,
            temporary,
            lock,
        })
    }

    /// Starts a component here, with a log of its own in `logs/`.
    pub(crate) fn spawn(
        &self,
        name: &'static str,
        program: &Path,
        flags: &[String],
    ) -> Result<Process, Error> {
        let log = self.path.join(LOGS).join(format!("{name}.log"));
        Process::spawn(name, program, flags, &self.path, &log)
    }

    /// Leaves even a temporary folder where it is, for who reads the logs.
    pub(crate) fn keep(&mut self) {
        if let Some(temporary) = &mut self.temporary {
            temporary.disable_cleanup(true);
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Closing alone is not enough: a child that another thread is starting at this moment
        // holds a copy of the file until it becomes its program. What fails here ends with us.
        let _ = self.lock.unlock();
    }
}

const LOGS: &str = "logs";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_serves_one_at_a_time_and_only_its_owner() {
        let parent = tempfile::tempdir().unwrap();
        let given = parent.path().join("a/b");
        let first = Folder::open(Some(&given)).unwrap();
        for folder in [&first, &Folder::open(None).unwrap()] {
            let mode = fs::metadata(&folder.path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
        }
        assert!(matches!(Folder::open(Some(&given)), Err(Error::Busy { .. })));
        drop(first);
        Folder::open(Some(&given)).unwrap();
    }

    #[test]
    fn a_temporary_folder_goes_with_the_value_unless_it_is_kept() {
        let gone = Folder::open(None).unwrap().path.clone();
        assert!(!gone.exists());
        let mut folder = Folder::open(None).unwrap();
        folder.keep();
        let kept = folder.path.clone();
        drop(folder);
        assert!(kept.exists());
        fs::remove_dir_all(kept).unwrap();
    }
}
