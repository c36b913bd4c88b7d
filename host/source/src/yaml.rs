//! YAML to JSON text: parser events in, one JSON text a document out, no tree in between.
//!
//! The events come from granit-parser, the layer below serde-saphyr: it says which scalars were
//! quoted and on which line each node stands, and resolves nothing itself. What an unquoted scalar
//! means is `scalar.rs`; the JSON text and its rules (keys once, depth, aliases) are `writer.rs`.
//!
//! Never guesses: what YAML readers read differently is refused with its line and field.

use crate::decode::{Document, too_many_documents};
use crate::error::{Fault, ProblemCode};
use crate::limits::{MAX_DEPTH, MAX_DOCUMENTS};
use crate::scalar::{Scalar, float_text, key_is_literal, resolve};
use crate::writer::Writer;
use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, Tag};

/// Reads all documents of a YAML text. Empty ones and those of comments alone are left out.
///
/// # Errors
/// The first fault of the text.
pub(crate) fn documents(text: &str) -> Result<Vec<Document>, Fault> {
    let mut options = granit_parser::options! {
        // As libyaml, and so kubectl, reads a block scalar that ends the file without a line feed.
        block_scalar_eof_without_line_feed: true,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    options.set_emit_comments(false);
    one_kind_of_line_end(text)?;
    let mut writer = Writer::new();
    let mut documents = Vec::new();
    for next in Parser::new_from_str_with_options(text, options) {
        let (event, span) = next.map_err(|fault| syntax(&fault))?;
        let line = line_of(&span);
        match event {
            Event::DocumentStart(..) => writer.start_document(),
            Event::DocumentEnd => {
                documents.extend(writer.end_document());
                if documents.len() > MAX_DOCUMENTS {
                    return Err(too_many_documents(line));
                }
            }
            // A document without content, not a document that says `null`.
            Event::Scalar(_, ScalarStyle::Plain, _, None)
                if span.is_empty() && writer.at_root() => {}
            Event::Scalar(text, style, anchor, tag) => {
                scalar(&mut writer, &text, style, tag.as_deref(), anchor, line)?;
            }
            Event::MappingStart(_, anchor, tag) => {
                collection_tag(tag.as_deref(), "map", line)?;
                writer.start_mapping(anchor, line)?;
            }
            Event::MappingEnd => writer.end_mapping()?,
            Event::SequenceStart(_, anchor, tag) => {
                collection_tag(tag.as_deref(), "seq", line)?;
                writer.start_sequence(anchor, line)?;
            }
            Event::SequenceEnd => writer.end_sequence()?,
            Event::Alias(anchor) => writer.alias(anchor, line)?,
            _ => {}
        }
    }
    Ok(documents)
}

/// YAML 1.1, and so kubectl, ends lines at these characters too; YAML 1.2 does not. What follows one
/// would be a comment to one reader and a key to the other.
fn one_kind_of_line_end(text: &str) -> Result<(), Fault> {
    let Some(at) = text.find(['\u{85}', '\u{2028}', '\u{2029}']) else {
        return Ok(());
    };
    let lines = text.bytes().take(at).filter(|byte| *byte == b'\n').count();
    let line = u32::try_from(lines).unwrap_or(u32::MAX).saturating_add(1);
    let message = "an invisible character (NEL, LS or PS) ends a line to some YAML readers only";
    let remedy = "remove it, or write it as \\N, \\L or \\P in double quotes";
    Err(Fault::new(ProblemCode::AmbiguousScalar, line, message, remedy))
}

fn scalar(
    writer: &mut Writer,
    text: &str,
    style: ScalarStyle,
    tag: Option<&Tag>,
    anchor: usize,
    line: u32,
) -> Result<(), Fault> {
    let meaning = meaning(text, style, tag, line)?;
    if writer.expects_key() {
        if text == "<<" && style == ScalarStyle::Plain && tag.is_none() {
            return writer.merge_key(line);
        }
        if !key_is_literal(text, &meaning) {
            return Err(key_fault(text, &meaning, line).at(writer.path()));
        }
        return writer.key(text, anchor, line);
    }
    let json = match meaning {
        Scalar::Text => return writer.string(text, anchor, line),
        Scalar::Null => "null".into(),
        Scalar::Bool(value) => value.to_string().into(),
        Scalar::Integer(digits) => digits,
        Scalar::Float(value) => float_text(value).into(),
        Scalar::NotFinite => {
            let message = format!("the number {text} has no place in JSON");
            let remedy = format!("write a finite number, or \"{text}\" for text");
            return Err(
                Fault::new(ProblemCode::Syntax, line, message, remedy).at(writer.path_of_value())
            );
        }
        Scalar::Ambiguous(value) => {
            let message = format!(
                "the unquoted word {text} is a boolean to some YAML readers and text to others"
            );
            let remedy = format!("write \"{text}\" for text, or {value} for the boolean");
            return Err(Fault::new(ProblemCode::AmbiguousScalar, line, message, remedy)
                .at(writer.path_of_value()));
        }
    };
    writer.literal(&json, anchor, line)
}

/// What a scalar means with its style and tag taken into account.
fn meaning<'t>(
    text: &'t str,
    style: ScalarStyle,
    tag: Option<&Tag>,
    line: u32,
) -> Result<Scalar<'t>, Fault> {
    let Some(tag) = tag else {
        return Ok(match style {
            ScalarStyle::Plain => resolve(text),
            _ => Scalar::Text,
        });
    };
    let name = tag_name(tag);
    let value = resolve(text);
    match (name.as_deref(), value) {
        (Some("" | "str"), _) => Ok(Scalar::Text),
        (Some("null"), value @ Scalar::Null)
        | (Some("bool"), value @ Scalar::Bool(_))
        | (Some("int"), value @ Scalar::Integer(_))
        | (Some("float"), value @ (Scalar::Integer(_) | Scalar::Float(_))) => Ok(value),
        // Here the tag says which of the two readings is meant.
        (Some("bool"), Scalar::Ambiguous(value)) => Ok(Scalar::Bool(value)),
        (Some(name @ ("null" | "bool" | "int" | "float")), _) => Err(Fault::new(
            ProblemCode::Syntax,
            line,
            format!("the value is tagged !!{name} and is none"),
            "correct the value, or remove the tag",
        )),
        (Some("binary"), _) => Err(Fault::new(
            ProblemCode::UnsupportedTag,
            line,
            "the tag !!binary asks to decode the value, which JSON cannot hold",
            "remove the tag: fields such as a Secret's data take the base64 text itself",
        )),
        _ => Err(unsupported(tag, line)),
    }
}

