//! Quarantine: a plugin that misbehaves again and again is not called for a while.
//!
//! Takes how calls of one build of a plugin went, and says whether it may be called now. One object
//! that a plugin cannot digest is that object's trouble, which is tried again with growing pauses;
//! faults over several objects with no answer between them are the plugin's.

use crate::identity::ObjectKey;
use crate::ports::PluginFault;
use std::time::Duration;

/// Faults in a row, each over another object, after which a plugin is quarantined. One is an
/// accident, two may be a pair of like objects. A build that never gave an answer needs as many over
/// whatever objects.
pub const STRIKES: usize = 3;

/// The first pause: longer than a person needs to see it, shorter than anybody waits.
pub const FIRST_PAUSE: Duration = Duration::from_secs(60);

/// The longest pause; each is twice the one before.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

/// A plugin's fault, without its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultSort {
    /// The guest trapped.
    Trap,
    /// It ran into its deadline.
    Deadline,
    /// It asked for more than a limit allows.
    Limit,
    /// Its answer is not valid.
    Invalid,
    /// It gave two answers to one question.
    Impure,
}

impl FaultSort {
    /// The sort of a fault; `None` for what is not the plugin's doing.
    pub fn of(fault: &PluginFault) -> Option<Self> {
        match fault {
            PluginFault::Trap(_) => Some(Self::Trap),
            PluginFault::Deadline(_) => Some(Self::Deadline),
            PluginFault::Limit(_) => Some(Self::Limit),
            PluginFault::Invalid(_) => Some(Self::Invalid),
            PluginFault::Impure(_) => Some(Self::Impure),
            PluginFault::Unavailable(_) | PluginFault::Held(_) => None,
        }
    }
}

/// Faults by sort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Passes in which the plugin was asked.
    pub passes: u64,
    /// Traps.
    pub traps: u64,
    /// Deadlines.
    pub deadlines: u64,
    /// Limits.
    pub limits: u64,
    /// Invalid answers.
    pub invalid: u64,
    /// Two answers to one question.
    pub impure: u64,
}

/// Whether a plugin is called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// It is.
    #[default]
    Serving,
    /// Not before this moment, and then once, to see.
    Quarantined {
        /// Milliseconds since the Unix epoch.
        until_ms: u64,
        /// How long the pause is.
        pause: Duration,
        /// Whether the one call that looks whether it is over is under way.
        probing: bool,
    },
    /// Never: the same question had two answers.
    Refused,
}

/// What may be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum May {
    /// Call it.
    Call,
    /// Call it this once, and tell how it went.
    Probe,
    /// Wait for so long; `None`: until somebody does something.
    Wait(Option<Duration>),
}

/// What came of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Nothing changed.
    Same,
    /// It is called no more for this long.
    Quarantined(Duration),
    /// It is never called any more.
    Refused,
    /// It is called again.
    Serving,
}

/// How one build of a plugin behaves.
#[derive(Clone, Debug, Default)]
pub struct Health {
    standing: Standing,
    counts: Counts,
    answered: bool,
    /// Faults since the last answer, and over which objects (as many as count).
    row: usize,
    over: Vec<ObjectKey>,
    last_fault: Option<String>,
}

impl Health {
    /// That of a build which a host before this one did not call. A pause ends no later than it would
    /// if it began now, whatever happened to the clock meanwhile.
    pub fn resumed(standing: Standing, last_fault: String, now_ms: u64) -> Self {
        let standing = match standing {
            Standing::Quarantined { until_ms, pause, .. } => {
                let until_ms = until_ms.min(now_ms.saturating_add(millis(pause)));
                Standing::Quarantined { until_ms, pause, probing: false }
            }
            other => other,
        };
        Self { standing, last_fault: Some(last_fault), ..Self::default() }
    }

    /// Whether it is called.
    pub fn standing(&self) -> &Standing {
        &self.standing
    }

    /// What was counted.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The last fault, in words.
    pub fn last_fault(&self) -> Option<&str> {
        self.last_fault.as_deref()
    }

