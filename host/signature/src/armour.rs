//! Base64 between two marker lines, as OpenSSH and OpenPGP write it.
//!
//! Strict on purpose: one block and nothing around it, full base64, a checksum that holds. What is
//! not signed has no room to vary in, but for OpenPGP's comment lines, which some programs write.

use super::{Fault, decode, encode};

/// The markers of one kind of block, and how its lines are.
pub(crate) struct Armour {
    pub(crate) begin: &'static str,
    pub(crate) end: &'static str,
    /// Lines of `Name: text` and an empty line come first, a checksum last.
    pub(crate) headers: bool,
    /// Characters of base64 on a line that is written.
    pub(crate) line: usize,
}

/// OpenPGP's names of comment lines.
const HEADERS: [&str; 5] = ["Version", "Comment", "Hash", "Charset", "MessageID"];

impl Armour {
    /// The bytes of a text that is one block, with nothing around it but line ends behind it.
    pub(crate) fn open(&self, text: &str) -> Result<Vec<u8>, Fault> {
        let damaged = |what: &str| Fault::Damaged(what.to_owned());
        let (body, after) = self.first(text)?;
        // GitHub ends its signatures with an empty line of its own.
        if after.bytes().any(|byte| byte != b'\n') {
            return Err(damaged("something is behind it"));
        }
        self.body(body)
    }

    /// The lines between the markers at the start of this text, and what is behind them.
    pub(crate) fn first<'t>(&self, text: &'t str) -> Result<(&'t str, &'t str), Fault> {
        let damaged = |what: String| Fault::Damaged(what);
        let body = text
            .strip_prefix(self.begin)
            .and_then(|rest| rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n')))
            .ok_or_else(|| damaged(format!("it does not begin with {:?} alone", self.begin)))?;
        let mut at = 0;
        for line in body.split_inclusive('\n') {
            if line.strip_suffix('\n').map_or(line, |it| it.strip_suffix('\r').unwrap_or(it))
                == self.end
            {
                return Ok((&body[..at], &body[at + line.len()..]));
            }
            at += line.len();
        }
        Err(damaged(format!("it does not end with {:?}", self.end)))
    }

    /// The bytes of the lines between the markers.
    pub(crate) fn body(&self, body: &str) -> Result<Vec<u8>, Fault> {
        let damaged = |what: &str| Fault::Damaged(what.to_owned());
        let mut lines = body.lines().peekable();
        if self.headers {
            for line in lines.by_ref() {
                if line.is_empty() {
                    break;
                }
                let name = line.split_once(':').map(|(name, _)| name);
                if !name.is_some_and(|name| HEADERS.contains(&name)) {
                    return Err(damaged("an empty line is missing before its base64"));
                }
            }
        }
        let mut text = String::with_capacity(body.len());
        let mut checksum = None;
        for line in lines {
            if checksum.is_some() || line.is_empty() {
                return Err(damaged("its lines of base64 are interrupted"));
            }
            match line.strip_prefix('=') {
                Some(sum) if self.headers => checksum = Some(sum),
                _ => text.push_str(line),
            }
        }
        let bytes = decode(&text)?;
        if bytes.is_empty() {
            return Err(damaged("it is empty"));
        }
        match checksum {
            Some(sum) if decode(sum)? != crc24(&bytes).to_be_bytes()[1..] => {
                Err(damaged("its checksum is wrong"))
            }
            _ => Ok(bytes),
        }
    }

    /// A block of these bytes.
    pub(crate) fn close(&self, bytes: &[u8]) -> String {
        let text = encode(bytes);
        let mut all = format!("{}\n", self.begin);
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (line, after) = rest.split_at(rest.len().min(self.line));
            all.push_str(line);
            all.push('\n');
            rest = after;
        }
        all.push_str(self.end);
        all.push('\n');
        all
    }
}

/// RFC 9580, 6.1: the checksum that OpenPGP may write behind its base64.
fn crc24(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x00b7_04ce, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte) << 16, |sum, _| {
            let sum = sum << 1;
            if sum & 0x0100_0000 == 0 { sum } else { (sum ^ 0x0186_4cfb) & 0x00ff_ffff }
        })
    })
}
