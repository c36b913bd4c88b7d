//! Whether a log is the one that its host wrote: every line against the one before it, every
//! checkpoint against its key, and the copies of checkpoints against the log.
//!
//! Reads each line once and holds two; only what is wrong is looked at again. The first bad record
//! is named by its file and line.

use super::chain::Head;
use super::files::{Lines, RawLine};
use super::hash;
use super::lines::{CheckpointLine, VERSION};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// What a log is held against, besides itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trust {
    /// The host's public key, from somewhere that the log's keeper cannot change.
    pub(crate) key: Option<String>,
    /// Files with copies of checkpoints.
    pub(crate) copies: Vec<PathBuf>,
}

/// What came of it.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Verdict {
    /// The log's id.
    pub(crate) log: String,
    /// The key that its checkpoints are signed by.
    pub(crate) key: String,
    /// Lines that were read, numbers of the first and the last.
    pub(crate) lines: u64,
    pub(crate) first: Option<u64>,
    pub(crate) last: Option<u64>,
    /// Checkpoints in the log, and the number of the last line that one of them covers.
    pub(crate) checkpoints: u64,
    pub(crate) covered: Option<u64>,
    /// The first bad record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<Problem>,
    /// What this verdict does not say.
    pub(crate) notes: Vec<String>,
}

/// What is wrong with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Fault {
    /// Its bytes are other ones than were written.
    Edited,
    /// Lines before it are missing.
    Deleted,
    /// It stands in another place than it was written in.
    Reordered,
    /// It is there again.
    Duplicated,
    /// Lines after it are missing.
    Truncated,
    /// A checkpoint was made of another log with the same number of lines.
    Forked,
    /// A checkpoint is signed by another key.
    KeyReplaced,
    /// It was not written to its end.
    Torn,
    /// A copy of a checkpoint is none.
    CopyEdited,
}

/// The first bad record.
#[derive(Debug, Serialize)]
pub(crate) struct Problem {
    pub(crate) fault: Fault,
    pub(crate) file: PathBuf,
    /// Counted from 1; 0: the file as a whole.
    pub(crate) line: usize,
    /// Its number in the log, where it can be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seq: Option<u64>,
    pub(crate) message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.message)
    }
}

#[derive(Deserialize)]
struct Typed {
    #[serde(rename = "type")]
    type_: String,
}

#[derive(Deserialize)]
struct Begins {
    log: String,
    key: String,
}

/// A copy of a checkpoint, by the number of its line.
struct Copy {
    line: RawLine,
    checkpoint: CheckpointLine,
}

/// Verifies the log in these files, oldest first.
///
/// # Errors
/// A file cannot be read. What is wrong with the log is in the verdict.
pub(crate) fn verify(files: Vec<PathBuf>, trust: &Trust) -> anyhow::Result<Verdict> {
    let mut verdict = Verdict::default();
    let copies = match read_copies(&trust.copies)? {
        Ok(copies) => copies,
        Err(problem) => {
            verdict.problem = Some(problem);
            return Ok(verdict);
        }
    };
    let mut walk = Walk { trust, copies, verdict, expected: 0, prev: String::new(), before: None };
    let mut lines = Lines::of(files.clone());
    let mut line = lines.next().transpose()?;
    while let Some(this) = line {
        let next = lines.next().transpose()?;
        if let Err(problem) = walk.take(&this, next.as_ref(), &files) {
            walk.verdict.problem = Some(problem);
            return Ok(walk.verdict);
        }
        walk.before = Some(this);
        line = next;
    }
    Ok(walk.end())
}

struct Walk<'t> {
    trust: &'t Trust,
    copies: BTreeMap<u64, Copy>,
    verdict: Verdict,
    expected: u64,
    prev: String,
    before: Option<RawLine>,
}

