//! The keys that one mapping has stated so far, as ranges of the text being written.
//!
//! Small mappings are searched key by key, which allocates nothing; large ones through an index.

use std::collections::HashMap;
use std::ops::Range;

/// Mappings up to this size are searched key by key. Most objects of a manifest have under ten.
const SMALL: usize = 16;

#[derive(Default)]
pub(crate) struct Keys {
    stated: Vec<(Range<usize>, u32)>,
    index: HashMap<Box<[u8]>, usize>,
}

impl Keys {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.stated.len()
    }

    /// Adds the key that stands in `text` at `range` (as a JSON string), first seen on `line`.
    ///
    /// # Errors
    /// The line that stated it before.
    pub(crate) fn add(&mut self, text: &[u8], range: Range<usize>, line: u32) -> Result<(), u32> {
        let key = text.get(range.clone()).unwrap_or_default();
        if let Some(earlier) = self.find(text, key) {
            return Err(self.stated.get(earlier).map_or(line, |(_, line)| *line));
        }
        if self.stated.len() >= SMALL {
            if self.index.is_empty() {
                for (position, (range, _)) in self.stated.iter().enumerate() {
                    let key = text.get(range.clone()).unwrap_or_default();
                    self.index.insert(key.into(), position);
                }
            }
            self.index.insert(key.into(), self.stated.len());
        }
        self.stated.push((range, line));
        Ok(())
    }

    /// The position of a key (as a JSON string) in the order of the mapping.
    pub(crate) fn find(&self, text: &[u8], key: &[u8]) -> Option<usize> {
        if self.index.is_empty() {
            return self.stated.iter().position(|(range, _)| text.get(range.clone()) == Some(key));
        }
        self.index.get(key).copied()
    }

    /// The line of the key at a position.
    pub(crate) fn line(&self, position: usize) -> Option<u32> {
        self.stated.get(position).map(|(_, line)| *line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_stated_twice_names_the_first_line_in_small_and_large_mappings() {
        for count in [2, SMALL - 1, SMALL, SMALL + 1, 500] {
            let mut text = Vec::new();
            let mut keys = Keys::default();
            for number in 0..count {
                let start = text.len();
                text.extend_from_slice(format!("\"key{number}\"").as_bytes());
                assert_eq!(keys.add(&text, start..text.len(), number as u32 + 1), Ok(()));
            }
            let start = text.len();
            text.extend_from_slice(b"\"key1\"");
            assert_eq!(keys.add(&text, start..text.len(), 999), Err(2), "of {count}");
            assert_eq!(keys.find(&text, b"\"key0\""), Some(0));
            assert_eq!(keys.find(&text, b"\"other\""), None);
        }
    }
}
