//! The text form of a path, both ways.

use super::{Path, Step};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};
use core::str::FromStr;

/// Why a text is no path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathError {
    /// A path that is not empty begins with `/`.
    NoSlash,
    /// A `~` stands before something other than `0` to `5`.
    Escape,
    /// A step begins with `[` and is not `[key=value,…]` or `[=value]`.
    Bracket,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PathError::NoSlash => "a path begins with '/'",
            PathError::Escape => "'~' is written as '~0' in a path",
            PathError::Bracket => "a step in brackets is '[key=value]', '[k=v,k=v]' or '[=value]'",
        })
    }
}

impl core::error::Error for PathError {}

impl Path {
    /// Reads the text form.
    ///
    /// # Errors
    /// [`PathError`], for a text that [`Path`]'s table does not allow.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        if text.is_empty() {
            return Ok(Self::root());
        }
        let rest = text.strip_prefix('/').ok_or(PathError::NoSlash)?;
        rest.split('/').map(step).collect::<Result<Vec<Step>, _>>().map(Self::from)
    }
}

impl FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps().iter().try_for_each(|step| write!(f, "/{step}"))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Field(name) => match name.strip_prefix('[') {
                Some(rest) => {
                    f.write_str("~5")?;
                    escape(rest, "/", f)
                }
                None => escape(name, "/", f),
            },
            Step::Index(index) => write!(f, "{index}"),
            Step::Element(value) => {
                f.write_str("[=")?;
                escape(value, "/,]=", f)?;
                f.write_char(']')
            }
            Step::Keyed(keys) => {
                f.write_char('[')?;
                for (position, (name, value)) in keys.iter().enumerate() {
                    if position > 0 {
                        f.write_char(',')?;
                    }
                    escape(name, "/,]=", f)?;
                    f.write_char('=')?;
                    escape(value, "/,]=", f)?;
                }
                f.write_char(']')
            }
        }
    }
}

/// Writes `text` with `~` and the characters of `reserved` escaped.
fn escape(text: &str, reserved: &str, f: &mut impl Write) -> fmt::Result {
    for character in text.chars() {
        match character {
            '~' => f.write_str("~0")?,
            '/' => f.write_str("~1")?,
            ',' if reserved.contains(',') => f.write_str("~2")?,
            ']' if reserved.contains(']') => f.write_str("~3")?,
            '=' if reserved.contains('=') => f.write_str("~4")?,
            other => f.write_char(other)?,
        }
    }
    Ok(())
}

fn step(text: &str) -> Result<Step, PathError> {
    let Some(inner) = text.strip_prefix('[') else {
        return match index(text) {
            Some(index) => Ok(Step::Index(index)),
            None => unescape(text).map(Step::Field),
        };
    };
    let inner = inner.strip_suffix(']').ok_or(PathError::Bracket)?;
    let halves = |part: &str| -> Result<(String, String), PathError> {
        let (name, value) = part.split_once('=').ok_or(PathError::Bracket)?;
        if name.contains(']') || value.contains(']') || value.contains('=') {
            return Err(PathError::Bracket);
        }
        Ok((unescape(name)?, unescape(value)?))
    };
    if let Some(value) = inner.strip_prefix('=') {
        if value.contains([',', ']', '=']) {
            return Err(PathError::Bracket);
        }
        return unescape(value).map(Step::Element);
    }
    let keys: Vec<_> = inner.split(',').map(halves).collect::<Result<_, _>>()?;
    if keys.iter().any(|(name, _)| name.is_empty()) {
        return Err(PathError::Bracket);
    }
    Ok(Step::Keyed(keys))
}

/// A position as RFC 6901 writes it: digits without a leading zero.
fn index(text: &str) -> Option<usize> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let canonical = text == "0" || !text.starts_with('0');
    if digits && canonical { text.parse().ok() } else { None }
}

fn unescape(text: &str) -> Result<String, PathError> {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '~' {
            out.push(character);
            continue;
        }
        out.push(match characters.next() {
            Some('0') => '~',
            Some('1') => '/',
            Some('2') => ',',
            Some('3') => ']',
            Some('4') => '=',
            Some('5') => '[',
            _ => return Err(PathError::Escape),
        });
    }
    Ok(out)
}
