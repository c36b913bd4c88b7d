//! From a component's bytes to machine code: in this process, or in a worker of its own.
//!
//! A compiler is a large program that a stranger's file drives. In production it runs as a process
//! that holds nothing: an empty environment, no files that it may open, no network, limits on
//! memory, processor and wall time, and an end with the one file that it was made for. What it
//! gives back is trusted as the compiler's own output is, and by nobody else: it comes through a
//! pipe that only the two hold.
//!
//! [`Compiler::Worker`] names the program that calls [`compile_worker`]; `trimtab` is its own.

use crate::plugin::compile_error;
use crate::text::printable;
use crate::{Error, MAX_COMPONENT_BYTES, limits, sandbox};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use wasmtime::Engine;

/// Writable memory of a worker, in bytes. Compiling 4 MiB, the largest file that is looked at,
/// takes about a quarter.
const WORKER_MEMORY_BYTES: u64 = 1 << 30;

/// Processor time of a worker, in seconds: 4 MiB take about two.
const WORKER_CPU_SECONDS: u64 = 20;

/// Wall time of a worker: what a loaded machine makes of its processor time.
const WORKER_WALL_TIME: Duration = Duration::from_secs(60);

/// Files that a worker may hold open: its three streams and none besides.
const WORKER_FILES: u64 = 3;

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

fn ended(status: ExitStatus, said: String) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    let signal = status.signal().and_then(rustix::process::Signal::from_named_raw);
    match signal {
        Some(rustix::process::Signal::XCPU | rustix::process::Signal::KILL) => {
            format!("compiling it takes more than {WORKER_CPU_SECONDS} s of processor time")
        }
        Some(rustix::process::Signal::ABORT) => {
            let most = WORKER_MEMORY_BYTES >> 20;
            format!("compiling it takes more than {most} MiB of memory")
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
    give_up()?;
    let bytes = all(input, MAX_COMPONENT_BYTES as u64).map_err(|error| failed(&error))?;
    let engine = Engine::new(&sandbox::compile_config()).map_err(|error| failed(&error))?;
    let code = Compiler::InProcess.compile(&engine, &bytes)?;
    output.write_all(&code).and_then(|()| output.flush()).map_err(|error| failed(&error))
}

/// From here on: no new files, no network, bounded memory and time.
fn give_up() -> Result<(), Error> {
    use rustix::process::{Resource, Rlimit, setrlimit};
    close_files()?;
    let limits = [
        (Resource::Data, WORKER_MEMORY_BYTES),
        (Resource::Cpu, WORKER_CPU_SECONDS),
        (Resource::Nofile, WORKER_FILES),
        (Resource::Fsize, 0),
        (Resource::Core, 0),
    ];
    for (resource, most) in limits {
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        setrlimit(resource, limit)
            .map_err(|error| Error::Sandbox(format!("a limit cannot be set: {error}")))?;
    }
    Ok(())
}

/// No file of any kind, and no connection. Where the kernel has no Landlock, the limit on open
/// files stands alone.
#[cfg(target_os = "linux")]
fn close_files() -> Result<(), Error> {
    use landlock::{ABI, Access as _, AccessFs, AccessNet, Ruleset, RulesetAttr as _};
    Ruleset::default()
        .handle_access(AccessFs::from_all(ABI::V5))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(ABI::V5)))
        .and_then(Ruleset::create)
        .and_then(landlock::RulesetCreated::restrict_self)
        .map(drop)
        .map_err(|error| Error::Sandbox(format!("Landlock refuses its rules: {error}")))
}

#[cfg(not(target_os = "linux"))]
fn close_files() -> Result<(), Error> {
    Ok(())
}
