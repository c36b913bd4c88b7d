//! One pair: what we say of it, what a dry run says, and whether that is the same.

use super::Bench;
use super::judge::{self, Ours};
use super::schema::Schema;
use super::seeds::Seed;
use super::tally::{Case, Tally, Wrong};
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::sync::Arc;
use trimtab_compare::Kind;
use trimtab_json::Path;

/// Pairs with one live object.
#[derive(Clone, Copy)]
pub(super) struct Pairs<'p> {
    pub(super) bench: &'p Bench,
    pub(super) seed: &'p Seed,
    pub(super) schema: Schema<'p>,
    pub(super) facts: &'p Arc<[u8]>,
    pub(super) live: &'p Value,
}

impl Pairs<'_> {
    /// One pair. Whether it is a drift that the server would correct.
    pub(super) async fn judge(
        &self,
        desired: &Value,
        mutations: &[String],
        tally: &mut Tally,
        sandboxed: bool,
    ) -> Result<bool> {
        let told = || format!("{mutations:?} makes {desired}\nlive is {}", self.live);
        let ours = judge::ours(desired, self.live, self.facts).with_context(told)?;
        let counts = tally.of(&self.seed.kind);
        counts.pairs += 1;
        if sandboxed {
            counts.in_sandbox += 1;
            let plugin = &self.bench.plugin;
            judge::same_in_the_sandbox(plugin, desired, self.live, self.facts, &ours)
                .with_context(told)?;
        }
        let answer = match self.bench.apply(self.seed, desired, "&dryRun=All").await? {
            Ok(answer) => answer,
            Err(refusal) => {
                self.refused(desired, mutations, &ours, &refusal, tally);
                return Ok(false);
            }
        };
        let seen = match &ours {
            Ours::Differences(seen) => seen,
            Ours::Invalid(what) => {
                let root = Path::root();
                tally.disagree(&self.case(Wrong::Refused, &root, desired, None, what, mutations));
                return Ok(false);
            }
        };
        let changes = judge::changes(self.live, &answer, self.schema);
        let touch = |one: &Path, other: &Path| {
            let place = |path| judge::place(&self.seed.kind, path);
            judge::touch(&place(one), &place(other))
        };
        let judged: Vec<_> = seen.iter().filter(|seen| seen.kind != Kind::Stray).collect();
        let real: Vec<_> = judged
            .iter()
            .filter(|seen| {
                !(seen.kind == Kind::Released && seen.held)
                    || changes.iter().any(|change| touch(change, &seen.path))
            })
            .collect();
        for seen in &real {
            if !changes.iter().any(|change| touch(change, &seen.path)) {
                let word = seen.kind.name();
                tally.disagree(&self.case(
                    Wrong::FalseAlarm,
                    &seen.path,
                    desired,
                    Some(&answer),
                    word,
                    mutations,
                ));
            }
        }
        for change in &changes {
            // What follows from a neighbour is told by the neighbour: a setting that the server drops
            // with it, a default that depends on it (there, on one a level above as well).
            let stated = judge::at(desired, change, Some(self.schema)).is_some();
            let up = |path: &Path| path.parent().unwrap_or_default();
            let around = up(&up(change));
            let beside = |seen: &Path| {
                up(seen) == up(change) || !stated && !around.is_root() && seen.starts_with(&around)
            };
            let found = judged.iter().any(|seen| touch(change, &seen.path) || beside(&seen.path));
            if !found && (real.is_empty() || self.is_stated(change, desired)) {
                tally.disagree(&self.case(
                    Wrong::Missed,
                    change,
                    desired,
                    Some(&answer),
                    "",
                    mutations,
                ));
            }
        }
        let counts = tally.of(&self.seed.kind);
        match changes.is_empty() {
            true => counts.in_sync += 1,
            false => counts.drift += 1,
        }
        Ok(!changes.is_empty())
    }

    /// The server does not take desired: whether we told so is counted.
    fn refused(
        &self,
        desired: &Value,
        mutations: &[String],
        ours: &Ours,
        refusal: &str,
        tally: &mut Tally,
    ) {
        let counts = tally.of(&self.seed.kind);
        counts.rejected += 1;
        let foretold = match ours {
            Ours::Invalid(_) => true,
            Ours::Differences(seen) => seen.iter().any(|seen| seen.kind == Kind::Pruned),
        };
        counts.foretold += usize::from(foretold);
        if matches!(ours, Ours::Differences(seen) if seen.iter().all(|seen| seen.kind == Kind::Stray))
        {
            let root = Path::root();
            tally.disagree(&self.case(Wrong::Overlooked, &root, desired, None, refusal, mutations));
        }
    }

    /// Desired was applied: nothing is left of the drift.
    pub(super) fn left(
        &self,
        desired: &Value,
        mutations: &[String],
        tally: &mut Tally,
    ) -> Result<()> {
        tally.of(&self.seed.kind).applied += 1;
        match judge::ours(desired, self.live, self.facts)? {
            Ours::Invalid(what) => {
                tally.disagree(&self.case(
                    Wrong::Left,
                    &Path::root(),
                    desired,
                    None,
                    &what,
                    mutations,
                ));
            }
            Ours::Differences(seen) => {
                for seen in seen
                    .iter()
                    .filter(|it| it.kind != Kind::Stray && !(it.kind == Kind::Released && it.held))
                {
                    let word = seen.kind.name();
                    tally.disagree(&self.case(
                        Wrong::Left,
                        &seen.path,
                        desired,
                        None,
                        word,
                        mutations,
                    ));
                }
            }
        }
        Ok(())
    }

    /// Whether desired has a say in the place: it states it, or we stated it before.
    fn is_stated(&self, path: &Path, desired: &Value) -> bool {
        judge::at(desired, path, Some(self.schema)).is_some() || judge::is_ours(self.live, path)
    }

    fn case<'c>(
        &'c self,
        wrong: Wrong,
        path: &'c Path,
        desired: &'c Value,
        answer: Option<&'c Value>,
        text: &'c str,
        mutations: &'c [String],
    ) -> Case<'c> {
        let schema = Some(self.schema);
        Case {
            wrong,
            kind: &self.seed.kind,
            path,
            object: desired,
            desired: judge::at(desired, path, schema),
            live: judge::at(self.live, path, schema),
            answer: answer.and_then(|answer| judge::at(answer, path, schema)),
            text,
            schema,
            managed: &self.live["metadata"]["managedFields"],
            mutations,
        }
    }
}
