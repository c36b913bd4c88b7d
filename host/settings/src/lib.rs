//! What people write for the host, read: texts in, values or one clear error out.
//!
//! [`grants`] are what an administrator allows each plugin, [`config`] says which sources a host
//! follows and what they are held to. Whatever a file says, nothing here
//! widens it: an unknown key, an impossible combination or half a set is an error with its place.

pub mod config;
pub mod grants;

/// Why a text is not what it should be: one line, with its place, and of the text nothing but what
/// is wrong in it.
fn unreadable(error: &serde_saphyr::Error, origin: &str, wanted: &str) -> String {
    let line = error.location().map(|location| format!(":{}", location.line()));
    let what = error.without_snippet().to_string();
    let what: String = what.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("{origin}{}: not {wanted}: {what}", line.unwrap_or_default())
}
