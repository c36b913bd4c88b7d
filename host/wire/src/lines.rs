//! From chunks of a response body to lines.
//!
//! Takes bytes as they arrive, in any cut. Gives whole lines without their end. Memory is bounded:
//! of a line that is too long nothing is kept, and the lines after it are whole again.

use bytes::{Bytes, BytesMut};

/// The longest line of a watch, in bytes. etcd refuses a request over 1.5 MiB, so a stored object
/// is smaller; JSON text of the worst control characters is six times that, and an event carries
/// one object. Anything longer is not an object, and would otherwise cost memory without end.
pub const MAX_LINE_BYTES: usize = 16 << 20;

/// One step of the decoder.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A whole line, without its end. Never empty.
    Whole(Bytes),
    /// A line over the limit was dropped.
    TooLong,
}

/// Incremental splitter.
#[derive(Debug)]
pub struct Lines {
    buffer: BytesMut,
    /// How much of the buffer holds no line end.
    searched: usize,
    /// In the middle of a line that is too long.
    skipping: bool,
    limit: usize,
}

impl Lines {
    /// With this limit in bytes.
    pub fn new(limit: usize) -> Self {
        Self { buffer: BytesMut::new(), searched: 0, skipping: false, limit }
    }

    /// The next piece of the body.
    pub fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// The next line, if a whole one is there.
    pub fn next_line(&mut self) -> Option<Line> {
        loop {
            let end = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n');
            let Some(end) = end.map(|at| at + self.searched) else {
                self.searched = self.buffer.len();
                if self.searched > self.limit {
                    self.skipping = true;
                }
                if self.skipping {
                    self.buffer = BytesMut::new();
                    self.searched = 0;
                }
                return None;
            };
            let mut line = self.buffer.split_to(end + 1);
            line.truncate(end);
            self.searched = 0;
            if std::mem::take(&mut self.skipping) || line.len() > self.limit {
                return Some(Line::TooLong);
            }
            if !line.trim_ascii().is_empty() {
                return Some(Line::Whole(line.freeze()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(limit: usize, chunks: &[&str], expect: &[Option<&str>]) {
        let mut lines = Lines::new(limit);
        let mut seen = Vec::new();
        for chunk in chunks {
            lines.push(chunk.as_bytes());
            while let Some(line) = lines.next_line() {
                seen.push(match line {
                    Line::Whole(bytes) => Some(String::from_utf8(bytes.to_vec()).unwrap()),
                    Line::TooLong => None,
                });
            }
        }
        let seen: Vec<Option<&str>> = seen.iter().map(Option::as_deref).collect();
        assert_eq!(seen, expect);
    }

    #[test]
    fn lines_are_whole_whatever_the_cut() {
        check(99, &["one\ntwo\nthr", "ee", "\n"], &[Some("one"), Some("two"), Some("three")]);
        check(99, &["\n\r\na\n\n"], &[Some("a")]);
        check(99, &["never ended"], &[]);
    }

    #[test]
    fn a_line_that_is_too_long_costs_itself_alone() {
        check(4, &["abcdefgh\nok\n"], &[None, Some("ok")]);
        check(4, &["abcdefgh", "ijklmnop", "q\nok\n"], &[None, Some("ok")]);
        check(4, &["abcd\nefgh\n"], &[Some("abcd"), Some("efgh")]);
    }

    #[test]
    fn nothing_is_kept_of_a_line_that_is_too_long() {
        let mut lines = Lines::new(1024);
        for _ in 0..10_000 {
            lines.push(&[b'x'; 512]);
            assert_eq!(lines.next_line(), None);
            assert!(lines.buffer.len() <= 2048);
        }
    }
}
