//! Fights: somebody undoes the same correction again and again, and each of us writes for ever.
//!
//! Takes the records of one object's passes. Once the same differences (paths and values, under
//! one desired state) were corrected [`ROUNDS`] times within [`WINDOW`], they stand off: for
//! [`PAUSE`] they are told and not corrected. Then one more correction is tried, and where it is
//! undone too, the next pause begins at once.
//!
//! Making an object anew counts for more, since it destroys; and the UID does not count, since
//! every such round has another.
//!
//! A plugin that corrects what it wrote itself, with nobody in between, contradicts itself: it has
//! [`OWN_ROUNDS`], whatever the differences are, and then the object is left as it is for as long.

use crate::decision::{ActionKind, Difference};
use crate::gate::Planned;
use crate::identity::Digest;
use crate::record::{Outcome, Record};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Corrections of the same differences that make a fight.
pub const ROUNDS: usize = 10;
/// How many of them making the object anew counts for.
const RECREATION: usize = 4;
/// Corrections of an object that stands as our own last write left it: one may be a plugin's second
/// step, and a third has no end.
pub const OWN_ROUNDS: usize = 3;
/// Within this time.
pub const WINDOW: Duration = Duration::from_secs(600);
/// How long we stay out of it.
pub const PAUSE: Duration = Duration::from_secs(600);

/// A fight that goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standoff {
    /// What it is about.
    pub over: Over,
    /// Until when it is not corrected, in milliseconds since the Unix epoch.
    pub until_ms: u64,
}

/// What a fight is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Over {
    /// These differences, by [`signature`].
    Differences(Digest),
    /// Whatever differs while the object is at this resourceVersion, which we wrote, under this
    /// desired state: another one is somebody's word.
    OwnWrite(Arc<str>, Digest),
}

impl Standoff {
    /// Whether what a pass found is what the fight is about.
    pub(crate) fn concerns(&self, record: &Record) -> bool {
        match &self.over {
            Over::Differences(digest) => *digest == signature(record),
            Over::OwnWrite(version, desired) => {
                record.live_resource_version.as_ref() == Some(version)
                    && record.desired_digest == *desired
            }
        }
    }
}

/// How a fight went until now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// Corrections.
    pub count: usize,
    /// The first of them, in milliseconds since the Unix epoch.
    pub first_ms: u64,
    /// The last.
    pub last_ms: u64,
}

/// What is remembered of one object's corrections.
#[derive(Clone, Debug, Default)]
pub struct Fights {
    over: Option<Digest>,
    corrections: VecDeque<u64>,
    until_ms: u64,
    own: Own,
}

/// Corrections of our own last write.
#[derive(Clone, Debug, Default)]
struct Own {
    /// The resourceVersion that it left.
    left: Option<Arc<str>>,
    /// The desired state that it was for: what another revision changes is no contradiction.
    desired: Option<Digest>,
    rounds: usize,
    until_ms: u64,
}

impl Fights {
    /// Takes up a pass that ended.
    pub fn ended(&mut self, record: &Record) {
        self.own.ended(record);
        let recreates = |planned: &Planned| planned.action == ActionKind::Recreate;
        let rounds = match &record.outcome {
            _ if record.after.is_some() && record.planned.iter().any(recreates) => RECREATION,
            Outcome::Corrected => 1,
            _ => return,
        };
        let over = signature(record);
        let now = record.at_ms;
        let settled = self.until_ms != 0 && now > self.until_ms + millis(WINDOW);
        if self.over != Some(over) || settled {
            let own = std::mem::take(&mut self.own);
            *self = Self { over: Some(over), own, ..Self::default() };
        }
        self.corrections.extend(std::iter::repeat_n(now, rounds));
        if self.until_ms == 0 {
            self.corrections.retain(|at| at + millis(WINDOW) >= now);
        }
        while self.corrections.len() > ROUNDS {
            self.corrections.pop_front();
        }
        if self.corrections.len() == ROUNDS {
            self.until_ms = now + millis(PAUSE);
        }
    }

    /// How often the last differences were corrected, where they were more than once.
    pub fn rounds(&self) -> Option<Rounds> {
        let (first_ms, last_ms) = (*self.corrections.front()?, *self.corrections.back()?);
        let count = self.corrections.len();
        (count > 1).then_some(Rounds { count, first_ms, last_ms })
    }

