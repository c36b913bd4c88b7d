//! Comparing two things in one run on a machine that does other things meanwhile.
//!
//! Samples are taken in pairs, one of each right after the other and in alternating order, so that
//! whatever else the machine does falls on both. The ratio is the median over the pairs' ratios;
//! its noise is how far the middle half of them reaches.

use std::time::{Duration, Instant};

/// What came of interleaved samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    /// Median of the first.
    pub(crate) a: Duration,
    /// Median of the second.
    pub(crate) b: Duration,
    /// First to second.
    pub(crate) ratio: Ratio,
}

/// A ratio and how sure it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ratio {
    /// The median.
    pub(crate) median: f64,
    /// The lower and the upper quartile.
    pub(crate) quartiles: (f64, f64),
}

/// Runs both in turns, `rounds` times with `calls` calls each, after a tenth of that as warm-up.
pub(crate) fn interleave(
    rounds: usize,
    calls: u32,
    mut a: impl FnMut(),
    mut b: impl FnMut(),
) -> Pair {
    let mut samples = (Vec::with_capacity(rounds), Vec::with_capacity(rounds));
    let warm_up = rounds / 10;
    for round in 0..warm_up + rounds {
        let (first, second);
        if round % 2 == 0 {
            first = time(calls, &mut a);
            second = time(calls, &mut b);
        } else {
            second = time(calls, &mut b);
            first = time(calls, &mut a);
        }
        if round >= warm_up {
            samples.0.push(first);
            samples.1.push(second);
        }
    }
    pair(&samples.0, &samples.1)
}

/// From samples that were taken in turns.
pub(crate) fn pair(a: &[Duration], b: &[Duration]) -> Pair {
    let ratios = a.iter().zip(b).map(|(a, b)| a.as_secs_f64() / b.as_secs_f64()).collect();
    Pair { a: median(a.to_vec()), b: median(b.to_vec()), ratio: ratio(ratios) }
}

/// The middle one.
pub(crate) fn median(mut samples: Vec<Duration>) -> Duration {
    samples.sort_unstable();
    samples.get(samples.len() / 2).copied().unwrap_or_default()
}

fn ratio(mut ratios: Vec<f64>) -> Ratio {
    ratios.sort_unstable_by(f64::total_cmp);
    let at = |part: usize| ratios.get(ratios.len() * part / 4).copied().unwrap_or(f64::NAN);
    Ratio { median: at(2), quartiles: (at(1), at(3)) }
}

fn time(calls: u32, run: &mut impl FnMut()) -> Duration {
    let start = Instant::now();
    for _ in 0..calls {
        run();
    }
    start.elapsed() / calls
}