impl Walk<'_> {
    fn take(
        &mut self,
        line: &RawLine,
        next: Option<&RawLine>,
        files: &[PathBuf],
    ) -> Result<(), Problem> {
        if !line.whole {
            return Err(problem(line, Fault::Torn, None, "the line was not written to its end"));
        }
        let edited = |what: String| problem(line, Fault::Edited, None, what);
        let head: Head = serde_json::from_slice(&line.bytes)
            .map_err(|error| edited(format!("it cannot be read as a line of the log: {error}")))?;
        if head.v != VERSION {
            return Err(edited(format!("version {} is not {VERSION}, which this log has", head.v)));
        }
        match self.verdict.first {
            None => self.begin(line, &head)?,
            Some(_) if head.seq != self.expected => return Err(self.misplaced(line, &head, files)),
            Some(_) if head.prev != self.prev => return Err(self.altered(line, &head, next)),
            Some(_) => {}
        }
        self.checkpoint(line, &head)?;
        self.verdict.first.get_or_insert(head.seq);
        self.verdict.last = Some(head.seq);
        self.verdict.lines += 1;
        self.expected = head.seq + 1;
        self.prev = line.hash();
        Ok(())
    }

    /// The first line that is there: the log's first, or one that a copy of a checkpoint precedes.
    fn begin(&mut self, line: &RawLine, head: &Head) -> Result<(), Problem> {
        if head.seq == 0 {
            let begins: Begins = serde_json::from_slice(&line.bytes).map_err(|_| {
                problem(
                    line,
                    Fault::Edited,
                    Some(0),
                    "the first line does not say which log begins",
                )
            })?;
            self.known(line, 0, &begins.log, &begins.key)?;
            if !head.prev.is_empty() {
                return Err(problem(
                    line,
                    Fault::Edited,
                    Some(0),
                    "the first line names one before it",
                ));
            }
            return Ok(());
        }
        let before = head.seq - 1;
        match self.copies.get(&before) {
            Some(copy) if copy.line.hash() == head.prev => {
                self.verdict.notes.push(format!(
                    "lines 0 to {before} are not there any more; a checkpoint vouches for where they ended"
                ));
                Ok(())
            }
            _ => Err(problem(
                line,
                Fault::Deleted,
                Some(head.seq),
                format!(
                    "lines 0 to {before} are missing, and no copy of a checkpoint vouches for where they ended"
                ),
            )),
        }
    }

    /// The log's id and key are the same wherever they stand.
    fn known(&mut self, line: &RawLine, seq: u64, log: &str, key: &str) -> Result<(), Problem> {
        if self.verdict.log.is_empty() {
            self.verdict.log = log.to_owned();
        }
        if self.verdict.key.is_empty() {
            let first = || self.copies.values().next().map(|copy| copy.checkpoint.key.clone());
            let pinned = self.trust.key.clone().or_else(first);
            self.verdict.key = pinned.unwrap_or_else(|| key.to_owned());
        }
        if self.verdict.key != key {
            return Err(problem(
                line,
                Fault::KeyReplaced,
                Some(seq),
                format!("it names the key {key}; this host's is {}", self.verdict.key),
            ));
        }
        if self.verdict.log != log {
            let what = format!("it is of the log {log}; this one is {}", self.verdict.log);
            return Err(problem(line, Fault::Forked, Some(seq), what));
        }
        Ok(())
    }

    fn checkpoint(&mut self, line: &RawLine, head: &Head) -> Result<(), Problem> {
        let typed: Typed = serde_json::from_slice(&line.bytes).map_err(|_| {
            problem(line, Fault::Edited, Some(head.seq), "it does not say what it tells")
        })?;
        let copy = self.copies.remove(&head.seq);
        if typed.type_ != "checkpoint" {
            return match copy {
                None => Ok(()),
                Some(copy) => Err(problem(
                    line,
                    Fault::Forked,
                    Some(head.seq),
                    format!(
                        "the host made a checkpoint here, says {}:{}; this log has another line",
                        copy.line.file.display(),
                        copy.line.number
                    ),
                )),
            };
        }
        let edited = |what: &str| problem(line, Fault::Edited, Some(head.seq), what);
        let checkpoint: CheckpointLine = serde_json::from_slice(&line.bytes)
            .map_err(|_| edited("it is a checkpoint that lacks a part"))?;
        self.known(line, head.seq, &checkpoint.log, &checkpoint.key)?;
        if !checkpoint.is_signed(head.seq, &head.prev, &head.time) {
            return Err(edited("the checkpoint's signature is not of this line"));
        }
        if copy.is_some_and(|copy| copy.line.bytes != line.bytes) {
            return Err(problem(
                line,
                Fault::Forked,
                Some(head.seq),
                "the copy of this checkpoint is another one: the host wrote another log up to here",
            ));
        }
        self.verdict.checkpoints += 1;
        self.verdict.covered = head.seq.checked_sub(1);
        Ok(())
    }

    /// Another number than the next one stands here.
    fn misplaced(&self, line: &RawLine, head: &Head, files: &[PathBuf]) -> Problem {
        let expected = self.expected;
        if head.seq < expected {
            let what = format!("line {} is there again, where {expected} should be", head.seq);
            return problem(line, Fault::Duplicated, Some(head.seq), what);
        }
        let later = Lines::of(files.to_vec()).map_while(Result::ok).any(|line| {
            serde_json::from_slice::<Head>(&line.bytes).is_ok_and(|head| head.seq == expected)
        });
        match later {
            true => problem(
                line,
                Fault::Reordered,
                Some(head.seq),
                format!(
                    "line {} stands where {expected} should be, which stands elsewhere",
                    head.seq
                ),
            ),
            false => {
                let last = head.seq - 1;
                let which = if last == expected {
                    format!("line {expected} is")
                } else {
                    format!("lines {expected} to {last} are")
                };
                problem(
                    line,
                    Fault::Deleted,
                    Some(head.seq),
                    format!("{which} missing before this one"),
                )
            }
        }
    }

    /// This line does not name the one before it as it is: one of the two was edited.
    fn altered(&self, line: &RawLine, head: &Head, next: Option<&RawLine>) -> Problem {
        let this_stands = next
            .and_then(|next| serde_json::from_slice::<Head>(&next.bytes).ok())
            .is_none_or(|next| next.prev == line.hash());
        match (&self.before, this_stands) {
            (Some(before), true) => problem(
                before,
                Fault::Edited,
                head.seq.checked_sub(1),
                "it is not what was written: the line after it names other bytes",
            ),
            _ => problem(
                line,
                Fault::Edited,
                Some(head.seq),
                "it is not what was written: it does not name the line before it, nor does the next name it",
            ),
        }
    }

    /// What the copies say of lines that are not there.
    fn end(mut self) -> Verdict {
        let first = self.verdict.first.unwrap_or(0);
        let beyond = self.copies.split_off(&first);
        if let Some((seq, copy)) = beyond.first_key_value() {
            let other = !self.verdict.log.is_empty() && copy.checkpoint.log != self.verdict.log;
            let (fault, message) = match other {
                true => (
                    Fault::Forked,
                    format!(
                        "it is of the log {}; this one is {}: another log was put in its place",
                        copy.checkpoint.log, self.verdict.log
                    ),
                ),
                false => (
                    Fault::Truncated,
                    match self.verdict.last {
                        Some(last) => format!(
                            "the log had {seq} lines before this checkpoint, and ends with line {last}"
                        ),
                        None => {
                            format!("the log had {seq} lines before this checkpoint, and is empty")
                        }
                    },
                ),
            };
            self.verdict.problem = Some(problem(&copy.line, fault, Some(*seq), message));
        }
        if self.trust.key.is_none() {
            self.verdict.notes.push(
                "no --public-key was given: whoever can replace the key and all copies can replace the log".into(),
            );
        }
        let covered = self.verdict.covered.map_or(0, |covered| covered + 2);
        let beyond = self.verdict.last.map_or(0, |last| last + 1).saturating_sub(covered);
        if beyond > 0 {
            self.verdict.notes.push(format!(
                "no checkpoint covers the last {beyond} lines yet: they are chained, and could be cut off or rewritten"
            ));
        }
        self.verdict
    }
}

