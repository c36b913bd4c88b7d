//! The JSON text of one YAML document while it grows: keys stated once, depth and alias limits,
//! anchors, merge keys, and the path to the node at hand for messages.
//!
//! An anchor is the range that its node takes in the text already written, so an alias is a copy of
//! bytes. The value of a merge key is written, then moved aside, and joins its mapping at the end.

mod merge;

use crate::decode::Document;
use crate::error::{Fault, ProblemCode};
use crate::keys::Keys;
use crate::limits::{MAX_ALIAS_BYTES, MAX_DEPTH};
use merge::Merge;
use std::collections::HashMap;
use std::ops::Range;

pub(crate) struct Writer {
    out: Vec<u8>,
    /// Values of merge keys, which are not part of `out`.
    aside: Vec<u8>,
    frames: Vec<Frame>,
    /// In the order in which their nodes ended.
    anchors: Vec<Anchor>,
    /// By the parser's number, the position in `anchors`.
    anchor_of: HashMap<usize, usize>,
    /// Bytes that aliases and merges have added, over all documents of the text.
    expanded: usize,
    line: u32,
    item_lines: Vec<u32>,
    unquoted: Vec<(String, u32)>,
}

/// Maps whose values are text in every kind (or in ConfigMaps and Secrets): an unquoted number in
/// them is the commonest mistake, and its message should name the line.
const TEXT_MAPS: [&[u8]; 5] =
    [b"\"labels\"", b"\"annotations\"", b"\"data\"", b"\"binaryData\"", b"\"stringData\""];

/// How deep such a map may lie: `items`, an item, its `metadata`. Schemas of CRDs lie deeper.
const TEXT_MAP_DEPTH: usize = 5;

#[derive(Clone)]
struct Anchor {
    aside: bool,
    range: Range<usize>,
}

struct Frame {
    is_mapping: bool,
    start: usize,
    anchor: usize,
    children: usize,
    keys: Keys,
    /// The current key as a JSON string within `out`, while its value is awaited.
    key: Option<Range<usize>>,
    /// The value of the member `name`, if it was a string: it makes paths readable.
    name: Option<Range<usize>>,
    merge: Option<Merge>,
}

impl Writer {
    pub(crate) fn new() -> Self {
        Self {
            out: Vec::new(),
            aside: Vec::new(),
            frames: Vec::new(),
            anchors: Vec::new(),
            anchor_of: HashMap::new(),
            expanded: 0,
            line: 0,
            item_lines: Vec::new(),
            unquoted: Vec::new(),
        }
    }

    pub(crate) fn start_document(&mut self) {
        self.out = Vec::new();
        self.aside.clear();
        self.frames.clear();
        self.anchors.clear();
        self.anchor_of.clear();
        self.item_lines = Vec::new();
        self.unquoted = Vec::new();
    }

    /// The document, unless nothing was written.
    pub(crate) fn end_document(&mut self) -> Option<Document> {
        if self.out.is_empty() {
            return None;
        }
        Some(Document {
            line: self.line,
            json: std::mem::take(&mut self.out),
            item_lines: std::mem::take(&mut self.item_lines),
            unquoted: std::mem::take(&mut self.unquoted),
        })
    }

    /// Whether the next node is the document itself.
    pub(crate) fn at_root(&self) -> bool {
        self.frames.is_empty()
    }

    /// Whether the next node is a mapping's key.
    pub(crate) fn expects_key(&self) -> bool {
        self.frames
            .last()
            .is_some_and(|frame| frame.is_mapping && frame.key.is_none() && !frame.awaits_merge())
    }

    pub(crate) fn key(&mut self, text: &str, anchor: usize, line: u32) -> Result<(), Fault> {
        let start = self.separate();
        trimtab_json::write_string(text, &mut self.out);
        let range = start..self.out.len();
        self.out.push(b':');
        if anchor > 0 {
            self.name_anchor(anchor, range.clone());
        }
        let Some(frame) = self.frames.last_mut() else { return Ok(()) };
        if let Err(earlier) = frame.keys.add(&self.out, range.clone(), line) {
            return Err(duplicate_key(text, earlier, line).at(self.path()));
        }
        frame.key = Some(range);
        Ok(())
    }

