//! How the story looks: numbered steps, and indented lines under each.

use std::time::{Duration, Instant};

/// Width of a line of words.
const WIDTH: usize = 96;

/// The teller: it knows which step it is at, and since when.
pub(crate) struct Tell {
    step: u32,
    start: Instant,
}

impl Tell {
    pub(crate) fn new() -> Self {
        Self { step: 0, start: Instant::now() }
    }

    /// A new step.
    pub(crate) fn step(&mut self, title: &str) {
        self.step += 1;
        println!("\n{:>2}. {title}", self.step);
    }

    /// Words, broken into lines.
    pub(crate) fn say(&self, words: impl AsRef<str>) {
        let mut line = String::new();
        for word in words.as_ref().split_whitespace() {
            if line.chars().count() + 1 + word.chars().count() > WIDTH && !line.is_empty() {
                println!("    {line}");
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        println!("    {line}");
    }

    /// Somebody else's lines, as they are.
    pub(crate) fn quote(&self, text: &str) {
        for line in text.lines() {
            println!("      | {line}");
        }
    }

    /// How long the story has taken.
    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}

/// A time as a person reads it.
pub(crate) fn time(duration: Duration) -> String {
    if duration < Duration::from_secs(10) {
        format!("{} ms", duration.as_millis())
    } else {
        format!("{:.1} s", duration.as_secs_f64())
    }
}
