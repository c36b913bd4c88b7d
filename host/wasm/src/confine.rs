//! What a compile worker gives up before it reads a stranger's file, and cannot take back.
//!
//! Three fences, each of which would hold alone against most of what a taken-over compiler could
//! try: the kernel's Landlock (no file, no connection), limits of the process, and a filter that
//! ends the process at any system call beyond those that computing and answering need.

use crate::Error;
use rustix::process::{Resource, Rlimit, setrlimit};

/// Writable memory of a worker, in bytes. Compiling 4 MiB, the largest file that is looked at,
/// takes about a quarter.
pub(crate) const MEMORY_BYTES: u64 = 1 << 30;

/// Processor time of a worker, in seconds: 4 MiB take about two.
pub(crate) const CPU_SECONDS: u64 = 20;

/// Files that a worker may hold open: its three streams and none besides.
const FILES: u64 = 3;

/// No new files, no network, bounded memory and time.
///
/// # Errors
/// [`Error::Sandbox`]: the system does not let it give something up.
pub(crate) fn limit() -> Result<(), Error> {
    close_files()?;
    let limits = [
        (Resource::Data, MEMORY_BYTES, MEMORY_BYTES),
        // One second from the signal that says why to the one that nothing can hold off.
        (Resource::Cpu, CPU_SECONDS, CPU_SECONDS + 1),
        (Resource::Nofile, FILES, FILES),
        (Resource::Fsize, 0, 0),
        (Resource::Core, 0, 0),
    ];
    for (resource, soft, hard) in limits {
        let limit = Rlimit { current: Some(soft), maximum: Some(hard) };
        setrlimit(resource, limit)
            .map_err(|error| Error::Sandbox(format!("a limit cannot be set: {error}")))?;
    }
    Ok(())
}

/// No file of any kind, and no connection. Where the kernel has no Landlock, the limit on open
/// files and the filter stand without it.
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

/// From here on: memory that is not executable, its open streams, and an end. Any other call kills
/// the process. Compiling is single-threaded (wasmtime without `parallel-compilation`).
///
/// # Errors
/// [`Error::Sandbox`]: this kernel or processor has no such filter.
#[cfg(target_os = "linux")]
pub(crate) fn filter() -> Result<(), Error> {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};
    let failed = |error: &dyn std::fmt::Display| {
        Error::Sandbox(format!("the filter of system calls: {error}"))
    };
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| failed(&error))?;
    let rules = calls().map_err(|error| failed(&error))?;
    let filter = SeccompFilter::new(rules, SeccompAction::KillProcess, SeccompAction::Allow, arch)
        .map_err(|error| failed(&error))?;
    let program = BpfProgram::try_from(filter).map_err(|error| failed(&error))?;
    seccompiler::apply_filter(&program).map_err(|error| failed(&error))
}

/// What compiling needs, found by tracing it: of ours, of bombs, and of what does not compile.
#[cfg(target_os = "linux")]
fn calls() -> Result<std::collections::BTreeMap<i64, Vec<seccompiler::SeccompRule>>, Error> {
    use seccompiler::{SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};
    let only = |argument: u8, op: SeccompCmpOp, value: u64| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, op, value)
            .and_then(|condition| SeccompRule::new(vec![condition]))
            .map(|rule| vec![rule])
            .map_err(|error| Error::Sandbox(error.to_string()))
    };
    let executable = u64::try_from(libc::PROT_EXEC).unwrap_or_default();
    let always = Vec::new;
    Ok([
        // The file, the code, and what is wrong.
        (libc::SYS_read, always()),
        (libc::SYS_write, always()),
        // The allocator, without a way to run what it holds.
        (libc::SYS_brk, always()),
        (libc::SYS_mmap, only(2, SeccompCmpOp::MaskedEq(executable), 0)?),
        (libc::SYS_mremap, always()),
        (libc::SYS_munmap, always()),
        (libc::SYS_madvise, always()),
        // Seeds of hash tables, and clocks where the kernel maps none into the process.
        (libc::SYS_getrandom, always()),
        (libc::SYS_clock_gettime, always()),
        // Ends: ordered, and by a panic or an allocation that fails, which signal this process alone.
        (libc::SYS_exit_group, always()),
        (libc::SYS_sigaltstack, always()),
        (libc::SYS_rt_sigaction, always()),
        (libc::SYS_rt_sigprocmask, always()),
        (libc::SYS_rt_sigreturn, always()),
        (libc::SYS_getpid, always()),
        (libc::SYS_gettid, always()),
        (libc::SYS_tgkill, only(0, SeccompCmpOp::Eq, std::process::id().into())?),
    ]
    .into())
}

#[cfg(not(target_os = "linux"))]
fn close_files() -> Result<(), Error> {
    Ok(())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn filter() -> Result<(), Error> {
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Command;

    /// Set for the process that is to try something behind the filter.
    const ATTEMPT: &str = "TRIMTAB_TEST_ATTEMPT";

    fn attempt(what: &str) -> ! {
        filter().unwrap();
        match what {
            "compute" => drop(std::hint::black_box(vec![1u8; 64 << 20])),
            "file" => drop(std::fs::read("/proc/self/status")),
            "network" => drop(std::net::UdpSocket::bind("127.0.0.1:0")),
            "thread" => drop(std::thread::Builder::new().spawn(|| ())),
            "program" => drop(Command::new("true").spawn()),
            "signal" => drop(rustix::process::test_kill_process(rustix::process::getpid())),
            other => panic!("no attempt {other}"),
        }
        // To tell how a test went would take more than the filter lets through.
        std::process::exit(0);
    }

    #[test]
    fn behind_the_filter_a_process_computes_and_anything_else_ends_it() {
        if let Ok(what) = std::env::var(ATTEMPT) {
            attempt(&what);
        }
        let name = "confine::tests::behind_the_filter_a_process_computes_and_anything_else_ends_it";
        let ended = |what: &str| {
            let mut child = Command::new(std::env::current_exe().unwrap());
            child.args(["--exact", name]).env(ATTEMPT, what).output().unwrap().status
        };
        assert!(ended("compute").success());
        for what in ["file", "network", "thread", "program", "signal"] {
            let status = ended(what);
            let signal = status.signal().and_then(rustix::process::Signal::from_named_raw);
            assert_eq!(signal, Some(rustix::process::Signal::SYS), "{what}: {status}");
        }
    }
}