    pub(crate) fn string(&mut self, text: &str, anchor: usize, line: u32) -> Result<(), Fault> {
        let start = self.start_value(line)?;
        trimtab_json::write_string(text, &mut self.out);
        if let Some(frame) = self.frames.last_mut()
            && frame.is_mapping
            && frame.key.clone().and_then(|key| self.out.get(key)) == Some(b"\"name\"")
        {
            frame.name = Some(start..self.out.len());
        }
        self.end_value(start, anchor)
    }

    /// A number, `true`, `false` or `null`.
    pub(crate) fn literal(&mut self, json: &str, anchor: usize, line: u32) -> Result<(), Fault> {
        if let [.., map, values] = self.frames.as_slice()
            && self.frames.len() <= TEXT_MAP_DEPTH
            && values.is_mapping
            && let Some(name) = map.key.clone().and_then(|key| self.out.get(key))
            && TEXT_MAPS.contains(&name)
        {
            self.unquoted.push((self.path_of_value(), line));
        }
        let start = self.start_value(line)?;
        self.out.extend_from_slice(json.as_bytes());
        self.end_value(start, anchor)
    }

    pub(crate) fn start_mapping(&mut self, anchor: usize, line: u32) -> Result<(), Fault> {
        self.start_collection(true, anchor, line)
    }

    pub(crate) fn start_sequence(&mut self, anchor: usize, line: u32) -> Result<(), Fault> {
        self.start_collection(false, anchor, line)
    }

    pub(crate) fn end_sequence(&mut self) -> Result<(), Fault> {
        let Some(frame) = self.frames.pop() else { return Ok(()) };
        self.out.push(b']');
        self.end_value(frame.start, frame.anchor)
    }

    pub(crate) fn end_mapping(&mut self) -> Result<(), Fault> {
        let path = match self.frames.last() {
            Some(Frame { merge: Some(_), .. }) => self.path(),
            _ => String::new(),
        };
        let Some(mut frame) = self.frames.pop() else { return Ok(()) };
        if let Some(merge) = frame.merge.take() {
            self.join(&mut frame, &merge).map_err(|fault| fault.at(path))?;
        }
        self.out.push(b'}');
        self.end_value(frame.start, frame.anchor)
    }

    pub(crate) fn alias(&mut self, anchor: usize, line: u32) -> Result<(), Fault> {
        let Some(Anchor { aside, range }) = self.anchor(anchor) else {
            let message = "the alias stands within the node that it names";
            let remedy = "write the value out instead of the alias";
            return Err(
                Fault::new(ProblemCode::Syntax, line, message, remedy).at(self.path_of_value())
            );
        };
        if self.expects_key() {
            let key = self.out.get(range).map(trimtab_json::parse);
            return match key {
                Some(Ok(trimtab_json::Value::String(text))) if !aside => {
                    let text = text.into_owned();
                    self.key(&text, 0, line)
                }
                _ => Err(complex_key(line).at(self.path())),
            };
        }
        self.expand(range.len(), line)?;
        let start = self.start_value(line)?;
        if aside {
            self.out.extend_from_slice(self.aside.get(range).unwrap_or_default());
        } else {
            self.out.extend_from_within(range);
        }
        self.end_value(start, 0)
    }

    /// The path of the mapping or sequence that is open.
    pub(crate) fn path(&self) -> String {
        self.path_to(self.frames.len().saturating_sub(1))
    }

    /// The path of the value that comes next.
    pub(crate) fn path_of_value(&self) -> String {
        self.path_to(self.frames.len())
    }

