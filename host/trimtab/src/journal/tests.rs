//! The chain against everything that can be done to its files.

use super::files::{FILE, RawLine};
use super::verify::Fault;
use super::*;
use proptest::prelude::*;

/// A closed log of this many host lines, in files of this size.
fn log(lines: usize, max_bytes: u64) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { max_bytes, keep: None, checkpoints: None };
    let journal = JournalFile::open(dir.path(), limits).unwrap();
    for n in 0..lines {
        journal.append(&host(n)).unwrap();
        if n % 5 == 4 {
            journal.chain().checkpoint().unwrap();
        }
    }
    journal.close().unwrap();
    dir
}

fn host(n: usize) -> Event {
    Event::Host(HostLine { event: "told".into(), message: format!("number {n}") })
}

fn verdict(dir: &Path) -> Verdict {
    let trust = Trust { key: None, copies: own_copies(dir) };
    verify(files_of(dir).unwrap(), &trust).unwrap()
}

fn fault(dir: &Path) -> Option<Fault> {
    verdict(dir).problem.map(|problem| problem.fault)
}

/// Lines of all files, with the file of each.
fn lines(dir: &Path) -> Vec<RawLine> {
    Lines::of(files_of(dir).unwrap()).collect::<Result<_, _>>().unwrap()
}

fn write(dir: &Path, lines: &[RawLine]) {
    for file in files_of(dir).unwrap() {
        let text: Vec<u8> = lines
            .iter()
            .filter(|line| line.file == file)
            .flat_map(|line| [&line.bytes[..], b"\n"].concat())
            .collect();
        std::fs::write(&file, text).unwrap();
    }
}

#[test]
fn a_log_that_nobody_touched_verifies_over_all_its_files() {
    for max_bytes in [u64::MAX, 1500] {
        let dir = log(40, max_bytes);
        let verdict = verdict(dir.path());
        assert!(verdict.problem.is_none(), "{:?}", verdict.problem);
        assert_eq!(verdict.first, Some(0));
        assert_eq!(verdict.lines, verdict.last.unwrap() + 1);
        assert_eq!(
            verdict.covered,
            verdict.last.map(|last| last - 1),
            "the last line is a checkpoint"
        );
        assert_eq!(files_of(dir.path()).unwrap().len() > 1, max_bytes == 1500);
    }
}

#[test]
fn a_host_that_starts_again_continues_the_chain() {
    let dir = log(3, u64::MAX);
    JournalFile::open(dir.path(), Limits::default()).unwrap().host("started", "again").unwrap();
    let verdict = verdict(dir.path());
    assert!(verdict.problem.is_none(), "{:?}", verdict.problem);
    assert!(
        verdict.notes.iter().any(|note| note.contains("the last 1 lines")),
        "{:?}",
        verdict.notes
    );
}

#[test]
fn the_first_bad_record_is_named() {
    let dir = log(12, u64::MAX);
    let all = lines(dir.path());
    let tampered = |change: &dyn Fn(&mut Vec<RawLine>)| {
        let mut lines = all.clone();
        change(&mut lines);
        write(dir.path(), &lines);
        let problem = verdict(dir.path()).problem.expect("found");
        (problem.fault, problem.line)
    };
    let edit = |lines: &mut Vec<RawLine>, at: usize| {
        let text = String::from_utf8(lines[at].bytes.clone()).unwrap();
        lines[at].bytes = text.replace("number", "Number").into_bytes();
    };
    assert_eq!(tampered(&|lines| edit(lines, 3)), (Fault::Edited, 4));
    assert_eq!(tampered(&|lines| drop(lines.remove(3))), (Fault::Deleted, 4));
    assert_eq!(tampered(&|lines| drop(lines.drain(3..9))), (Fault::Deleted, 4));
    assert_eq!(tampered(&|lines| lines.swap(3, 4)), (Fault::Reordered, 4));
    assert_eq!(tampered(&|lines| lines.swap(2, 8)), (Fault::Reordered, 3));
    assert_eq!(tampered(&|lines| lines.insert(5, lines[3].clone())), (Fault::Duplicated, 6));
    assert_eq!(tampered(&|lines| drop(lines.drain(..2))), (Fault::Deleted, 1));
    for left in 1..all.len() {
        let (fault, _) = tampered(&|lines| lines.truncate(left));
        assert_eq!(fault, Fault::Truncated, "of {left} lines");
    }
}

#[test]
fn a_log_that_was_forked_from_an_older_copy_is_found_by_the_copies_of_checkpoints() {
    let dir = log(12, u64::MAX);
    let older = lines(dir.path());
    let cut = older.len() - 4;
    let copies = std::fs::read(dir.path().join(CHECKPOINTS)).unwrap();
    write(dir.path(), &older[..cut]);
    // The same host, with the same key, told to go on from there.
    let journal = JournalFile::open(dir.path(), Limits::default()).unwrap();
    for n in 0..10 {
        journal.append(&host(1000 + n)).unwrap();
    }
    journal.close().unwrap();
    std::fs::write(dir.path().join(CHECKPOINTS), copies).unwrap();
    assert_eq!(fault(dir.path()), Some(Fault::Forked));
}

