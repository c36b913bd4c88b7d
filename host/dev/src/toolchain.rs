//! Builds a control-plane program from source with Go, once, into the cache.
//!
//! Takes: which [`Program`], and the places that name the cache and `go`. Gives: the path of the
//! program. What is built is pinned in `pinned.rs`.
//!
//! A build goes to a temporary name and is renamed when it is whole; a file lock makes a second
//! process wait for the first instead of building the same thing again. What `go` itself keeps
//! (its module and build caches) stays where the user's `go env` says.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

use crate::binaries::{Places, Version, is_executable};
use crate::pinned::{Module, NEEDED_GO, NEEDED_GO_VERSION, Program};
use crate::{Error, Progress};

/// How often a build that runs says so.
const REPORT_EVERY: Duration = Duration::from_secs(15);
/// How often a process that waits for another's build looks again.
const LOCK_POLL: Duration = Duration::from_millis(500);
/// How many of the last lines that `go` wrote an error carries.
const KEPT_LINES: usize = 20;

/// The program's path in the cache, after building it if it is not there.
///
/// # Errors
/// [`Error::NoCache`], [`Error::NoGo`], [`Error::GoTooOld`], [`Error::Build`], or [`Error::Io`]
/// when the cache cannot be written.
pub(crate) async fn ensure(
    program: &'static Program,
    places: &Places,
    progress: Progress<'_>,
) -> Result<PathBuf, Error> {
    let cache = places.cache.as_ref().ok_or(Error::NoCache)?;
    // Go runs in a folder of its own.
    let cache = std::path::absolute(cache).map_err(Error::io("find", cache))?;
    let folder = cache.join("control-plane").join(program.module.key());
    let target = folder.join(program.name);
    if is_executable(&target) {
        return Ok(target);
    }
    let go = places
        .on_path("go")
        .ok_or_else(|| Error::NoGo { program: program.name, needed: NEEDED_GO })?;

    fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
    let _one_at_a_time = lock(&folder, program, progress).await?;
    if is_executable(&target) {
        return Ok(target);
    }
    let work = work_folder(&folder)?;
    for (name, text) in [("go.mod", program.module.go_mod), ("go.sum", program.module.go_sum)] {
        let path = work.path().join(name);
        fs::write(&path, text).map_err(Error::io("write", &path))?;
    }
    check_go(&go, program, work.path()).await?;

    let Module { name, version, .. } = program.module;
    let (program_name, takes) = (program.name, program.takes);
    progress(&format!(
        "building {program_name} from {name} {version} with {}, because none was found: {takes} \
         on two cores, once; it is kept as {}",
        go.display(),
        target.display()
    ));
    let started = Instant::now();
    let unfinished = work.path().join(program_name);
    build(&go, program, work.path(), &unfinished, progress).await?;
    fs::rename(&unfinished, &target).map_err(Error::io("create", &target))?;
    progress(&format!("built {program_name} in {}", shown(started.elapsed())));
    Ok(target)
}

/// Waits until no other process builds into `folder`. The lock ends with the returned file, and
/// with the process however that ends.
async fn lock(folder: &Path, program: &Program, progress: Progress<'_>) -> Result<File, Error> {
    let path = folder.join(".lock");
    let file = File::create(&path).map_err(Error::io("create", &path))?;
    let mut waited = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {
                if !waited {
                    progress(&format!(
                        "another process is building {}; waiting for it",
                        program.module.name
                    ));
                }
                waited = true;
                sleep(LOCK_POLL).await;
            }
            Err(TryLockError::Error(source)) => return Err(Error::io("lock", &path)(source)),
        }
    }
}

/// Goes with the returned value. One that is there already was left by a build that was killed:
/// the lock says that nobody is in it.
fn work_folder(folder: &Path) -> Result<TempDir, Error> {
    const NAME: &str = ".build";
    let path = folder.join(NAME);
    if path.exists() {
        fs::remove_dir_all(&path).map_err(Error::io("remove", &path))?;
    }
    let mut builder = tempfile::Builder::new();
    let made = builder.prefix(NAME).rand_bytes(0).tempdir_in(folder);
    made.map_err(Error::io("create", &path))
}

