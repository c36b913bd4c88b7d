//! Lines of the journal in words.

use crate::journal::{Event, Line, ObjectLine, OpinionLine, PassLine, ReviewLine};
use std::fmt::Write as _;

/// One line of the journal, for people: its own line first, details indented.
pub(super) fn told(line: &Line) -> String {
    let time = &line.time;
    match &line.event {
        Event::Pass(pass) => format!("{time}  {}", told_pass(pass)),
        Event::Intent(intent) => format!(
            "{time}  about to {} {}, as {} {} decided\n",
            intent.action.action,
            name(&intent.object),
            intent.plugin.name,
            intent.plugin.version
        ),
        Event::Prune(prune) => format!(
            "{time}  prune {} {}{}  (source {}, revision {})\n",
            prune.step.as_str(),
            name(&prune.object),
            if prune.message.is_empty() { String::new() } else { format!(": {}", prune.message) },
            prune.source,
            short(&prune.revision),
        ),
        Event::Review(review) => told_review(time, review),
        Event::Host(host) => format!("{time}  host {} {}\n", host.event, host.message),
        Event::Source(source) if source.problems.is_empty() => {
            format!("{time}  source {} at {}\n", source.source, short(&source.revision))
        }
        Event::Source(source) => {
            format!("{time}  source {} refused: {}\n", source.source, source.problems.join("; "))
        }
        Event::Log(log) => {
            format!("{time}  the audit log {} begins, signed by {}\n", log.log, log.key)
        }
        Event::Checkpoint(_) => format!("{time}  checkpoint of {} lines\n", line.seq),
        Event::Plugin(plugin) => {
            let colon = if plugin.message.is_empty() { "" } else { ": " };
            format!("{time}  plugin {} {}{colon}{}\n", plugin.file, plugin.event, plugin.message)
        }
    }
}

fn told_review(time: &str, review: &ReviewLine) -> String {
    let mut text = format!("{time}  {} {} as it enters", review.outcome, name(&review.object));
    if !review.message.is_empty() {
        let _ = write!(text, ": {}", review.message);
    }
    let _ = writeln!(
        text,
        "\n    declared in {} of {} at {}",
        review.origin,
        review.source,
        short(&review.revision)
    );
    if let Some(author) = &review.author {
        let _ = writeln!(text, "    written by {author}, according to the commit");
    }
    if !review.signers.is_empty() {
        let _ = writeln!(text, "    signed by {}", review.signers.join(", "));
    }
    for opinion in &review.reviews {
        let _ = writeln!(text, "    {}", told_opinion(opinion));
    }
    text
}

fn told_opinion(opinion: &OpinionLine) -> String {
    let OpinionLine { policy, mode, point, verdict, reasons, fault } = opinion;
    let mut text = format!(
        "policy {} {} {} ({mode}, {point}): {verdict}",
        policy.name,
        policy.version,
        short(&policy.digest)
    );
    for reason in reasons {
        let at = reason.path.as_ref().map(|path| format!(" at {path}")).unwrap_or_default();
        let _ = write!(text, "; {}{at}: {}", reason.control, reason.message);
    }
    if !fault.is_empty() {
        let _ = write!(text, "; it {fault}");
    }
    text
}

fn told_pass(pass: &PassLine) -> String {
    let mut text = format!("{} {}", pass.outcome, name(&pass.object));
    if let Some(ms) = pass.since_event_ms {
        let _ = write!(text, ", {ms:.0} ms after the event");
    }
    if !pass.message.is_empty() {
        let _ = write!(text, ": {}", pass.message);
    }
    text.push('\n');
    let mut detail = |line: String| {
        let _ = writeln!(text, "    {line}");
    };
    detail(format!("looked because of: {}", pass.trigger));
    for difference in &pass.differences {
        let value = |json: &Option<serde_json::Value>| {
            json.as_ref().map_or("absent".to_owned(), |json| shortened(&json.to_string()))
        };
        let path = if difference.path.is_empty() { "the object" } else { &difference.path };
        detail(format!(
            "{path} {}: live {}, declared {}",
            difference.kind,
            value(&difference.live),
            value(&difference.desired)
        ));
        for manager in &difference.managers {
            detail(format!("    {}: a hint, not a proof", manager.told()));
        }
    }
    for action in &pass.actions {
        let paths = if action.paths.is_empty() {
            String::new()
        } else {
            format!(" {}", action.paths.join(", "))
        };
        detail(format!("decided: {}{paths} ({})", action.action, pass.mode));
        for taken in &action.takes {
            detail(format!("    it takes {taken}"));
        }
    }
    for refusal in &pass.refusals {
        detail(format!("refused by the gate: {}: {}", refusal.reason, refusal.message));
    }
    for opinion in &pass.reviews {
        detail(told_opinion(opinion));
    }
    for finding in &pass.findings {
        detail(format!("finding {} ({}): {}", finding.name, finding.severity, finding.message));
    }
    detail(format!(
        "by plugin {} {} {}",
        pass.plugin.name,
        pass.plugin.version,
        short(&pass.plugin.digest)
    ));
    detail(format!("declared in {} of {} at {}", pass.origin, pass.source, short(&pass.revision)));
    text
}

/// `Deployment.apps shop/web`.
fn name(object: &ObjectLine) -> String {
    let kind = if object.group.is_empty() {
        object.kind.clone()
    } else {
        format!("{}.{}", object.kind, object.group)
    };
    if object.namespace.is_empty() {
        format!("{kind} {}", object.name)
    } else {
        format!("{kind} {}/{}", object.namespace, object.name)
    }
}

fn shortened(json: &str) -> String {
    const CHARS_AT_MOST: usize = 120;
    if json.chars().count() <= CHARS_AT_MOST {
        return json.to_owned();
    }
    json.chars().take(CHARS_AT_MOST).chain(['…']).collect()
}

fn short(digest: &str) -> &str {
    digest.get(..19).unwrap_or(digest)
}
