//! From a component's bytes to machine code: in this process, or in a worker of its own.
//!
//! A compiler is a large program that a stranger's file drives. In production it runs as a process
//! that holds nothing: an empty environment, no files that it may open, no network, few system calls,
//! limits on memory, processor and wall time (`confine.rs`), and an end with the one file that it was
//! made for. What it gives back is trusted as the compiler's own output is, and by nobody else: it
//! comes through a pipe that only the two hold.
//!
//! [`Compiler::Worker`] names the program that calls [`compile_worker`]; `trimtab` is its own.

use crate::plugin::compile_error;
use crate::text::printable;
use crate::{Error, MAX_COMPONENT_BYTES, confine, limits, sandbox};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use wasmtime::Engine;

/// Wall time of a worker: what a loaded machine makes of its processor time.
const WORKER_WALL_TIME: Duration = Duration::from_secs(60);

/// How the runtime words why it aborts, on standard error. Tests hold it to the first.
const ALLOCATION_FAILED: &str = "memory allocation of";
const STACK_OVERFLOWED: &str = "has overflowed its stack";

/// How often an end is looked for.
const POLL: Duration = Duration::from_millis(2);

/// Bytes of compiled code: it has some ten times a component's size.
pub(crate) const MAX_CODE_BYTES: u64 = 128 << 20;

/// Where components are compiled.
#[derive(Clone, Debug, Default)]
pub enum Compiler {
    /// In this process: for an author's own plugin, and for tests.
    #[default]
    InProcess,
    /// By this program with these arguments, which calls [`compile_worker`].
    Worker {
        /// The program.
        program: PathBuf,
        /// Its arguments.
        arguments: Vec<OsString>,
    },
}

impl Compiler {
    /// The code that `engine` loads, in wasmtime's own form.
    pub(crate) fn compile(&self, engine: &Engine, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        match self {
            Self::InProcess => engine.precompile_component(bytes).map_err(compile_error),
            Self::Worker { program, arguments } => {
                let child = Command::new(program)
                    .args(arguments)
                    .env_clear()
                    .current_dir("/")
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped())
                    .spawn()
                    .map_err(|error| {
                        Error::Sandbox(format!("{} does not start: {error}", program.display()))
                    })?;
                converse(child, bytes)
            }
        }
    }
}

/// Gives the file, and takes what comes, each on a thread: neither side waits for the other.
fn converse(mut child: Child, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(mut stdin), Some(stdout), Some(stderr)) = streams else {
        return Err(Error::Sandbox("the compile worker has no streams".into()));
    };
    let (status, code, said) = std::thread::scope(|scope| {
        // A worker that ends early says why on its own; that it reads no more is no news.
        scope.spawn(move || drop(stdin.write_all(bytes)));
        let code = scope.spawn(move || all(stdout, MAX_CODE_BYTES));
        let said = scope.spawn(move || all(stderr, limits::MAX_FAULT_BYTES as u64));
        let status = wait(&mut child);
        (status, code.join(), said.join())
    });
    let unread = || Error::Sandbox("the compile worker's answer cannot be read".into());
    let status = status.map_err(|error| Error::Sandbox(format!("the compile worker: {error}")))?;
    match status {
        None => Err(Error::Compile(format!("compiling it takes more than {WORKER_WALL_TIME:?}"))),
        Some(status) if status.success() => code.map_err(|_| unread())?.map_err(|_| unread()),
        Some(status) => {
            let said = said.ok().and_then(Result::ok).unwrap_or_default();
            let said = printable(&String::from_utf8_lossy(&said), limits::MAX_FAULT_BYTES);
            Err(Error::Compile(ended(status, said)))
        }
    }
}

/// The whole stream; more than `most` bytes are an error.
fn all(stream: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other("more than is expected"));
    }
    Ok(bytes)
}

/// Waits for the end; kills what does not end in time, and says `None`.
fn wait(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > WORKER_WALL_TIME {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(POLL);
    }
}

/// Why a worker ended without code, with the limit by its name.
fn ended(status: ExitStatus, said: String) -> String {
    use rustix::process::Signal;
    use std::os::unix::process::ExitStatusExt as _;
    match status.signal().and_then(Signal::from_named_raw) {
        Some(Signal::XCPU) => {
            format!("compiling it takes more than {} s of processor time", confine::CPU_SECONDS)
        }
        Some(Signal::ABORT) if said.contains(ALLOCATION_FAILED) => {
            format!("compiling it takes more than {} MiB of memory", confine::MEMORY_BYTES >> 20)
        }
        Some(Signal::ABORT) if said.contains(STACK_OVERFLOWED) => {
            "compiling it takes more stack than the compiler has: it nests too deeply".into()
        }
        Some(Signal::SYS) => {
            "the compiler made a system call that compiling does not need, and was killed: do not trust this file".into()
        }
        Some(Signal::KILL) => {
            "the compiler was killed from outside, perhaps since the machine is short of memory: put the file in again".into()
        }
        _ if said.is_empty() => format!("the compiler ended with {status}"),
        _ => said,
    }
}

/// A worker's whole life: gives up what it does not need, reads a component from `input`, and
/// writes its code to `output`.
///
/// # Errors
/// [`Error::Sandbox`] if something cannot be given up, else why the file does not compile.
pub fn compile_worker(input: impl Read, mut output: impl Write) -> Result<(), Error> {
    let failed = |error: &dyn std::fmt::Display| Error::Sandbox(format!("the worker: {error}"));
    confine::limit()?;
    let engine = Engine::new(&sandbox::compile_config()).map_err(|error| failed(&error))?;
    confine::filter()?;
    let bytes = all(input, MAX_COMPONENT_BYTES as u64).map_err(|error| failed(&error))?;
    let code = Compiler::InProcess.compile(&engine, &bytes)?;
    output.write_all(&code).and_then(|()| output.flush()).map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt as _;

    #[test]
    fn an_end_by_a_limit_names_the_limit_and_another_does_not() {
        use rustix::process::Signal;
        let by = |signal: Signal, said: &str| {
            ended(ExitStatus::from_raw(signal.as_raw()), said.to_owned())
        };
        assert!(by(Signal::XCPU, "").contains("20 s of processor time"));
        assert!(by(Signal::ABORT, "memory allocation of 9 bytes failed").contains("1024 MiB"));
        assert!(by(Signal::ABORT, "thread main has overflowed its stack").contains("stack"));
        assert!(by(Signal::SYS, "").contains("system call"));
        assert!(by(Signal::KILL, "").contains("from outside"));
        assert_eq!(by(Signal::ABORT, "a defect of the compiler"), "a defect of the compiler");
    }
}
