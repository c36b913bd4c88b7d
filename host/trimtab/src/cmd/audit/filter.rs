//! Which lines of the audit log somebody wants to see.

use crate::journal::{Event, Line, ObjectLine};
use anyhow::Context as _;
use clap::Args;
use memchr::memmem::Finder;

/// Which lines. Several filters: all of them hold.
#[derive(Clone, Debug, Args)]
pub(super) struct FilterArgs {
    /// Lines about this object: KIND/NAME, where KIND may carry its group (Deployment.apps/web).
    object: Option<String>,
    /// Lines about objects in this namespace.
    #[arg(short, long)]
    namespace: Option<String>,
    /// Lines about objects of this kind; it may carry its group (Deployment.apps).
    #[arg(long)]
    kind: Option<String>,
    /// Lines about this source and its objects.
    #[arg(long)]
    source: Option<String>,
    /// Lines in which this plugin judged, or about it.
    #[arg(long)]
    plugin: Option<String>,
    /// Passes over differences that this field manager made, by managedFields.
    #[arg(long, value_name = "MANAGER")]
    actor: Option<String>,
    /// Passes that ended so, such as corrected or refused.
    #[arg(long)]
    outcome: Option<String>,
    /// Lines of this type: intent, pass, prune, host, source, plugin, checkpoint, log.
    #[arg(long = "type", value_name = "TYPE")]
    type_: Option<String>,
    /// Lines since then: RFC 3339, or how long ago (90s, 15m, 2h, 3d).
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Lines until then, likewise.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
}

/// The same, read.
#[derive(Clone, Debug, Default)]
pub(super) struct Filter {
    name: Option<String>,
    kind: Option<String>,
    namespace: Option<String>,
    source: Option<String>,
    plugin: Option<String>,
    actor: Option<String>,
    outcome: Option<String>,
    type_: Option<String>,
    since: Option<String>,
    until: Option<String>,
    /// Bytes that every line has that is wanted.
    needle: Option<Finder<'static>>,
}

impl FilterArgs {
    /// # Errors
    /// An object or a time that cannot be read.
    pub(super) fn read(&self) -> anyhow::Result<Filter> {
        let mut filter = match &self.object {
            Some(object) => Filter::object(object, None)?,
            None => Filter { kind: self.kind.clone(), ..Filter::default() },
        };
        anyhow::ensure!(
            self.object.is_none() || self.kind.is_none(),
            "--kind beside KIND/NAME: the kind is said twice"
        );
        let time = |text: &Option<String>| text.as_deref().map(time).transpose();
        (filter.since, filter.until) = (time(&self.since)?, time(&self.until)?);
        filter.namespace.clone_from(&self.namespace);
        filter.source.clone_from(&self.source);
        filter.plugin.clone_from(&self.plugin);
        filter.actor.clone_from(&self.actor);
        filter.outcome.clone_from(&self.outcome);
        filter.type_.clone_from(&self.type_);
        Ok(filter)
    }
}

impl Filter {
    /// Lines about one object.
    ///
    /// # Errors
    /// `object` is not KIND/NAME.
    pub(super) fn object(object: &str, namespace: Option<&str>) -> anyhow::Result<Self> {
        let (kind, name) = object
            .split_once('/')
            .filter(|(kind, name)| !kind.is_empty() && !name.is_empty())
            .with_context(|| format!("{object:?} is not KIND/NAME, such as Deployment/web"))?;
        let needle = format!("\"name\":{}", serde_json::Value::from(name));
        Ok(Self {
            name: Some(name.to_owned()),
            kind: Some(kind.to_owned()),
            namespace: namespace.map(str::to_owned),
            needle: Some(Finder::new(&needle).into_owned()),
            ..Self::default()
        })
    }

    /// False only if the line is not wanted: what spares parsing it.
    pub(super) fn may_match(&self, line: &[u8]) -> bool {
        self.needle.as_ref().is_none_or(|needle| needle.find(line).is_some())
    }

    pub(super) fn matches(&self, line: &Line) -> bool {
        let object = match &line.event {
            Event::Pass(pass) => Some(&pass.object),
            Event::Intent(intent) => Some(&intent.object),
            Event::Prune(prune) => Some(&prune.object),
            Event::Review(review) => Some(&review.object),
            _ => None,
        };
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        self.in_time(&line.time)
            && is(&self.type_, Some(type_of(&line.event)))
            && is(&self.name, object.map(|object| object.name.as_str()))
            && is(&self.namespace, object.map(|object| object.namespace.as_str()))
            && self.kind.as_ref().is_none_or(|kind| object.is_some_and(|it| is_kind(it, kind)))
            && is(&self.source, source_of(&line.event))
            && is(&self.plugin, plugin_of(&line.event))
            && is(&self.outcome, outcome_of(&line.event))
            && self.actor.as_ref().is_none_or(|actor| has_actor(&line.event, actor))
    }

