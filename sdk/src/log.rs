//! Lines for the host's log. The host bounds them in number and size, escapes control characters,
//! and names the plugin and the object beside them. Natively they go to standard error.

/// How important a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// For the plugin's author.
    Debug,
    /// Good to know.
    Info,
    /// Someone should look.
    Warn,
    /// Something is wrong.
    Error,
}

/// Writes a line for the plugin's author.
pub fn debug(line: impl AsRef<str>) {
    write(Level::Debug, line.as_ref());
}

/// Writes a line that is good to know.
pub fn info(line: impl AsRef<str>) {
    write(Level::Info, line.as_ref());
}

/// Writes a line that someone should look at.
pub fn warn(line: impl AsRef<str>) {
    write(Level::Warn, line.as_ref());
}

/// Writes a line about something wrong.
pub fn error(line: impl AsRef<str>) {
    write(Level::Error, line.as_ref());
}

/// Writes one line.
pub fn write(level: Level, line: &str) {
    #[cfg(target_arch = "wasm32")]
    crate::guest::log(level, line);
    #[cfg(not(target_arch = "wasm32"))]
    eprintln!("{level:?}: {line}");
}