    /// The fight that goes on, if one does.
    pub fn standoff(&self, now_ms: u64) -> Option<Standoff> {
        let stands =
            |over: Over, until_ms: u64| (now_ms < until_ms).then_some(Standoff { over, until_ms });
        let own = self.own.left.clone().zip(self.own.desired);
        let own = own.map(|(version, desired)| Over::OwnWrite(version, desired));
        own.and_then(|over| stands(over, self.own.until_ms))
            .or_else(|| stands(Over::Differences(self.over?), self.until_ms))
    }
}

impl Own {
    fn ended(&mut self, record: &Record) {
        if record.outcome != Outcome::Corrected {
            return;
        }
        let ours = self.left.is_some()
            && record.live_resource_version == self.left
            && self.desired == Some(record.desired_digest);
        // Once it stood off, one attempt is enough to see that it goes on.
        self.rounds = if ours { (self.rounds + 1).min(OWN_ROUNDS) } else { 0 };
        self.left = record.written().map(|object| object.resource_version);
        self.desired = Some(record.desired_digest);
        if self.rounds == OWN_ROUNDS {
            self.until_ms = record.at_ms + millis(PAUSE);
        }
    }
}

/// What a pass's differences are: what the object should be, and what it is instead.
pub fn signature(record: &Record) -> Digest {
    let mut text = record.desired_digest.to_string();
    for difference in &record.differences {
        text.push('\0');
        text.push_str(&difference.path);
        text.push('\0');
        text.push_str(&String::from_utf8_lossy(difference.live.as_deref().unwrap_or_default()));
    }
    Digest::of(text.as_bytes())
}

/// Who fights and over what, in words that stay the same while it goes on.
pub(crate) fn reason(over: &Over, differences: &[Difference]) -> String {
    let paths: Vec<&str> = differences.iter().map(|each| each.path.as_str()).collect();
    if let Over::OwnWrite(..) = over {
        return format!(
            "{} was corrected {OWN_ROUNDS} times over what the plugin had written itself, and nobody else wrote in between: the plugin contradicts itself; the object is left as it is for {} minutes, or until somebody changes it",
            paths.join(", "),
            PAUSE.as_secs() / 60,
        );
    }
    let mut others: Vec<&str> = differences
        .iter()
        .flat_map(|each| &each.managers)
        .filter(|manager| !manager.is_ours())
        .map(|manager| manager.name.as_str())
        .collect();
    others.sort_unstable();
    others.dedup();
    let others = match others.is_empty() {
        true => "somebody whom managedFields do not tell".to_owned(),
        false => format!("{}, according to managedFields", others.join(", ")),
    };
    format!(
        "{} was corrected again and again within {} minutes and changed back each time by {others}; it is left alone for {} minutes, then tried once more",
        paths.join(", "),
        WINDOW.as_secs() / 60,
        PAUSE.as_secs() / 60,
    )
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::Written;
    use crate::signals::edit::samples::{difference, record};

    /// A correction of what our own last write left, for this desired state.
    fn corrected(fights: &mut Fights, round: u64, desired: &str) {
        let mut record = record();
        record.at_ms = round * 1_000;
        record.outcome = Outcome::Corrected;
        record.desired_digest = Digest::of(desired.as_bytes());
        record.live_resource_version = Some(round.to_string().into());
        record.differences = vec![difference("/data/a", &["trimtab"])];
        let left = format!(r#"{{"metadata":{{"uid":"u","resourceVersion":"{}"}}}}"#, round + 1);
        record.after = Some(Written::Object(left.into_bytes().into()));
        fights.ended(&record);
    }

    #[test]
    fn revisions_in_a_row_are_no_contradiction_of_the_plugin_and_end_one() {
        let mut fights = Fights::default();
        for round in 1..20 {
            corrected(&mut fights, round, &format!("revision {round}"));
            assert_eq!(fights.standoff(round * 1_000), None, "revision {round}");
        }
        for round in 20..24 {
            corrected(&mut fights, round, "one revision");
        }
        let standoff = fights.standoff(24_000).unwrap();
        let mut next = record();
        next.live_resource_version = Some("24".into());
        next.desired_digest = Digest::of(b"one revision");
        assert!(standoff.concerns(&next));
        next.desired_digest = Digest::of(b"another revision");
        assert!(!standoff.concerns(&next));
    }
}
