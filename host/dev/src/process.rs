//! One component as a child process that cannot outlive its owner.
//!
//! Takes: a program, its flags, a working folder and a log file. Gives: a [`Process`] to ask, to
//! stop and to kill; dropping it kills.
//!
//! # How a child dies with its owner
//! Linux can signal a child when its parent dies (`PR_SET_PDEATHSIG`), but setting that needs
//! unsafe code here, is told by the parent's *thread* and is unknown to other systems. So each
//! component is started through `/bin/sh`, which leaves a watcher behind and then *becomes* the
//! component (`exec`: the pid that Rust knows is the component's own). The watcher blocks on the
//! reading end of a pipe whose writing end only the owner holds:
//! - the owner ends in any way at all: the kernel closes the pipe, the watcher reads the end of
//!   file and kills the component;
//! - the component ended and was reaped: the owner writes one line, and the watcher ends without
//!   a kill, because the pid may by then be somebody else's.
//!
//! Components run in process groups of their own, so that Ctrl-C in a terminal reaches the owner
//! alone, which then ends them in order; and with an empty environment, because `ETCD_*`,
//! `NOTIFY_SOCKET`, proxies and the like would change what they do.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep};

use crate::Error;

/// `$$` is the pid of the shell that becomes the component, in the watcher too.
const WATCH_THEN_BECOME: &str = r#"
exec 3<&0
( trap '' HUP INT QUIT TERM; read -r line <&3 || kill -KILL $$ ) &
exec "$@" </dev/null 3<&-
"#;

/// How often a component that was told to stop is looked at.
const STOP_POLL: Duration = Duration::from_millis(10);
/// How much of the end of a log an error carries: enough for the last words of a Go program.
const TAIL_BYTES: u64 = 8 * 1024;
/// As [`TAIL_BYTES`], in lines.
const TAIL_LINES: usize = 20;

/// A running (or ended) component.
#[derive(Debug)]
pub(crate) struct Process {
    name: &'static str,
    child: Child,
    /// The writing end of the watcher's pipe.
    lifeline: ChildStdin,
    log: PathBuf,
    /// Where in the log this run begins: an earlier run may have written before.
    log_start: u64,
    ended: Option<ExitStatus>,
}

