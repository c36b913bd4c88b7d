//! Merge keys (`<<`): their values are written like any other, moved aside when complete, and join
//! their mapping when it ends, each member that the mapping does not state itself.
//!
//! Of a list of mappings the earlier one has precedence, as YAML says and kubectl does. A merge that
//! stands behind a key which it states too is refused: there YAML and kubectl differ.

use super::{Anchor, Frame, Writer, duplicate_key};
use crate::error::{Fault, ProblemCode};
use std::ops::Range;

/// A merge key of a mapping that is open.
pub(super) struct Merge {
    pub(super) line: u32,
    /// How many keys the mapping had stated before the merge key.
    pub(super) keys_before: usize,
    /// How many anchors were complete before it: the others are within its value.
    pub(super) anchors_before: usize,
    /// Where its value starts in `out`, while that is being written.
    pub(super) pending: Option<usize>,
    pub(super) value: Range<usize>,
}

impl Frame {
    pub(super) fn awaits_merge(&self) -> bool {
        matches!(&self.merge, Some(Merge { pending: Some(_), .. }))
    }
}

impl Writer {
    /// The key `<<`: its value joins the mapping.
    pub(crate) fn merge_key(&mut self, line: u32) -> Result<(), Fault> {
        let start = self.out.len();
        let path = self.path();
        let Some(frame) = self.frames.last_mut() else { return Ok(()) };
        if let Some(earlier) = &frame.merge {
            return Err(duplicate_key("<<", earlier.line, line).at(path));
        }
        frame.merge = Some(Merge {
            line,
            keys_before: frame.keys.len(),
            anchors_before: self.anchors.len(),
            pending: Some(start),
            value: 0..0,
        });
        Ok(())
    }

    /// If a merge value was just completed: takes it out of the text.
    pub(super) fn set_aside(&mut self) {
        let Some(Frame { merge: Some(merge), .. }) = self.frames.last_mut() else { return };
        let Some(start) = merge.pending.take() else { return };
        let moved = self.aside.len();
        merge.value = moved..moved + (self.out.len() - start);
        let within = self.anchors.iter_mut().skip(merge.anchors_before);
        for anchor in within.filter(|anchor| !anchor.aside) {
            let range = anchor.range.start - start..anchor.range.end - start;
            *anchor = Anchor { aside: true, range: moved + range.start..moved + range.end };
        }
        self.aside.extend_from_slice(self.out.get(start..).unwrap_or_default());
        self.out.truncate(start);
    }

    /// Appends the members of a merge value that the mapping does not state itself.
    pub(super) fn join(&mut self, frame: &mut Frame, merge: &Merge) -> Result<(), Fault> {
        let wrong = || {
            let message = "the value of the merge key << is neither a mapping nor a list of them";
            Fault::new(ProblemCode::Syntax, merge.line, message, "merge an alias of a mapping")
        };
        self.expand(merge.value.len(), merge.line)?;
        let text = self.aside.get(merge.value.clone()).unwrap_or_default().to_vec();
        let value = trimtab_json::parse(&text).map_err(|_| wrong())?;
        let mappings = match value {
            trimtab_json::Value::Array(items) => items,
            value => vec![value],
        };
        for mapping in &mappings {
            let members = mapping.as_object().ok_or_else(wrong)?;
            for (key, value) in members.iter() {
                let mut spelled = Vec::new();
                trimtab_json::write_string(key, &mut spelled);
                match frame.keys.find(&self.out, &spelled) {
                    None => {}
                    Some(position) if position < merge.keys_before => {
                        let line = frame.keys.line(position).unwrap_or(merge.line);
                        let message = format!(
                            "the key {key:?} of line {line} is followed by a merge that states it \
                             too; kubectl takes the merged value, YAML the other"
                        );
                        let remedy = "put << first in its mapping, or remove one of the two";
                        return Err(Fault::new(
                            ProblemCode::AmbiguousScalar,
                            merge.line,
                            message,
                            remedy,
                        ));
                    }
                    Some(_) => continue,
                }
                if frame.children > 0 {
                    self.out.push(b',');
                }
                frame.children += 1;
                let start = self.out.len();
                self.out.extend_from_slice(&spelled);
                let range = start..self.out.len();
                self.out.push(b':');
                trimtab_json::write(value, &mut self.out);
                // It cannot be there: that was looked up above.
                let _ = frame.keys.add(&self.out, range, merge.line);
            }
        }
        Ok(())
    }
}