fn problem(line: &RawLine, fault: Fault, seq: Option<u64>, message: impl Into<String>) -> Problem {
    Problem { fault, file: line.file.clone(), line: line.number, seq, message: message.into() }
}

/// The copies by number; a problem if one of them is no checkpoint, or two contradict each other.
fn read_copies(files: &[PathBuf]) -> anyhow::Result<Result<BTreeMap<u64, Copy>, Problem>> {
    let mut copies: BTreeMap<u64, Copy> = BTreeMap::new();
    for file in files {
        for line in Lines::of(vec![file.clone()]) {
            let line = line?;
            let parsed = (
                serde_json::from_slice::<Head>(&line.bytes),
                serde_json::from_slice::<CheckpointLine>(&line.bytes),
            );
            let (Ok(head), Ok(checkpoint)) = parsed else {
                return Ok(Err(problem(&line, Fault::CopyEdited, None, "it is no checkpoint")));
            };
            if !line.whole || !checkpoint.is_signed(head.seq, &head.prev, &head.time) {
                let what = "the signature of this copy is not of it";
                return Ok(Err(problem(&line, Fault::CopyEdited, Some(head.seq), what)));
            }
            if let Some(other) = copies.get(&head.seq)
                && hash(&other.line.bytes) != line.hash()
            {
                let what = format!(
                    "another checkpoint with this number stands in {}:{}: the log was forked",
                    other.line.file.display(),
                    other.line.number
                );
                return Ok(Err(problem(&line, Fault::Forked, Some(head.seq), what)));
            }
            copies.insert(head.seq, Copy { line, checkpoint });
        }
    }
    Ok(Ok(copies))
}

/// The copies that a host keeps in its state directory, if it does.
pub(crate) fn own_copies(state: &Path) -> Vec<PathBuf> {
    let own = state.join(super::CHECKPOINTS);
    if own.exists() { vec![own] } else { Vec::new() }
}
