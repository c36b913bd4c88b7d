//! Fights: somebody undoes the same correction again and again, and each of us writes for ever.
//!
//! Takes the records of one object's passes. Once the same differences (paths and values, under
//! one desired state) were corrected [`ROUNDS`] times within [`WINDOW`], they stand off: for
//! [`PAUSE`] they are told and not corrected. Then one more correction is tried, and where it is
//! undone too, the next pause begins at once.
//!
//! Making an object anew counts for more, since it destroys; and the UID does not count, since
//! every such round has another.

use crate::decision::{ActionKind, Difference};
use crate::gate::Planned;
use crate::identity::Digest;
use crate::record::{Outcome, Record};
use std::collections::VecDeque;
use std::time::Duration;

/// Corrections of the same differences that make a fight.
pub const ROUNDS: usize = 10;
/// How many of them making the object anew counts for.
const RECREATION: usize = 4;
/// Within this time.
pub const WINDOW: Duration = Duration::from_secs(600);
/// How long we stay out of it.
pub const PAUSE: Duration = Duration::from_secs(600);

/// A fight that goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standoff {
    /// What it is about, by [`signature`].
    pub over: Digest,
    /// Until when it is not corrected, in milliseconds since the Unix epoch.
    pub until_ms: u64,
}

/// What is remembered of one object's corrections.
#[derive(Clone, Debug, Default)]
pub struct Fights {
    over: Option<Digest>,
    corrections: VecDeque<u64>,
    until_ms: u64,
}

impl Fights {
    /// Takes up a pass that ended.
    pub fn ended(&mut self, record: &Record) {
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
            *self = Self { over: Some(over), ..Self::default() };
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

    /// The fight that goes on, if one does.
    pub fn standoff(&self, now_ms: u64) -> Option<Standoff> {
        let over = self.over?;
        (now_ms < self.until_ms).then_some(Standoff { over, until_ms: self.until_ms })
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
pub(crate) fn reason(differences: &[Difference]) -> String {
    let paths: Vec<&str> = differences.iter().map(|each| each.path.as_str()).collect();
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