impl Process {
    /// Starts `program` in `folder`; what it writes is appended to `log`.
    pub(crate) fn spawn(
        name: &'static str,
        program: &Path,
        flags: &[String],
        folder: &Path,
        log: &Path,
    ) -> Result<Self, Error> {
        let mut options = OpenOptions::new();
        let open = || -> std::io::Result<(File, File, u64)> {
            let out = options.create(true).append(true).open(log)?;
            let err = out.try_clone()?;
            let start = out.metadata()?.len();
            Ok((out, err, start))
        };
        let (out, err, log_start) = { open }().map_err(Error::io("open", log))?;
        // The program is found from the component's own folder.
        let program = std::path::absolute(program).map_err(Error::io("find", program))?;
        let mut child = Command::new("/bin/sh")
            .args(["-c", WATCH_THEN_BECOME, name])
            .arg(&program)
            .args(flags)
            .current_dir(folder)
            .env_clear()
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(out)
            .stderr(err)
            .spawn()
            .map_err(Error::io("run", &program))?;
        let Some(lifeline) = child.stdin.take() else {
            unreachable!("stdin was asked to be a pipe");
        };
        tracing::debug!(component = name, pid = child.id(), "started");
        Ok(Self { name, child, lifeline, log: log.to_owned(), log_start, ended: None })
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// The component's own pid; meaningless once it has ended.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, or `None` while it runs.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.reaped(status);
        }
        self.ended
    }

    /// SIGTERM, and SIGKILL when it still runs after `grace`.
    pub(crate) async fn stop(&mut self, grace: Duration) {
        if self.ended().is_some() {
            return;
        }
        // Not reaped, so the pid is still its own. A refusal leaves it to the kill below.
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let deadline = Instant::now() + grace;
        while self.ended().is_none() {
            if Instant::now() >= deadline {
                tracing::warn!(component = self.name, ?grace, "did not stop in time: killing it");
                self.kill();
                return;
            }
            sleep(STOP_POLL).await;
        }
    }

    /// SIGKILL, then waits until the kernel has taken it away: a few milliseconds.
    pub(crate) fn kill(&mut self) {
        if self.ended().is_some() {
            return;
        }
        let _ = self.child.kill();
        if let Ok(status) = self.child.wait() {
            self.reaped(status);
        }
    }

    fn reaped(&mut self, status: ExitStatus) {
        self.ended = Some(status);
        // The watcher may be gone as well; then there is nobody to tell.
        let _ = self.lifeline.write_all(b"\n");
        tracing::debug!(component = self.name, %status, "ended");
    }

    /// What this run has written last.
    pub(crate) fn log_tail(&self) -> String {
        let read = || -> std::io::Result<String> {
            let mut file = File::open(&self.log)?;
            let end = file.metadata()?.len();
            let from = end.saturating_sub(TAIL_BYTES).max(self.log_start);
            file.seek(SeekFrom::Start(from))?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        match { read }() {
            Ok(text) => {
                let lines: Vec<&str> = text.lines().collect();
                lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
            }
            Err(error) => format!("(the log cannot be read: {error})"),
        }
    }

    /// This component's failure, with the end of its log.
    pub(crate) fn failure(&self, reason: String) -> Error {
        Error::Component {
            component: self.name,
            reason,
            log_tail: self.log_tail(),
            log: self.log.clone(),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::ManuallyDrop;
    use std::os::fd::OwnedFd;

    fn sh(script: &str, folder: &Path) -> Process {
        let flags = ["-c".to_owned(), script.to_owned()];
        let log = folder.join("log");
        Process::spawn("sh", Path::new("/bin/sh"), &flags, folder, &log).unwrap()
    }

    /// Running, as `ps` sees it: a zombie that nobody reaped does not count.
    fn runs(pid: u32) -> bool {
        let pid = pid.to_string();
        let output = Command::new("ps").args(["-o", "stat=", "-p", &pid]).output().unwrap();
        let state = String::from_utf8(output.stdout).unwrap();
        !state.trim().is_empty() && !state.starts_with('Z')
    }

    async fn eventually(mut condition: impl FnMut() -> bool) -> bool {
        for _ in 0..200 {
            if condition() {
                return true;
            }
            sleep(Duration::from_millis(20)).await;
        }
        false
    }

    #[tokio::test]
    async fn the_pid_is_the_programs_own_and_its_end_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let mut process = sh("echo $$; exit 7", folder.path());
        assert!(eventually(|| process.ended().is_some()).await);
        assert_eq!(process.ended().unwrap().code(), Some(7));
        assert_eq!(process.log_tail(), process.pid().to_string());
    }

    #[tokio::test]
    async fn stop_asks_first_and_kills_after_the_grace_period() {
        let folder = tempfile::tempdir().unwrap();
        let mut polite = sh(
            "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done",
            folder.path(),
        );
        assert!(eventually(|| polite.log_tail().contains("up")).await);
        polite.stop(Duration::from_secs(10)).await;
        assert_eq!(polite.ended().unwrap().code(), Some(0));
        assert!(polite.log_tail().contains("bye"));

        let mut deaf = sh("trap '' TERM; echo up; while :; do sleep 0.05; done", folder.path());
        assert!(!deaf.log_tail().contains("bye"), "a tail is of one run");
        assert!(eventually(|| deaf.log_tail().contains("up")).await);
        deaf.stop(Duration::from_millis(200)).await;
        assert_eq!(deaf.ended().unwrap().code(), None);
    }

    #[tokio::test]
    async fn dropping_it_kills_it() {
        let folder = tempfile::tempdir().unwrap();
        let process = sh("exec sleep 600", folder.path());
        let pid = process.pid();
        assert!(runs(pid));
        drop(process);
        assert!(!runs(pid));
    }

    #[tokio::test]
    async fn when_its_owner_is_gone_the_watcher_kills_it() {
        let folder = tempfile::tempdir().unwrap();
        // What the kernel does when the owner dies: the pipe closes, and nobody runs `drop`.
        let mut orphan = ManuallyDrop::new(sh("exec sleep 600", folder.path()));
        let pid = orphan.pid();
        assert!(runs(pid));
        let other: OwnedFd = File::open("/dev/null").unwrap().into();
        drop(std::mem::replace(&mut orphan.lifeline, other.into()));
        assert!(eventually(|| !runs(pid)).await);
        orphan.child.wait().unwrap();
    }
}