/// Refuses a Go that is too old. Asked inside the module, so that a Go that fetches the toolchain
/// that a module names (`GOTOOLCHAIN=auto`) is judged by what it would build with.
async fn check_go(go: &Path, program: &'static Program, module: &Path) -> Result<(), Error> {
    let (status, mut version, stderr) = go_version(go_command(go, module)).await?;
    if version.is_none() {
        let mut local = go_command(go, module);
        local.env("GOTOOLCHAIN", "local");
        version = go_version(local).await?.1;
    }
    match version {
        Some(version) if version < NEEDED_GO_VERSION => Err(Error::GoTooOld {
            program: program.name,
            go: go.to_owned(),
            found: version.to_string(),
            needed: NEEDED_GO,
        }),
        Some(_) if status.success() => Ok(()),
        _ => Err(failed(program, status, stderr)),
    }
}

/// How `go version` ended, the version that it told, and what it said besides.
async fn go_version(mut go: Command) -> Result<(ExitStatus, Option<Version>, String), Error> {
    let output = go.arg("version").output().await;
    let program = Path::new(go.as_std().get_program());
    let output = output.map_err(Error::io("run", program))?;
    let version = Version::find(&String::from_utf8_lossy(&output.stdout));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok((output.status, version, stderr))
}

async fn build(
    go: &Path,
    program: &'static Program,
    module: &Path,
    to: &Path,
    progress: Progress<'_>,
) -> Result<(), Error> {
    let started = Instant::now();
    let mut child = go_command(go, module)
        .args(["build", "-v", "-trimpath", "-mod=readonly", "-buildvcs=false"])
        .args(["-ldflags", program.module.ldflags, "-o"])
        .arg(to)
        .arg(program.package)
        .spawn()
        .map_err(Error::io("run", go))?;

    let mut downloaded = 0_u32;
    let mut compiled = 0_u32;
    let mut said = Vec::new();
    let mut report = interval_at(started + REPORT_EVERY, REPORT_EVERY);
    report.set_missed_tick_behavior(MissedTickBehavior::Delay);
    if let Some(stderr) = child.stderr.take() {
        let mut lines = BufReader::new(stderr).lines();
        loop {
            tokio::select! {
                line = lines.next_line() => {
                    let Some(line) = line.map_err(Error::io("read the output of", go))? else { break };
                    match line.as_str() {
                        line if line.starts_with("go: downloading ") => downloaded += 1,
                        // With -v, a line without a space is a package that is being compiled.
                        line if !line.contains(' ') => compiled += 1,
                        _ => {
                            if said.len() == KEPT_LINES {
                                said.remove(0);
                            }
                            said.push(line);
                        }
                    }
                }
                _ = report.tick() => progress(&format!(
                    "building {}: {}, {downloaded} modules downloaded, {compiled} of up to {} \
                     packages compiled",
                    program.name,
                    shown(started.elapsed()),
                    program.packages,
                )),
            }
        }
    }
    let status = child.wait().await.map_err(Error::io("wait for", go))?;
    if status.success() { Ok(()) } else { Err(failed(program, status, said.join("\n"))) }
}

