//! What `trimtab dev [-- CMD…]` does: a control plane for as long as a command runs, or until
//! somebody ends it.
//!
//! Takes: [`DevOptions`] and a [`Progress`]. Gives: the status to exit with. The command's
//! standard input, output and error are the caller's own; nothing of ours goes to standard output.
//!
//! Signals: SIGINT, SIGTERM and SIGHUP end a start or a wait; while a command runs they are
//! passed on to it, and its end is the end. An orderly end is ours even then: the control plane
//! is shut down and its folder removed before this returns.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal, getpgrp, kill_process};
use rustix::termios::tcgetpgrp;
use tokio::process::Command;
use tokio::signal::unix::{self, SignalKind};
use tokio::time::{MissedTickBehavior, interval};

use crate::plane::{ControlPlane, Options};
use crate::{Error, Progress};

/// How often somebody looks whether all components still run.
const HEALTH_POLL: Duration = Duration::from_secs(1);

/// What `trimtab dev` was asked for.
#[derive(Clone, Debug, Default)]
pub struct DevOptions {
    /// The control plane.
    pub plane: Options,
    /// The command and its arguments; empty to wait for Ctrl-C instead.
    pub command: Vec<OsString>,
}

/// Runs a control plane around a command, or until SIGINT or SIGTERM.
///
/// Gives the status to exit with: the command's own, 128 + signal when a signal ended it or the
/// start; 0 when there was no command and somebody ended the wait.
///
/// # Errors
/// Those of [`ControlPlane::start`] and [`ControlPlane::run_with`]; [`Error::Component`] when a
/// component ends while nobody asked it to and there is no command to wait for.
pub async fn dev(options: DevOptions, progress: Progress<'_>) -> Result<i32, Error> {
    // First of all, so that from here on no signal ends this process before its children.
    let mut signals = Signals::listen()?;
    let mut plane = tokio::select! {
        started = ControlPlane::start(options.plane, progress) => started?,
        signal = signals.next() => return Ok(128 + signal.as_raw()),
    };
    let result = if options.command.is_empty() {
        let kubeconfig = plane.kubeconfig().display().to_string();
        progress(&format!("control plane ready at {}", plane.server()));
        progress(&format!("export KUBECONFIG={}", quoted(&kubeconfig)));
        progress("Ctrl-C ends it");
        tokio::select! {
            error = failure(&mut plane) => Err(error),
            _ = signals.next() => Ok(0),
        }
    } else {
        plane.run(&options.command, &mut signals, progress).await
    };
    plane.shutdown().await;
    result
}

impl ControlPlane {
    /// Runs a command with `KUBECONFIG` set to this control plane, and standard input, output and
    /// error its own. Gives its exit status, or 128 + signal when a signal ended it. SIGINT,
    /// SIGTERM and SIGHUP are passed on to it. The control plane still runs afterwards.
    ///
    /// A component that ends meanwhile is told once through `progress`; the command goes on.
    ///
    /// # Errors
    /// [`Error::Command`] when it cannot be started, [`Error::Io`] when signals cannot be had.
    pub async fn run_with(
        &mut self,
        command: &[OsString],
        progress: Progress<'_>,
    ) -> Result<i32, Error> {
        let mut signals = Signals::listen()?;
        self.run(command, &mut signals, progress).await
    }

    async fn run(
        &mut self,
        command: &[OsString],
        signals: &mut Signals,
        progress: Progress<'_>,
    ) -> Result<i32, Error> {
        let Some((program, arguments)) = command.split_first() else {
            return Ok(0);
        };
        let failed =
            |source| Error::Command { command: program.to_string_lossy().into_owned(), source };
        let mut child = Command::new(program)
            .args(arguments)
            .env("KUBECONFIG", self.kubeconfig())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let mut healthy = true;
        loop {
            tokio::select! {
                status = child.wait() => return Ok(code(status.map_err(failed)?)),
                signal = signals.next() => {
                    // Ctrl-C in a terminal has reached the command already, and for many programs
                    // a second one means "at once".
                    let has_it = signal == Signal::INT && in_foreground();
                    let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
                    if let Some(pid) = pid && !has_it {
                        // It may have ended just now; then the next turn sees it.
                        let _ = kill_process(pid, signal);
                    }
                }
                error = failure(self), if healthy => {
                    healthy = false;
                    progress(&format!("the control plane is broken: {error}"));
                }
            }
        }
    }
}

/// Waits until a component ends by itself.
async fn failure(plane: &mut ControlPlane) -> Error {
    let mut looks = interval(HEALTH_POLL);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        if let Some(error) = plane.failure() {
            return error;
        }
    }
}

/// The signals that end a program. Listening replaces what they do by default for the rest of
/// this process' life.
struct Signals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
    hang_up: unix::Signal,
}

impl Signals {
    fn listen() -> Result<Self, Error> {
        let listen = |kind| {
            unix::signal(kind)
                .map_err(|source| Error::Io { doing: "listen for signals".to_owned(), source })
        };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::INT,
            _ = self.terminate.recv() => Signal::TERM,
            _ = self.hang_up.recv() => Signal::HUP,
        }
    }
}

/// Whether this process is in the group that the terminal, if there is one, sends Ctrl-C to.
fn in_foreground() -> bool {
    let terminal = File::open("/dev/tty");
    terminal.is_ok_and(|terminal| tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp()))
}

/// As a shell counts.
fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

/// For a POSIX shell.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_quoted_only_where_a_shell_needs_it() {
        assert_eq!(quoted("/tmp/trimtab-dev-x1/kubeconfig"), "/tmp/trimtab-dev-x1/kubeconfig");
        assert_eq!(quoted("/tmp/it's here"), r"'/tmp/it'\''s here'");
    }

    #[test]
    fn a_status_is_counted_as_a_shell_does() {
        assert_eq!(code(ExitStatus::from_raw(7 << 8)), 7);
        assert_eq!(code(ExitStatus::from_raw(15)), 143);
    }
}