fn collection_tag(tag: Option<&Tag>, kind: &str, line: u32) -> Result<(), Fault> {
    match tag {
        None => Ok(()),
        Some(tag) if matches!(tag_name(tag).as_deref(), Some("")) => Ok(()),
        Some(tag) if tag_name(tag).as_deref() == Some(kind) => Ok(()),
        Some(tag) => Err(unsupported(tag, line)),
    }
}

/// The name of a tag of YAML's own; empty for the tag `!`, which says "as it is written".
fn tag_name(tag: &Tag) -> Option<String> {
    let (handle, suffix) = tag.parts();
    match format!("{handle}{suffix}").as_str() {
        "!" => Some(String::new()),
        full => full.strip_prefix("tag:yaml.org,2002:").map(str::to_owned),
    }
}

fn unsupported(tag: &Tag, line: u32) -> Fault {
    let message = format!("the tag {} has no meaning in a Kubernetes manifest", tag.original());
    Fault::new(ProblemCode::UnsupportedTag, line, message, "remove the tag")
}

fn key_fault(text: &str, meaning: &Scalar<'_>, line: u32) -> Fault {
    let (code, message) = match meaning {
        Scalar::Ambiguous(value) => (
            ProblemCode::AmbiguousScalar,
            format!("the unquoted key {text} is the key {value} to some YAML readers"),
        ),
        Scalar::Null => (ProblemCode::Syntax, "a key is empty or null".to_owned()),
        _ => (
            ProblemCode::AmbiguousScalar,
            format!("the unquoted key {text} is a number to YAML readers, which rewrite it"),
        ),
    };
    Fault::new(code, line, message, format!("write the key in quotes: \"{text}\":"))
}

fn syntax(fault: &ScanError) -> Fault {
    let line = u32::try_from(fault.marker().line()).unwrap_or(u32::MAX);
    let column = fault.marker().col() + 1;
    let (code, remedy) = match fault.kind() {
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabAtBlockScalarStart => (ProblemCode::Syntax, "indent with spaces, not tabs"),
        ErrorKind::UnknownAnchor => (
            ProblemCode::Syntax,
            "define the anchor (&name) before the alias, in the same document",
        ),
        ErrorKind::ExpectedDocumentStart => (
            ProblemCode::Syntax,
            "indent this line as the document's first key, or put --- between two documents",
        ),
        ErrorKind::BomInsideDocument => {
            (ProblemCode::Syntax, "remove the invisible byte order mark from this line")
        }
        ErrorKind::RecursionLimitExceeded => (ProblemCode::TooLarge, "nest less deeply"),
        ErrorKind::UnexpectedCharacter { character: '{' | '%' | '@' | '`' } => (
            ProblemCode::Syntax,
            "put the value in quotes; a template must be rendered before it is declared",
        ),
        _ => (ProblemCode::Syntax, "correct the YAML near this line"),
    };
    Fault::new(code, line, format!("not valid YAML: {}, column {column}", fault.info()), remedy)
}

fn line_of(span: &Span) -> u32 {
    u32::try_from(span.start.line()).unwrap_or(u32::MAX)
}