/// `go` in that module, for this machine, whatever the caller's environment would otherwise make
/// of it. Proxies, caches and toolchain choice stay the user's.
fn go_command(go: &Path, module: &Path) -> Command {
    let mut command = Command::new(go);
    command
        .current_dir(module)
        .env("CGO_ENABLED", "0")
        .env("GO111MODULE", "on")
        .env("GOWORK", "off")
        .env_remove("GOOS")
        .env_remove("GOARCH")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

fn failed(program: &'static Program, status: ExitStatus, output: String) -> Error {
    Error::Build { program: program.name, status: status.to_string(), output }
}

/// `45 s` or `5 min 02 s`.
fn shown(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds / 60 {
        0 => format!("{seconds} s"),
        minutes => format!("{minutes} min {:02} s", seconds % 60),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::pinned::{ETCD, KUBE_APISERVER};
    use std::os::unix::fs::PermissionsExt;
    use std::sync::{Arc, Mutex};

    /// Remembers what was said to a person.
    #[derive(Clone, Default)]
    pub(crate) struct Lines(Arc<Mutex<Vec<String>>>);

    impl Lines {
        pub(crate) fn progress(&self) -> impl Fn(&str) + Send + Sync + use<> {
            let lines = Arc::clone(&self.0);
            move |line| lines.lock().unwrap().push(line.to_owned())
        }

        pub(crate) fn all(&self) -> Vec<String> {
            self.0.lock().unwrap().clone()
        }
    }

    /// A program made of shell, at that path.
    pub(crate) fn script(path: &Path, body: &str) -> PathBuf {
        // Written under another name by `sh` itself: a program that this process still holds open
        // for writing while another thread forks cannot be run (ETXTBSY).
        let status = std::process::Command::new("/bin/sh")
            .args(["-c", "cat > \"$1\" && chmod 755 \"$1\"", "sh"])
            .arg(path)
            .stdin({
                let text = tempfile::NamedTempFile::new().unwrap();
                fs::write(text.path(), format!("#!/bin/sh\n{body}\n")).unwrap();
                File::open(text.path()).unwrap()
            })
            .status();
        assert!(status.unwrap().success());
        path.to_owned()
    }

    /// A `go` that tells that version and "builds" a program by counting its runs in a file.
    fn fake_go(folder: &Path, version: &str) -> Places {
        let body = format!(
            r#"PATH=/usr/bin:/bin
            if [ "$1" = version ]; then echo "go version go{version} linux/amd64"; exit; fi
            test -s go.mod && test -s go.sum || exit 9
            echo "go: downloading example.org/x v1" >&2
            echo "example.org/x" >&2
            while [ "$1" != -o ]; do shift; done
            sleep 0.3; echo built >> {0}/runs; cp {0}/go "$2""#,
            folder.display()
        );
        script(&folder.join("go"), &body);
        Places { assets: None, path: folder.into(), cache: Some(folder.join("cache")) }
    }

    fn files_below(folder: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.extend(files_below(&path));
            } else {
                found.push(path);
            }
        }
        found.sort();
        found
    }

    #[tokio::test]
    async fn without_a_program_and_without_go_one_sentence_says_what_to_install() {
        let folder = tempfile::tempdir().unwrap();
        let places = Places {
            assets: None,
            path: folder.path().into(),
            cache: Some(folder.path().join("cache")),
        };
        let lines = Lines::default();
        let error = ensure(&KUBE_APISERVER, &places, &lines.progress()).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "kube-apiserver not found in KUBEBUILDER_ASSETS, PATH or the cache, and there is no \
             Go to build from: install Go 1.26 or later, or set KUBEBUILDER_ASSETS to a folder \
             with etcd and kube-apiserver"
        );
        assert!(lines.all().is_empty());
        assert!(files_below(folder.path()).is_empty());
    }

    #[tokio::test]
    async fn a_go_that_is_too_old_is_refused_with_both_versions() {
        let folder = tempfile::tempdir().unwrap();
        let places = fake_go(folder.path(), "1.24.3");
        let error = ensure(&ETCD, &places, &|_| ()).await.unwrap_err().to_string();
        assert!(error.contains("needs Go 1.26 or later"), "{error}");
        assert!(error.contains("is 1.24.3"), "{error}");
    }

    #[tokio::test]
    async fn two_at_once_build_once_and_leave_the_program_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let places = fake_go(folder.path(), "1.26.8");
        let lines = Lines::default();
        let progress = lines.progress();
        let (first, second) =
            tokio::join!(ensure(&ETCD, &places, &progress), ensure(&ETCD, &places, &progress),);
        let target = first.unwrap();
        assert_eq!(target, second.unwrap());
        let mode = fs::metadata(&target).unwrap().permissions().mode();
        assert_eq!(mode & 0o111, 0o111);
        let runs = folder.path().join("runs");
        assert_eq!(fs::read_to_string(&runs).unwrap(), "built\n");
        let lock = target.with_file_name(".lock");
        let expected = [lock, target, folder.path().join("go"), runs];
        assert_eq!(files_below(folder.path()), expected);

        // Which of the two comes first is open.
        let mut said = lines.all();
        said.sort();
        assert_eq!(said.len(), 3, "{said:?}");
        assert_eq!(said[0], "another process is building etcd; waiting for it");
        assert!(said[1].starts_with("building etcd from etcd v3.7.3 with "));
        assert_eq!(said[2], "built etcd in 0 s");
    }

    #[tokio::test]
    async fn a_failed_build_carries_what_go_said_and_leaves_no_program() {
        let folder = tempfile::tempdir().unwrap();
        let places = fake_go(folder.path(), "1.26.8");
        script(
            &folder.path().join("go"),
            "[ $1 = version ] && echo go1.26.8 && exit\necho 'x.go:1: no such thing' >&2; exit 1",
        );
        let left_by_a_killed_build = folder.path().join("cache/control-plane");
        let left_by_a_killed_build = left_by_a_killed_build.join(ETCD.module.key()).join(".build");
        fs::create_dir_all(left_by_a_killed_build.join("etcd")).unwrap();
        let error = ensure(&ETCD, &places, &|_| ()).await.unwrap_err().to_string();
        assert!(error.contains("exit status: 1"), "{error}");
        assert!(error.contains("x.go:1: no such thing"), "{error}");
        let left = files_below(&folder.path().join("cache"));
        assert!(left.iter().all(|path| path.ends_with(".lock")), "{left:?}");
    }
}
