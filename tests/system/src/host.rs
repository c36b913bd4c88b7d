//! `trimtab run` as a process: started, watched through what it writes, stopped or killed.
//!
//! It is started through `/bin/sh`, which leaves a watcher behind and becomes the host: when this
//! program ends in any way at all, the watcher's pipe closes and it kills the host (the same way
//! in which `trimtab-dev` holds its own processes).

use crate::{Journal, Line, PATIENCE, Room};
use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const WATCH_THEN_BECOME: &str = r#"
exec 3<&0
( trap '' HUP INT QUIT TERM; read -r line <&3 || kill -KILL $$ ) >/dev/null 2>&1 &
exec "$@" </dev/null 3<&-
"#;

/// How long a host may take to end after SIGTERM: passes under way end first.
const STOP_PATIENCE: Duration = Duration::from_secs(30);

/// A running host. Dropped, it is killed.
pub struct Host {
    child: Child,
    lifeline: Option<ChildStdin>,
    journal: Journal,
    log: PathBuf,
    stdout: PathBuf,
}

/// How a round of `--once` ended.
#[derive(Debug)]
pub struct Once {
    /// Exit status.
    pub status: i32,
    /// What it printed with `-o json`; null if nothing.
    pub summary: Value,
    /// What it wrote to stderr in this run and earlier ones.
    pub log: String,
    /// How long it took.
    pub took: Duration,
}

impl Once {
    /// The objects that are not as declared: object, outcome, reason.
    pub fn unsettled(&self) -> Vec<(String, String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let unsettled = self.summary["unsettled"].as_array().into_iter().flatten();
        unsettled
            .map(|it| (text(&it["object"]), text(&it["outcome"]), text(&it["reason"])))
            .collect()
    }
}

impl Host {
    pub(crate) fn start(room: &Room, more: &[&str]) -> Result<Self> {
        let log = room.log_file();
        let stdout = room.path().join("stdout");
        let trimtab = std::path::absolute(&room.built().trimtab)?;
        let mut child = Command::new("/bin/sh")
            .args(["-c", WATCH_THEN_BECOME, "trimtab"])
            .arg(&trimtab)
            .args(room.run_arguments())
            .args(more)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", room.path().join("home"))
            .envs(room.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(room.path())
            .stdin(Stdio::piped())
            .stdout(File::create(&stdout)?)
            .stderr(OpenOptions::new().create(true).append(true).open(&log)?)
            .spawn()
            .with_context(|| format!("cannot run {}", trimtab.display()))?;
        let lifeline = child.stdin.take();
        Ok(Self { child, lifeline, journal: room.journal(), log, stdout })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The journal.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// What it wrote to stderr, earlier runs in the same room included.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn log(&self) -> Result<String> {
        Ok(String::from_utf8_lossy(&std::fs::read(&self.log)?).into_owned())
    }

    /// How it ended, or `None` while it runs.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// As [`crate::until`], and no longer than the host runs; a failure shows the end of its log.
    ///
    /// # Errors
    /// The deadline is over, or the host has ended.
    pub async fn until<T>(
        &mut self,
        what: impl std::fmt::Display,
        mut look: impl AsyncFnMut(&Journal) -> Result<T>,
    ) -> Result<T> {
        let (start, what) = (Instant::now(), what.to_string());
        loop {
            let not_yet = match look(&self.journal).await {
                Ok(found) => return Ok(found),
                Err(not_yet) => not_yet,
            };
            if let Some(status) = self.ended() {
                bail!("the host ended with {status} before this: {what}\n{}", self.log_tail());
            }
            if start.elapsed() >= PATIENCE {
                let limit = PATIENCE.as_secs();
                bail!(
                    "within {limit} s this did not happen: {what} ({not_yet:#})\n{}",
                    self.log_tail()
                );
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// The first line of the journal after `mark` that is as asked.
    ///
    /// # Errors
    /// As [`Host::until`].
    pub async fn line(
        &mut self,
        what: impl std::fmt::Display,
        mark: usize,
        is: impl Fn(&Line) -> bool,
    ) -> Result<Arc<Line>> {
        self.until(what, async |journal| {
            let lines = journal.lines()?;
            lines
                .into_iter()
                .skip(mark)
                .find(|line| is(line))
                .context("no such line in the journal")
        })
        .await
    }

    /// Waits until stderr has this text.
    ///
    /// # Errors
    /// As [`Host::until`].
    pub async fn says(&mut self, text: &str) -> Result<String> {
        let log = self.log.clone();
        self.until(format!("stderr has a line with {text:?}"), async |_| {
            let all = String::from_utf8_lossy(&std::fs::read(&log)?).into_owned();
            let found = all.lines().find(|line| line.contains(text));
            found.map(str::to_owned).context("no such line")
        })
        .await
    }

    /// SIGTERM, and waits for the end.
    ///
    /// # Errors
    /// It does not end.
    pub async fn stop(mut self) -> Result<ExitStatus> {
        self.signal(Signal::TERM);
        self.wait(STOP_PATIENCE).await
    }

    /// SIGKILL, and waits for the end.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn kill(mut self) -> Result<ExitStatus> {
        self.signal(Signal::KILL);
        Ok(self.child.wait()?)
    }

    /// Sends a signal, if it still runs.
    pub fn signal(&mut self, signal: Signal) {
        // Not reaped yet, so the pid is still its own.
        if self.ended().is_none()
            && let Some(pid) = Pid::from_raw(self.child.id().cast_signed())
        {
            let _ = kill_process(pid, signal);
        }
    }

    pub(crate) async fn end_of_round(mut self, seconds: u64) -> Result<Once> {
        let start = Instant::now();
        let status = self.wait(Duration::from_secs(seconds) + STOP_PATIENCE).await?;
        let took = start.elapsed();
        let printed = std::fs::read(&self.stdout)?;
        let summary = serde_json::from_slice(&printed).unwrap_or(Value::Null);
        let status = status.code().context("ended by a signal")?;
        Ok(Once { status, summary, log: self.log()?, took })
    }

    async fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.ended() {
                return Ok(status);
            }
            if start.elapsed() >= limit {
                bail!("the host did not end within {limit:?}\n{}", self.log_tail());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn log_tail(&self) -> String {
        const LINES: usize = 30;
        let log = self.log().unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let tail = lines[lines.len().saturating_sub(LINES)..].join("\n");
        format!("the end of the host's log:\n{tail}")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        let _ = self.child.wait();
        // The watcher must not kill a pid that is somebody else's by now.
        if let Some(mut lifeline) = self.lifeline.take() {
            let _ = std::io::Write::write_all(&mut lifeline, b"\n");
        }
    }
}
