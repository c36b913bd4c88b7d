//! Commits and tags as bytes: what is signed, and by which signature.
//!
//! Git signs a commit without its `gpgsig` header and puts a tag's signature behind its text.
//! Stricter than Git: one signature header, at most; no other `gpgsig…` header, since Git signs
//! those out of the commit as well and they would be words that nobody vouches for.

use super::Commit;
use super::signers::BEGINNINGS;

/// What verification needs of a commit.
#[derive(Debug)]
pub(super) struct CommitText {
    pub(super) tree: gix::ObjectId,
    pub(super) parents: Vec<Commit>,
    /// Seconds since 1970 by the committer's word.
    pub(super) committed: i64,
    pub(super) signed: Signed,
}

/// What verification needs of a tag object.
#[derive(Debug)]
pub(super) struct TagText {
    pub(super) target: Commit,
    pub(super) name: String,
    pub(super) signed: Signed,
}

/// Whether there is a signature, of what.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Signed {
    No,
    /// It is a merge that carries a tag that may be signed; itself it is not.
    NotThis,
    /// In a way that could be read in two ways.
    Wrongly(&'static str),
    Yes {
        payload: Payload,
        signature: String,
    },
}

/// What a signature is over, and when that was made by its maker's word.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Payload {
    pub(super) bytes: Vec<u8>,
    pub(super) made: i64,
}

/// Reads a commit.
pub(super) fn parse(bytes: &[u8]) -> Result<CommitText, String> {
    let headers = headers(bytes)?;
    let mut left = headers.iter().peekable();
    let tree = left.next().filter(|it| it.name == b"tree").ok_or("the commit has no tree")?;
    let tree = id(tree.value)?;
    let mut parents = Vec::new();
    while let Some(parent) = left.next_if(|it| it.name == b"parent") {
        parents.push(id(parent.value)?.into());
    }
    left.next().filter(|it| it.name == b"author").ok_or("the commit has no author")?;
    let committer =
        left.next().filter(|it| it.name == b"committer").ok_or("the commit has no committer")?;
    let committed = time(committer.value);
    if left.any(|it| [&b"tree"[..], b"parent", b"author", b"committer"].contains(&it.name)) {
        return Err("the commit has a header in a place where it is not looked for".into());
    }
    let signed = signature_of(bytes, &headers, committed)?;
    Ok(CommitText { tree, parents, committed, signed })
}

fn signature_of(bytes: &[u8], headers: &[Header<'_>], made: i64) -> Result<Signed, String> {
    let mut signatures = headers.iter().filter(|it| it.name.starts_with(b"gpgsig"));
    let Some(header) = signatures.next() else {
        let merged = headers.iter().any(|it| it.name == b"mergetag");
        return Ok(if merged { Signed::NotThis } else { Signed::No });
    };
    if signatures.next().is_some() {
        return Ok(Signed::Wrongly("it has more than one signature header"));
    }
    if header.name != b"gpgsig" {
        return Ok(Signed::Wrongly("its signature header is for another hash than SHA-1"));
    }
    let text = [header.value, header.more].concat();
    let text = String::from_utf8(text).map_err(|_| "the signature is no text")?;
    // Lines that go on begin with a blank, which is not theirs.
    let signature = text.replace("\n ", "\n");
    let bytes = [&bytes[..header.start], &bytes[header.end..]].concat();
    Ok(Signed::Yes { payload: Payload { bytes, made }, signature })
}

/// Reads a tag object.
pub(super) fn parse_tag(bytes: &[u8]) -> Result<TagText, String> {
    let headers = headers(bytes)?;
    let [object, kind, name, rest @ ..] = &headers[..] else {
        return Err("the tag is cut off".into());
    };
    if (object.name, kind.name, name.name) != (b"object", b"type", b"tag") {
        return Err("the tag's headers are not in their places".into());
    }
    if kind.value != b"commit" {
        return Err(format!("the tag is of a {} and not of a commit", text(kind.value)));
    }
    let (target, tag_name) = (id(object.value)?.into(), text(name.value));
    let made = match rest {
        [] => 0,
        [tagger] if tagger.name == b"tagger" => time(tagger.value),
        _ => return Err("the tag has a header that tags do not have".into()),
    };
    let mut signatures = beginnings(bytes);
    let signed = match (signatures.next(), signatures.next()) {
        (None, _) => Signed::No,
        (Some(_), Some(_)) => Signed::Wrongly("it has more than one signature"),
        (Some(at), None) => match std::str::from_utf8(&bytes[at..]) {
            Ok(signature) => Signed::Yes {
                payload: Payload { bytes: bytes[..at].to_vec(), made },
                signature: signature.to_owned(),
            },
            Err(_) => Signed::Wrongly("its signature is no text"),
        },
    };
    Ok(TagText { target, name: tag_name, signed })
}

/// Where lines stand at which a signature begins.
fn beginnings(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let mut at = 0;
    bytes.split_inclusive(|byte| *byte == b'\n').filter_map(move |line| {
        let start = at;
        at += line.len();
        BEGINNINGS.iter().any(|begin| line.starts_with(begin.as_bytes())).then_some(start)
    })
}

/// A header, with the lines that go on from its first.
struct Header<'b> {
    name: &'b [u8],
    value: &'b [u8],
    /// From the first line's end on: each line after its line end and blank.
    more: &'b [u8],
    start: usize,
    end: usize,
}

/// The headers before the first empty line.
fn headers(bytes: &[u8]) -> Result<Vec<Header<'_>>, String> {
    let mut all: Vec<Header<'_>> = Vec::new();
    let mut at = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let start = at;
        at += line.len();
        let line = line.strip_suffix(b"\n").ok_or("a header is cut off")?;
        match (line, all.last_mut()) {
            ([], _) => return Ok(all),
            ([b' ', ..], Some(last)) => {
                last.more = &bytes[last.start + last.name.len() + 1 + last.value.len()..at - 1];
                last.end = at;
            }
            _ => {
                let blank =
                    line.iter().position(|byte| *byte == b' ').ok_or("a header is empty")?;
                let (name, value) = (&line[..blank], &line[blank + 1..]);
                all.push(Header { name, value, more: b"", start, end: at });
            }
        }
    }
    // Git makes commits and tags without an empty line where there is no message.
    Ok(all)
}

fn id(value: &[u8]) -> Result<gix::ObjectId, String> {
    if value.len() != 40 {
        return Err("an id has another length than 40 digits".into());
    }
    gix::ObjectId::from_hex(value).map_err(|_| format!("{:?} is no id", text(value)))
}

/// The time of `NAME <MAIL> SECONDS ZONE`; 1970 if it is none.
fn time(value: &[u8]) -> i64 {
    let mut words = value.rsplit(|byte| *byte == b' ');
    let _zone = words.next();
    words.next().and_then(|it| std::str::from_utf8(it).ok()?.parse().ok()).unwrap_or(0)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().filter(|c| !c.is_control()).take(200).collect()
}
