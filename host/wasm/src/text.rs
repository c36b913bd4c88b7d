//! A guest's text made fit for a log or a message: bounded, and without control characters.

use std::fmt::Write;

/// At most `max` bytes of `text` (before escaping), with everything escaped that could forge a
/// line, move a cursor or reverse what a person reads.
pub(crate) fn printable(text: &str, max: usize) -> String {
    let end = (0..=max.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    let (kept, cut) = text.split_at(end);
    let mut out = String::with_capacity(kept.len());
    for character in kept.chars() {
        if misleads(character) {
            // Writing to a String cannot fail.
            let _ = write!(out, "{}", character.escape_default());
        } else {
            out.push(character);
        }
    }
    if !cut.is_empty() {
        let _ = write!(out, "… ({} more bytes)", cut.len());
    }
    out
}

/// Control characters, line and paragraph separators, and the marks that reorder text.
fn misleads(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_and_text_reordering_marks_are_escaped() {
        assert_eq!(printable("a\nb\u{1b}[31m\u{202e}c", 99), "a\\nb\\u{1b}[31m\\u{202e}c");
        assert_eq!(printable("größe", 99), "größe");
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        assert_eq!(printable("ööö", 3), "ö… (4 more bytes)");
        assert_eq!(printable("", 0), "");
    }
}
