//! Growing pauses with jitter, one counter a watch.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// The first pause: shorter than a person notices, longer than a busy loop.
const FIRST: Duration = Duration::from_millis(200);
/// The longest pause that we choose ourselves: an outage that has ended is noticed within it.
const LONGEST: Duration = Duration::from_secs(30);
/// The longest `Retry-After` that is believed: a mistaken server must not stop a watch for hours.
const LONGEST_ASKED: Duration = Duration::from_secs(300);

/// Counts failures in a row.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The next pause: doubled each time, with jitter, and at least what the server asked for.
    pub(crate) fn next(&mut self, asked: Option<Duration>) -> Duration {
        let full = FIRST.saturating_mul(1 << self.failures.min(16)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        jittered(full).max(asked.unwrap_or_default().min(LONGEST_ASKED))
    }

    /// It works again.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}

/// Between three quarters and the whole of this time, so that many watches do not move in step.
pub(crate) fn jittered(full: Duration) -> Duration {
    // The standard library's per-instance random keys: enough to spread, and no dependency.
    let random = RandomState::new().hash_one(0u8) % 256;
    full.mul_f64(0.75 + random as f64 / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_start_over() {
        let mut backoff = Backoff::default();
        let first = backoff.next(None);
        assert!(first >= FIRST.mul_f64(0.75) && first <= FIRST);
        let later: Vec<Duration> = (0..40).map(|_| backoff.next(None)).collect();
        assert!(later.iter().all(|pause| *pause <= LONGEST));
        assert!(later[39] >= LONGEST.mul_f64(0.75));
        backoff.reset();
        assert!(backoff.next(None) <= FIRST);
    }

    #[test]
    fn what_the_server_asks_for_is_honoured_within_reason() {
        let asked = Duration::from_secs(120);
        assert_eq!(Backoff::default().next(Some(asked)), asked);
        let absurd = Duration::from_secs(86_400);
        assert_eq!(Backoff::default().next(Some(absurd)), LONGEST_ASKED);
    }
}
