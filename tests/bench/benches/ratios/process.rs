//! What the kernel says of a process: its processor time and its resident memory.

use anyhow::{Context as _, Result, bail};
use std::path::Path;
use std::time::Duration;

/// Clock ticks a second in /proc: 100 on every Linux that there is (`getconf CLK_TCK`).
const TICKS_PER_SECOND: u32 = 100;
/// Bytes of a page; 4 KiB where we measure.
const PAGE_BYTES: u64 = 4096;

/// User and system time of a process so far, threads that ended included. Its grain is 10 ms.
///
/// # Errors
/// There is no such process.
pub(crate) fn cpu(pid: u32) -> Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name in parentheses may have spaces; behind it, fields 3 and on.
    let (_, fields) = stat.rsplit_once(')').context("/proc/PID/stat")?;
    let mut fields = fields.split_whitespace().skip(11);
    let mut ticks = || fields.next().context("/proc/PID/stat")?.parse::<u32>().context("ticks");
    let sum = ticks()? + ticks()?;
    Ok(Duration::from_secs(sum.into()) / TICKS_PER_SECOND)
}

/// Resident bytes of this process.
///
/// # Errors
/// There is no /proc.
pub(crate) fn resident() -> Result<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = statm.split_whitespace().nth(1).context("/proc/self/statm")?.parse()?;
    Ok(pages * PAGE_BYTES)
}

/// The process that runs `program` with `argument` among its arguments.
///
/// # Errors
/// There is none.
pub(crate) fn running(program: &Path, argument: &Path) -> Result<u32> {
    let program = std::path::absolute(program)?;
    let is = |word: &[u8], path: &Path| word == path.as_os_str().as_encoded_bytes();
    for entry in std::fs::read_dir("/proc")? {
        let entry = entry?;
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // It may have ended meanwhile.
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0);
        if words.next().is_some_and(|first| is(first, &program)) && words.any(|it| is(it, argument))
        {
            return Ok(pid);
        }
    }
    bail!("no process runs {} with {}", program.display(), argument.display())
}
