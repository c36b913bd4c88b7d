//! Colours on a terminal.

use std::io::IsTerminal as _;

/// Whether to colour.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paint(bool);

/// What a colour says.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ink {
    Removed,
    Added,
    Place,
    Heading,
    Faint,
}

impl Paint {
    /// As asked for; see <https://no-color.org> for NO_COLOR.
    pub(super) fn new(choice: clap::ColorChoice) -> Self {
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        Self(match choice {
            clap::ColorChoice::Always => true,
            clap::ColorChoice::Never => false,
            clap::ColorChoice::Auto => std::io::stdout().is_terminal() && !is_set("NO_COLOR"),
        })
    }

    /// The text in a colour.
    pub(super) fn ink(self, ink: Ink, text: &str) -> String {
        if !self.0 {
            return text.to_owned();
        }
        let code = match ink {
            Ink::Removed => "31",
            Ink::Added => "32",
            Ink::Place => "36",
            Ink::Heading => "1",
            Ink::Faint => "2",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}
