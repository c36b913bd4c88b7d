//! Bytes of one file to documents: JSON text and the line that each stands on.
//!
//! Knows nothing of Kubernetes, does no IO, needs no core. Start at [`documents`]; YAML is
//! `yaml.rs`, JSON is `json_text.rs`.

use crate::error::{Fault, ProblemCode};
use crate::limits::MAX_DOCUMENTS;
use crate::{json_text, yaml};

/// One document of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Document {
    /// Line of the document's first node, from 1.
    pub(crate) line: u32,
    /// The document as compact JSON text.
    pub(crate) json: Vec<u8>,
    /// The lines of the elements of a sequence under the root's key `items`, in their order.
    pub(crate) item_lines: Vec<u32>,
    /// Paths and lines of unquoted scalars in maps whose values are text in every kind.
    pub(crate) unquoted: Vec<(String, u32)>,
}

/// Reads all documents of a file. Documents without content are left out; a byte order mark is
/// skipped; line ends may be LF or CRLF.
///
/// What starts with a brace is read as JSON first, as kubectl does, and as YAML if it is none;
/// with the ending `.json` it must be JSON.
///
/// # Errors
/// The first fault of the file.
pub(crate) fn documents(name: &str, bytes: &[u8]) -> Result<Vec<Document>, Fault> {
    let text = std::str::from_utf8(bytes).map_err(|fault| {
        let before = bytes.get(..fault.valid_up_to()).unwrap_or_default();
        let lines = before.iter().filter(|byte| **byte == b'\n').count();
        let line = u32::try_from(lines).unwrap_or(u32::MAX).saturating_add(1);
        Fault::new(ProblemCode::Syntax, line, "not valid UTF-8", "save the file as UTF-8")
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if name.ends_with(".json") {
        return json_text::documents(text);
    }
    if text.trim_start().starts_with('{')
        && let Ok(documents) = json_text::documents(text)
    {
        return Ok(documents);
    }
    yaml::documents(text)
}

/// The refusal of a file with more than [`MAX_DOCUMENTS`].
pub(crate) fn too_many_documents(line: u32) -> Fault {
    let message = format!("the file has more than {MAX_DOCUMENTS} documents");
    Fault::new(ProblemCode::TooLarge, line, message, "split the file")
}

#[cfg(test)]
mod tests;
