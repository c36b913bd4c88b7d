//! JSON texts: one document, or several behind one another as kubectl accepts them.
//!
//! A short scan finds where each document starts and on which lines the items of a List stand;
//! trimtab-json then reads each one strictly. Numbers are written on as kubectl writes them.

use crate::decode::{Document, too_many_documents};
use crate::error::{Fault, ProblemCode};
use crate::limits::MAX_DOCUMENTS;
use crate::scalar::json_number;
use trimtab_json::{ErrorKind, Value};

/// Reads all documents of a JSON text.
///
/// # Errors
/// The first fault of the text.
pub(crate) fn documents(text: &str) -> Result<Vec<Document>, Fault> {
    let bytes = text.as_bytes();
    let mut documents = Vec::new();
    let mut at = 0;
    let mut next_line = 1;
    while let Some(found) = next(bytes, at, next_line) {
        if documents.len() >= MAX_DOCUMENTS {
            return Err(too_many_documents(found.line));
        }
        let part = bytes.get(found.start..found.end).unwrap_or_default();
        let mut value = trimtab_json::parse(part).map_err(|fault| {
            let before = part.get(..fault.offset).unwrap_or(part);
            explain(&fault, found.line.saturating_add(newlines(before)))
        })?;
        numbers(&mut value).map_err(|number| {
            let message = format!("the number {number} exceeds 64-bit floating point");
            Fault::new(ProblemCode::Syntax, found.line, message, "write a smaller number")
        })?;
        let mut json = Vec::with_capacity(part.len());
        trimtab_json::write(&value, &mut json);
        let (line, item_lines) = (found.line, found.item_lines);
        documents.push(Document { line, json, item_lines, unquoted: Vec::new() });
        (at, next_line) = (found.end, line.saturating_add(newlines(part)));
    }
    Ok(documents)
}

/// Where one document lies.
struct Found {
    start: usize,
    end: usize,
    line: u32,
    item_lines: Vec<u32>,
}

/// Finds the document behind `at`; its end is the end of the text if its brackets do not close.
fn next(bytes: &[u8], at: usize, line: u32) -> Option<Found> {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let rest = bytes.get(at..)?;
    let start = at + rest.iter().position(|byte| !is_space(byte))?;
    let mut line = line.saturating_add(newlines(bytes.get(at..start).unwrap_or_default()));
    let mut found = Found { start, end: bytes.len(), line, item_lines: Vec::new() };
    let (mut depth, mut in_items, mut at) = (0usize, false, start);
    let mut last_string = 0..0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\n' => line = line.saturating_add(1),
            b'"' => {
                let end = string_end(bytes, at);
                if depth == 1 {
                    last_string = at..end;
                }
                at = end;
                continue;
            }
            b'{' | b'[' => {
                if depth == 1 {
                    in_items = bytes.get(last_string.clone()) == Some(b"\"items\"");
                } else if depth == 2 && in_items {
                    found.item_lines.push(line);
                }
                depth += 1;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    found.end = at + 1;
                    break;
                }
            }
            // A scalar document ends with its line; only its place in the message matters.
            _ if depth == 0 && is_space(byte) => {
                found.end = at;
                break;
            }
            _ => {}
        }
        at += 1;
    }
    Some(found)
}

/// The offset behind the string that starts at `at`.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while let Some(byte) = bytes.get(end) {
        match byte {
            b'"' => return end + 1,
            b'\\' => end += 2,
            _ => end += 1,
        }
    }
    bytes.len()
}

fn newlines(bytes: &[u8]) -> u32 {
    let count = bytes.iter().filter(|byte| **byte == b'\n').count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Rewrites numbers as kubectl sends them.
fn numbers(value: &mut Value<'_>) -> Result<(), String> {
    match value {
        Value::Number(text) => match json_number(text) {
            Some(std::borrow::Cow::Owned(rewritten)) => {
                *value = Value::Number(rewritten.into());
                Ok(())
            }
            Some(_) => Ok(()),
            None => Err(text.to_string()),
        },
        Value::Array(items) => items.iter_mut().try_for_each(numbers),
        Value::Object(object) => {
            let mut result = Ok(());
            object.retain(|_, value| {
                if result.is_ok() {
                    result = numbers(value);
                }
                true
            });
            result
        }
        _ => Ok(()),
    }
}

fn explain(fault: &trimtab_json::Error, line: u32) -> Fault {
    let (code, message, remedy) = match &fault.kind {
        ErrorKind::DuplicateKey(key) => (
            ProblemCode::DuplicateKey,
            format!("the key {key:?} is stated twice"),
            "remove one of the two",
        ),
        ErrorKind::TooDeep => (
            ProblemCode::TooLarge,
            format!("nested more than {} levels deep", trimtab_json::MAX_DEPTH),
            "nest less deeply",
        ),
        _ => (ProblemCode::Syntax, format!("not valid JSON: {fault}"), "correct the JSON here"),
    };
    Fault::new(code, line, message, remedy)
}
