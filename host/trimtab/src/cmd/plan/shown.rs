//! A plan for people: on a terminal, and as a comment on a pull request.

use super::made::{Item, Made};
use crate::journal::DifferenceLine;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Characters of one comment: forges take 65,536.
const MARKDOWN_CHARS_AT_MOST: usize = 60_000;
/// Characters of one value: a longer one says nothing more in a plan.
const VALUE_CHARS_AT_MOST: usize = 400;

pub(super) fn table(plan: &Made) -> String {
    let mut text = String::new();
    for source in &plan.sources {
        let _ = write!(text, "source {} at {}", source.name, source.revision);
        for (word, what) in [("by", &source.author), ("signed by", &source.signer)] {
            if let Some(what) = what {
                let _ = write!(text, ", {word} {what}");
            }
        }
        text.push('\n');
        if let Some(subject) = &source.subject {
            let _ = writeln!(text, "  {subject}");
        }
        if let Some(why) = &source.would_be_refused {
            let _ = writeln!(text, "  would be refused: {why}");
        }
    }
    for change in &plan.changes {
        let _ = writeln!(text, "{}", heading(change));
        for difference in &change.differences {
            let _ = writeln!(text, "    {} {}", place(difference), difference.kind);
            let _ = writeln!(text, "      - live     {}", value(&difference.live));
            let _ = writeln!(text, "      + desired  {}", value(&difference.desired));
            for manager in &difference.managers {
                let _ = writeln!(text, "      {}", manager.told());
            }
        }
        for taken in &change.takes {
            let _ = writeln!(text, "    it takes {taken}");
        }
    }
    for error in &plan.errors {
        let _ = writeln!(text, "error {error}");
    }
    let _ = writeln!(text, "{}", counts(plan));
    let _ = writeln!(text, "plan {}", plan.digest);
    text
}

fn heading(change: &Item) -> String {
    let mut text = format!("{} {}", change.action, change.object);
    if !change.origin.is_empty() {
        let _ = write!(text, " ({})", change.origin);
    }
    for (word, what) in [
        ("", &change.reason),
        ("not written: ", &change.not_written),
        ("waits for a person: ", &change.approval),
    ] {
        if !what.is_empty() {
            let _ = write!(text, ": {word}{what}");
        }
    }
    text
}

fn counts(plan: &Made) -> String {
    let mut by_action: BTreeMap<&str, usize> = BTreeMap::new();
    for change in &plan.changes {
        *by_action.entry(&change.action).or_default() += 1;
    }
    let mut words: Vec<String> =
        by_action.iter().map(|(action, count)| format!("{count} {action}")).collect();
    words.push(format!("{} as declared", plan.in_sync));
    words.join(", ")
}

fn place(difference: &DifferenceLine) -> &str {
    if difference.path.is_empty() { "(the object)" } else { &difference.path }
}

fn value(json: &Option<serde_json::Value>) -> String {
    let Some(json) = json else { return "absent".into() };
    let text = json.to_string();
    match text.chars().count() > VALUE_CHARS_AT_MOST {
        true => text.chars().take(VALUE_CHARS_AT_MOST).chain(['…']).collect(),
        false => text,
    }
}

pub(super) fn markdown(plan: &Made) -> String {
    let mut text = format!("### Trimtab plan: {}\n\n", counts(plan));
    for source in &plan.sources {
        let _ = writeln!(text, "- source `{}` at `{}`", code(&source.name), code(&source.revision));
        if let Some(why) = &source.would_be_refused {
            let _ = writeln!(text, "  - **would be refused**: {}", escaped(why));
        }
    }
    for error in &plan.errors {
        let _ = writeln!(text, "- **error** {}", escaped(error));
    }
    let end = format!("\nPlan `{}`\n", plan.digest);
    let mut left_out = 0;
    for change in &plan.changes {
        let section = section(change);
        let room = MARKDOWN_CHARS_AT_MOST.saturating_sub(end.chars().count() + 200);
        if left_out > 0 || text.chars().count() + section.chars().count() > room {
            left_out += 1;
            continue;
        }
        text.push_str(&section);
    }
    if left_out > 0 {
        let _ = writeln!(text, "\n{left_out} more are left out here: `trimtab plan` shows them.");
    }
    text + &end
}

fn section(change: &Item) -> String {
    let mut text = format!("\n<details><summary>{}</summary>\n\n", escaped(&heading(change)));
    if !change.differences.is_empty() {
        let mut lines = String::new();
        for difference in &change.differences {
            let _ = writeln!(lines, "  {}", place(difference));
            let _ = writeln!(lines, "- {}", value(&difference.live));
            let _ = writeln!(lines, "+ {}", value(&difference.desired));
        }
        let fence = fence(&lines);
        let _ = writeln!(text, "{fence}diff\n{lines}{fence}");
    }
    for taken in &change.takes {
        let _ = writeln!(text, "- it takes {}", escaped(taken));
    }
    text.push_str("\n</details>\n");
    text
}

/// Backticks that nothing in the text ends.
fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

fn code(text: &str) -> String {
    text.replace('`', "'")
}

/// Text that a forge shows as it is.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\n' | '\r' => out.push(' '),
            '*' | '_' | '`' | '[' | ']' | '#' | '|' | '@' | '!' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cannot_end_its_block_and_a_name_cannot_speak_markdown() {
        assert_eq!(fence("a ```` b"), "`````");
        assert_eq!(fence("plain"), "```");
        assert_eq!(escaped("<b>*x* @team\n"), "&lt;b&gt;\\*x\\* \\@team ");
    }
}
