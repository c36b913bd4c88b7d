//! The result: one row for each thing that was measured, told as soon as it is known.
//!
//! A goal that is missed is said plainly and fails nothing: times are not what a build breaks by.

use crate::stats::{Pair, Ratio};
use std::time::Duration;

const HEADERS: [&str; 5] = ["what", "measured", "ratio", "goal", "ok?"];

/// All rows so far.
#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<[String; 5]>,
}

impl Table {
    /// A ratio of two times, against the most that it should be.
    pub(crate) fn ratio(&mut self, what: &str, names: (&str, &str), pair: &Pair, most: f64) {
        let Pair { a, b, ratio } = pair;
        let measured = format!("{} {} : {} {}", names.0, time(*a), names.1, time(*b));
        self.row(what, measured, &shown(ratio), &format!("≤ {most}×"), Some(ratio.median <= most));
    }

    /// A ratio of two times that has no goal of its own.
    pub(crate) fn told_ratio(&mut self, what: &str, names: (&str, &str), pair: &Pair) {
        let Pair { a, b, ratio } = pair;
        let measured = format!("{} {} : {} {}", names.0, time(*a), names.1, time(*b));
        self.row(what, measured, &shown(ratio), "", None);
    }

    /// A figure against a goal.
    pub(crate) fn figure(&mut self, what: &str, measured: String, goal: &str, ok: bool) {
        self.row(what, measured, "", goal, Some(ok));
    }

    /// A figure without a goal.
    pub(crate) fn told(&mut self, what: &str, measured: String) {
        self.row(what, measured, "", "", None);
    }

    fn row(&mut self, what: &str, measured: String, ratio: &str, goal: &str, ok: Option<bool>) {
        let ok = match ok {
            Some(true) => "yes",
            Some(false) => "goal missed",
            None => "",
        };
        eprintln!("  {what}: {measured} {ratio} {goal} {ok}");
        self.rows.push([what, &measured, ratio, goal, ok].map(str::to_owned));
    }

    /// The whole table, and what it says in one line.
    pub(crate) fn print(&self) {
        let all = || std::iter::once(HEADERS.map(str::to_owned)).chain(self.rows.iter().cloned());
        let width = |column: usize| all().map(|row| row[column].chars().count()).max();
        let widths: Vec<usize> = (0..HEADERS.len()).filter_map(width).collect();
        println!();
        for row in all() {
            let cells = row.iter().zip(&widths);
            let line: Vec<String> = cells.map(|(cell, width)| format!("{cell:<width$}")).collect();
            println!("{}", line.join("  ").trim_end());
        }
        let missed: Vec<&str> =
            self.rows.iter().filter(|row| row[4] == "goal missed").map(|row| &*row[0]).collect();
        println!();
        if missed.is_empty() {
            println!("every goal is met");
        } else {
            println!("goals missed: {}: {}", missed.len(), missed.join("; "));
        }
    }
}

/// A time with the unit that suits it.
pub(crate) fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds >= 1.0 {
        format!("{seconds:.2} s")
    } else if seconds >= 1e-3 {
        format!("{:.2} ms", seconds * 1e3)
    } else if seconds >= 1e-6 {
        format!("{:.1} µs", seconds * 1e6)
    } else {
        format!("{:.0} ns", seconds * 1e9)
    }
}

fn shown(ratio: &Ratio) -> String {
    if ratio.median < 0.001 {
        return "< 0.001×".to_owned();
    }
    let digits = if ratio.median < 0.1 { 4 } else { 2 };
    let (low, high) = ratio.quartiles;
    format!("{:.digits$}× ({low:.digits$}–{high:.digits$})", ratio.median)
}