    /// Whether it may be called now. A probe is to be told of by [`Health::ended`].
    pub fn may(&mut self, now_ms: u64) -> May {
        match &mut self.standing {
            Standing::Serving => May::Call,
            Standing::Refused => May::Wait(None),
            Standing::Quarantined { until_ms, .. } if now_ms < *until_ms => {
                May::Wait(Some(Duration::from_millis(*until_ms - now_ms)))
            }
            // How the probe ends is told at once to whoever waits for it.
            Standing::Quarantined { probing: true, .. } => May::Wait(Some(FIRST_PAUSE)),
            Standing::Quarantined { probing, .. } => {
                *probing = true;
                May::Probe
            }
        }
    }

    /// A pass over this object ended: `None`: the plugin was not asked; else its answer or fault.
    pub fn ended(
        &mut self,
        key: &ObjectKey,
        answer: Option<Result<(), (FaultSort, &str)>>,
        now_ms: u64,
    ) -> Turn {
        match answer {
            None => {
                if let Standing::Quarantined { probing, .. } = &mut self.standing {
                    *probing = false;
                }
                Turn::Same
            }
            Some(Ok(())) => self.answered(),
            Some(Err((sort, text))) => self.faulted(key, sort, text, now_ms),
        }
    }

    fn answered(&mut self) -> Turn {
        self.counts.passes += 1;
        self.answered = true;
        self.row = 0;
        self.over.clear();
        if matches!(self.standing, Standing::Quarantined { probing: true, .. }) {
            self.standing = Standing::Serving;
            return Turn::Serving;
        }
        Turn::Same
    }

    fn faulted(&mut self, key: &ObjectKey, sort: FaultSort, text: &str, now_ms: u64) -> Turn {
        self.counts.passes += 1;
        *match sort {
            FaultSort::Trap => &mut self.counts.traps,
            FaultSort::Deadline => &mut self.counts.deadlines,
            FaultSort::Limit => &mut self.counts.limits,
            FaultSort::Invalid => &mut self.counts.invalid,
            FaultSort::Impure => &mut self.counts.impure,
        } += 1;
        self.last_fault = Some(text.to_owned());
        if self.standing == Standing::Refused {
            return Turn::Same;
        }
        if sort == FaultSort::Impure {
            self.standing = Standing::Refused;
            return Turn::Refused;
        }
        self.row += 1;
        if self.over.len() < STRIKES && !self.over.contains(key) {
            self.over.push(key.clone());
        }
        let pause = match self.standing {
            Standing::Quarantined { probing: true, pause, .. } => (pause * 2).min(LONGEST_PAUSE),
            // Of a call that was under way when it was quarantined.
            Standing::Quarantined { .. } => return Turn::Same,
            _ if self.over.len() >= STRIKES || (!self.answered && self.row >= STRIKES) => {
                FIRST_PAUSE
            }
            _ => return Turn::Same,
        };
        let until_ms = now_ms.saturating_add(millis(pause));
        self.standing = Standing::Quarantined { until_ms, pause, probing: false };
        Turn::Quarantined(pause)
    }

    /// A person says that it is to be called again; whether it was not.
    pub fn release(&mut self) -> bool {
        self.row = 0;
        self.over.clear();
        std::mem::take(&mut self.standing) != Standing::Serving
    }
}