#[test]
fn a_log_that_was_written_anew_with_another_key_is_found() {
    let (dir, other) = (log(12, u64::MAX), log(12, u64::MAX));
    std::fs::copy(other.path().join(FILE), dir.path().join(FILE)).unwrap();
    assert_eq!(fault(dir.path()), Some(Fault::KeyReplaced), "by the copies");
    std::fs::copy(other.path().join(CHECKPOINTS), dir.path().join(CHECKPOINTS)).unwrap();
    let key = HostKey::open(dir.path()).unwrap().public().to_owned();
    let trust = Trust { key: Some(key), copies: own_copies(dir.path()) };
    let verdict = verify(files_of(dir.path()).unwrap(), &trust).unwrap();
    assert_eq!(
        verdict.problem.map(|problem| problem.fault),
        Some(Fault::KeyReplaced),
        "by the key"
    );
}

#[test]
fn what_was_rotated_out_is_vouched_for_by_the_copies_and_a_missing_file_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { max_bytes: 1500, keep: Some(2), checkpoints: None };
    let journal = JournalFile::open(dir.path(), limits).unwrap();
    for n in 0..60 {
        journal.append(&host(n)).unwrap();
    }
    journal.close().unwrap();
    let files = files_of(dir.path()).unwrap();
    assert_eq!(files.len(), 3, "{files:?}");
    assert_eq!(fault(dir.path()), None);
    std::fs::remove_file(&files[1]).unwrap();
    assert_eq!(fault(dir.path()), Some(Fault::Deleted));
    std::fs::remove_file(dir.path().join(CHECKPOINTS)).unwrap();
    assert_eq!(fault(dir.path()), Some(Fault::Deleted), "nobody vouches for the beginning");
}

#[test]
fn a_line_torn_by_a_crash_is_put_aside_and_the_chain_goes_on() {
    let dir = log(3, u64::MAX);
    let path = dir.path().join(FILE);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend_from_slice(b"{\"v\":2,\"seq");
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(fault(dir.path()), Some(Fault::Torn));
    JournalFile::open(dir.path(), Limits::default()).unwrap().close().unwrap();
    assert_eq!(fault(dir.path()), None);
    let mended = lines(dir.path()).into_iter().find_map(|line| {
        let line: Line = serde_json::from_slice(&line.bytes).unwrap();
        match line.event {
            Event::Host(host) if host.event == "journal-mended" => Some(host.message),
            _ => None,
        }
    });
    let torn = mended.unwrap().rsplit_once(" in ").unwrap().1.to_owned();
    assert_eq!(std::fs::read(torn).unwrap(), b"{\"v\":2,\"seq");
}

#[test]
fn a_log_that_cannot_be_continued_is_set_aside_whole() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(FILE), "{\"v\":1,\"time\":\"t\",\"type\":\"host\"}\n").unwrap();
    JournalFile::open(dir.path(), Limits::default()).unwrap().close().unwrap();
    assert_eq!(fault(dir.path()), None);
    let text = String::from_utf8(std::fs::read(dir.path().join(FILE)).unwrap()).unwrap();
    assert!(text.contains("journal-set-aside"), "{text}");
}

#[test]
fn reading_without_a_journal_says_where_it_looked() {
    let dir = tempfile::tempdir().unwrap();
    let error = format!("{:#}", files_of(dir.path()).map(drop).unwrap_err());
    assert!(error.contains("journal.jsonl"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn no_byte_of_a_closed_log_can_be_changed(at in 0.0..1.0f64, to in any::<u8>(), rotated in any::<bool>()) {
        let dir = log(12, if rotated { 1500 } else { u64::MAX });
        let files = files_of(dir.path()).unwrap();
        let total: usize = files.iter().map(|file| std::fs::read(file).unwrap().len()).sum();
        let mut at = (at * total as f64) as usize;
        for file in files {
            let mut bytes = std::fs::read(&file).unwrap();
            if at < bytes.len() {
                prop_assume!(bytes[at] != to);
                bytes[at] = to;
                std::fs::write(&file, bytes).unwrap();
                break;
            }
            at -= bytes.len();
        }
        prop_assert!(fault(dir.path()).is_some());
    }

    #[test]
    fn no_tail_of_a_closed_log_can_be_cut_off(at in 0.0..1.0f64) {
        let dir = log(12, u64::MAX);
        let path = dir.path().join(FILE);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..(at * bytes.len() as f64) as usize]).unwrap();
        prop_assert!(fault(dir.path()).is_some());
    }
}