    /// Times are RFC 3339 in UTC with milliseconds, all of one length: they compare as text.
    fn in_time(&self, time: &str) -> bool {
        self.since.as_deref().is_none_or(|since| time >= since)
            && self.until.as_deref().is_none_or(|until| time <= until)
    }
}

fn is_kind(object: &ObjectLine, kind: &str) -> bool {
    object.kind.eq_ignore_ascii_case(kind)
        || format!("{}.{}", object.kind, object.group).eq_ignore_ascii_case(kind)
}

fn type_of(event: &Event) -> &'static str {
    match event {
        Event::Log(_) => "log",
        Event::Checkpoint(_) => "checkpoint",
        Event::Intent(_) => "intent",
        Event::Pass(_) => "pass",
        Event::Host(_) => "host",
        Event::Source(_) => "source",
        Event::Plugin(_) => "plugin",
        Event::Prune(_) => "prune",
        Event::Review(_) => "review",
    }
}

fn source_of(event: &Event) -> Option<&str> {
    match event {
        Event::Pass(pass) => Some(&pass.source),
        Event::Source(source) => Some(&source.source),
        Event::Prune(prune) => Some(&prune.source),
        Event::Review(review) => Some(&review.source),
        _ => None,
    }
}

fn plugin_of(event: &Event) -> Option<&str> {
    match event {
        Event::Pass(pass) => Some(&pass.plugin.name),
        Event::Intent(intent) => Some(&intent.plugin.name),
        Event::Plugin(plugin) => plugin.plugin.as_ref().map(|plugin| plugin.name.as_str()),
        _ => None,
    }
}

fn outcome_of(event: &Event) -> Option<&str> {
    match event {
        Event::Pass(pass) => Some(&pass.outcome),
        Event::Review(review) => Some(&review.outcome),
        _ => None,
    }
}

fn has_actor(event: &Event, actor: &str) -> bool {
    let Event::Pass(pass) = event else { return false };
    pass.differences
        .iter()
        .flat_map(|difference| &difference.managers)
        .any(|manager| manager.name == actor)
}

/// A moment, as lines have it.
fn time(text: &str) -> anyhow::Result<String> {
    let wrong = || {
        format!(
            "{text:?} is no time: give RFC 3339 (2026-01-02T03:04:05Z), or how long ago (90s, 15m, 2h, 3d)"
        )
    };
    if let Ok(at) = text.parse::<jiff::Timestamp>() {
        let ms = u64::try_from(at.as_millisecond()).ok().with_context(wrong)?;
        return Ok(crate::timestamp::rfc3339(ms));
    }
    let unit = text.chars().last().with_context(wrong)?;
    let ms = match unit {
        's' => 1_000,
        'm' => 60_000,
        'h' => 3_600_000,
        'd' => 86_400_000_u64,
        _ => anyhow::bail!(wrong()),
    };
    let number: u64 = text[..text.len() - 1].parse().ok().with_context(wrong)?;
    let ago = number.checked_mul(ms).with_context(wrong)?;
    Ok(crate::timestamp::rfc3339(crate::timestamp::now_ms().saturating_sub(ago)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_moment_or_how_long_ago() {
        assert_eq!(time("2026-01-02T03:04:05Z").unwrap(), "2026-01-02T03:04:05.000Z");
        assert_eq!(time("2026-01-02T04:04:05+01:00").unwrap(), "2026-01-02T03:04:05.000Z");
        assert!(time("2h").unwrap() < crate::timestamp::rfc3339(crate::timestamp::now_ms()));
        for wrong in ["", "h", "2", "2w", "yesterday", "é"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_object_is_found_by_kind_with_or_without_its_group() {
        let object = ObjectLine {
            group: "apps".into(),
            kind: "Deployment".into(),
            namespace: "shop".into(),
            name: "web".into(),
        };
        for (kind, is) in [("deployment", true), ("Deployment.apps", true), ("Deployment.x", false)]
        {
            assert_eq!(is_kind(&object, kind), is, "{kind}");
        }
        for wrong in ["web", "/web", "Deployment/"] {
            assert!(Filter::object(wrong, None).is_err(), "{wrong}");
        }
    }
}