    /// The steps that the outermost `count` open collections are at.
    fn path_to(&self, count: usize) -> String {
        let mut path = String::new();
        for (position, frame) in self.frames.iter().take(count).enumerate() {
            path.push('/');
            let key = frame.key.clone().and_then(|key| self.out.get(key));
            if frame.is_mapping {
                match key.map(trimtab_json::parse) {
                    Some(Ok(trimtab_json::Value::String(key))) => {
                        path.push_str(&key.replace('~', "~0").replace('/', "~1"));
                    }
                    _ => path.push_str("<<"),
                }
                continue;
            }
            let child = self.frames.get(position + 1);
            let name = child.and_then(|child| self.out.get(child.name.clone()?));
            match name.map(trimtab_json::parse) {
                Some(Ok(trimtab_json::Value::String(name)))
                    if !name.contains(['/', ']', '~', ',']) =>
                {
                    path.push_str(&format!("[name={name}]"));
                }
                // The innermost sequence has not counted the value to come.
                _ => path.push_str(&(frame.children - usize::from(child.is_some())).to_string()),
            }
        }
        path
    }

    fn start_collection(
        &mut self,
        is_mapping: bool,
        anchor: usize,
        line: u32,
    ) -> Result<(), Fault> {
        if self.expects_key() {
            return Err(complex_key(line).at(self.path()));
        }
        let start = self.start_value(line)?;
        if self.frames.len() >= MAX_DEPTH {
            let message = format!("nested more than {MAX_DEPTH} levels deep");
            return Err(Fault::new(ProblemCode::TooLarge, line, message, "nest less deeply"));
        }
        self.out.push(if is_mapping { b'{' } else { b'[' });
        self.frames.push(Frame {
            is_mapping,
            start,
            anchor,
            children: 0,
            keys: Keys::default(),
            key: None,
            name: None,
            merge: None,
        });
        Ok(())
    }

    /// Where the next value starts.
    fn start_value(&mut self, line: u32) -> Result<usize, Fault> {
        match self.frames.as_slice() {
            [] => self.line = line,
            [root, items]
                if !items.is_mapping
                    && root.key.clone().and_then(|key| self.out.get(key)) == Some(b"\"items\"") =>
            {
                self.item_lines.push(line);
            }
            _ => {}
        }
        Ok(match self.frames.last() {
            Some(frame) if !frame.is_mapping => self.separate(),
            _ => self.out.len(),
        })
    }

    /// Writes a comma where a member came before; gives where the next one starts.
    fn separate(&mut self) -> usize {
        if let Some(frame) = self.frames.last_mut() {
            if frame.children > 0 {
                self.out.push(b',');
            }
            frame.children += 1;
        }
        self.out.len()
    }

    fn end_value(&mut self, start: usize, anchor: usize) -> Result<(), Fault> {
        if anchor > 0 {
            let range = start..self.out.len();
            self.name_anchor(anchor, range);
        }
        let Some(frame) = self.frames.last_mut() else { return Ok(()) };
        if !frame.is_mapping || frame.key.take().is_some() {
            return Ok(());
        }
        self.set_aside();
        Ok(())
    }

    fn name_anchor(&mut self, anchor: usize, range: Range<usize>) {
        self.anchor_of.insert(anchor, self.anchors.len());
        self.anchors.push(Anchor { aside: false, range });
    }

    /// What an anchor names; `None` while its node is not complete.
    fn anchor(&self, anchor: usize) -> Option<Anchor> {
        self.anchors.get(*self.anchor_of.get(&anchor)?).cloned()
    }

    fn expand(&mut self, bytes: usize, line: u32) -> Result<(), Fault> {
        self.expanded = self.expanded.saturating_add(bytes);
        if self.expanded <= MAX_ALIAS_BYTES {
            return Ok(());
        }
        let message =
            format!("the aliases of this file expand to more than {MAX_ALIAS_BYTES} bytes");
        Err(Fault::new(ProblemCode::TooLarge, line, message, "write the values out"))
    }
}

fn duplicate_key(key: &str, earlier: u32, line: u32) -> Fault {
    let message = format!("the key {key:?} is stated twice, first on line {earlier}");
    Fault::new(ProblemCode::DuplicateKey, line, message, "remove one of the two")
}

fn complex_key(line: u32) -> Fault {
    let message = "a key is a mapping, a list or the alias of something that is no text";
    let remedy =
        "write the key as text; a template ({{ … }}) must be rendered before it is declared";
    Fault::new(ProblemCode::Syntax, line, message, remedy)
}