fn millis(pause: Duration) -> u64 {
    u64::try_from(pause.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::GroupKind;

    const TRAP: Option<Result<(), (FaultSort, &str)>> = Some(Err((FaultSort::Trap, "trapped")));

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new(GroupKind::new("", "ConfigMap"), "shop", name)
    }

    /// A build that gave an answer, and then faults over as many objects as count.
    fn quarantined(now: u64) -> Health {
        let mut health = Health::default();
        assert_eq!(health.ended(&key("0"), Some(Ok(())), now), Turn::Same);
        for name in ["a", "b"] {
            assert_eq!(health.ended(&key(name), TRAP, now), Turn::Same);
        }
        assert_eq!(health.ended(&key("c"), TRAP, now), Turn::Quarantined(FIRST_PAUSE));
        health
    }

    #[test]
    fn faults_over_several_objects_in_a_row_quarantine_a_plugin() {
        let mut health = quarantined(0);
        assert_eq!(health.may(0), May::Wait(Some(FIRST_PAUSE)));
        assert_eq!(health.last_fault(), Some("trapped"));
        assert_eq!((health.counts().passes, health.counts().traps), (4, 3));
    }

    #[test]
    fn an_answer_between_faults_begins_the_row_anew() {
        let mut health = Health::default();
        for name in ["a", "b", "c", "d", "e"] {
            assert_eq!(health.ended(&key(name), TRAP, 0), Turn::Same);
            assert_eq!(health.ended(&key("well"), Some(Ok(())), 0), Turn::Same);
        }
    }

    #[test]
    fn one_object_alone_quarantines_no_plugin_that_answered_for_others() {
        let mut health = Health::default();
        health.ended(&key("well"), Some(Ok(())), 0);
        for _ in 0..100 {
            assert_eq!(health.ended(&key("poison"), TRAP, 0), Turn::Same);
        }
        let mut never_answered = Health::default();
        for _ in 1..STRIKES {
            assert_eq!(never_answered.ended(&key("only"), TRAP, 0), Turn::Same);
        }
        assert_eq!(never_answered.ended(&key("only"), TRAP, 0), Turn::Quarantined(FIRST_PAUSE));
    }

    #[test]
    fn one_probe_ends_the_pause_and_each_failed_one_doubles_it_up_to_an_hour() {
        let mut health = quarantined(0);
        let (mut now, mut pause) = (0, FIRST_PAUSE);
        for _ in 0..10 {
            now += u64::try_from(pause.as_millis()).unwrap();
            assert_eq!(health.may(now), May::Probe);
            assert!(matches!(health.may(now), May::Wait(_)), "one probe at a time");
            pause = (pause * 2).min(LONGEST_PAUSE);
            assert_eq!(health.ended(&key("a"), TRAP, now), Turn::Quarantined(pause));
        }
        assert_eq!(pause, LONGEST_PAUSE);
        now += u64::try_from(pause.as_millis()).unwrap();
        assert_eq!(health.may(now), May::Probe);
        // The probe's object had changed, and the plugin was not asked: the next one is a probe.
        assert_eq!(health.ended(&key("a"), None, now), Turn::Same);
        assert_eq!(health.may(now), May::Probe);
        assert_eq!(health.ended(&key("a"), Some(Ok(())), now), Turn::Serving);
        assert_eq!(health.may(now), May::Call);
    }

    #[test]
    fn a_pause_goes_on_where_a_host_before_left_it_and_grows_from_there() {
        let pause = FIRST_PAUSE * 4;
        let standing = |until_ms| Standing::Quarantined { until_ms, pause, probing: true };
        let mut health = Health::resumed(standing(100_000), "trapped".into(), 40_000);
        assert_eq!(health.may(40_000), May::Wait(Some(Duration::from_secs(60))));
        assert_eq!(health.may(100_000), May::Probe, "the probe of the host before counts no more");
        assert_eq!(health.ended(&key("a"), TRAP, 100_000), Turn::Quarantined(pause * 2));
        // The clock was set back by a year.
        let mut health = Health::resumed(standing(u64::MAX), "trapped".into(), 0);
        assert_eq!(health.may(0), May::Wait(Some(pause)));
        let mut refused = Health::resumed(Standing::Refused, "not pure".into(), 0);
        assert_eq!(refused.may(u64::MAX), May::Wait(None));
        assert!(refused.release());
    }

    #[test]
    fn a_plugin_that_gives_two_answers_is_refused_until_a_person_says_otherwise() {
        let mut health = Health::default();
        let impure = Some(Err((FaultSort::Impure, "not pure")));
        assert_eq!(health.ended(&key("a"), impure, 0), Turn::Refused);
        assert_eq!(health.may(u64::MAX), May::Wait(None));
        assert!(health.release());
        assert_eq!(health.may(0), May::Call);
        assert!(!health.release());
    }
}
