//! Purity: the same question has the same answer.
//!
//! A plugin has no clock, no randomness and no memory of earlier calls, so that it can hardly be
//! anything but a function of what it is shown. This looks whether it is: some calls are run once
//! more, with the same snapshot and the same answers to their reads, whatever the cluster did
//! meanwhile. What differs is a defect, of the plugin or of this sandbox, and no ground to write on.

use crate::{LookupError, Lookups};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use trimtab_core::identity::GroupKind;
use trimtab_core::plugin::PluginIdentity;
use trimtab_core::ports::PluginFault;

/// The first calls of a build that was just loaded are all run twice: a build that is impure on
/// every object is found before it has judged many.
const FIRST: u64 = 8;

/// Later, one of so many: well below what a call's own time varies.
const EVERY: u64 = 256;

/// Which calls of a plugin are run twice.
#[derive(Debug, Default)]
pub(crate) struct Sampler(AtomicU64);

impl Sampler {
    /// Whether this call is; counts it.
    pub(crate) fn takes(&self) -> bool {
        let call = self.0.fetch_add(1, Ordering::Relaxed);
        call < FIRST || call.is_multiple_of(EVERY)
    }
}

/// Runs once, or twice if this call is sampled. `run` is given the reads, and whether it is the
/// second time, which nobody should hear of.
pub(crate) fn judged<T: PartialEq>(
    sampled: bool,
    lookups: &Arc<dyn Lookups>,
    run: impl Fn(&Arc<dyn Lookups>, bool) -> Result<T, PluginFault>,
) -> Result<T, PluginFault> {
    if !sampled {
        return run(lookups, false);
    }
    let recording = Arc::new(Recording::new(lookups.clone()));
    let recorded: Arc<dyn Lookups> = recording.clone();
    let first = run(&recorded, false)?;
    let reads = recording.take();
    let replay = Arc::new(Replay { reads: Mutex::new(reads), strayed: AtomicBool::new(false) });
    let replayed: Arc<dyn Lookups> = replay.clone();
    let second = run(&replayed, true);
    match second {
        // What the machine's load decides says nothing of the plugin.
        Err(PluginFault::Deadline(_) | PluginFault::Unavailable(_)) => Ok(first),
        Err(fault) => impure(&format!("the second time it {fault}")),
        Ok(_) if replay.has_strayed() => impure("it read other objects the second time"),
        Ok(second) if second != first => impure("it answered otherwise the second time"),
        Ok(_) => Ok(first),
    }
}

fn impure<T>(how: &str) -> Result<T, PluginFault> {
    Err(PluginFault::Impure(format!("asked twice with the same snapshot and reads, {how}")))
}

/// What was asked: an object by its namespace and name, or, without a name, all objects of a kind.
pub type Query = (GroupKind, String, Option<String>);
/// Reads in the order in which they were made: of one object none or one, of all as many as there
/// are.
pub type Reads = VecDeque<(Query, Result<Vec<Arc<[u8]>>, LookupError>)>;

/// Hands on reads, and keeps their answers.
pub struct Recording {
    lookups: Arc<dyn Lookups>,
    reads: Mutex<Reads>,
}

impl Recording {
    /// Hands them on to these.
    pub fn new(lookups: Arc<dyn Lookups>) -> Self {
        Self { lookups, reads: Mutex::default() }
    }

    /// What was read so far; forgets it.
    pub fn take(&self) -> Reads {
        std::mem::take(&mut *locked(&self.reads))
    }
}

impl Lookups for Recording {
    fn get(
        &self,
        plugin: &PluginIdentity,
        kind: &GroupKind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Arc<[u8]>>, LookupError> {
        let answer = self.lookups.get(plugin, kind, namespace, name);
        let query = (kind.clone(), namespace.to_owned(), Some(name.to_owned()));
        let kept = answer.clone().map(|found| found.into_iter().collect());
        locked(&self.reads).push_back((query, kept));
        answer
    }

    fn find(
        &self,
        plugin: &PluginIdentity,
        kind: &GroupKind,
        namespace: &str,
    ) -> Result<Vec<Arc<[u8]>>, LookupError> {
        let answer = self.lookups.find(plugin, kind, namespace);
        let query = (kind.clone(), namespace.to_owned(), None);
        locked(&self.reads).push_back((query, answer.clone()));
        answer
    }
}

/// Gives the same answers in the same order.
struct Replay {
    reads: Mutex<Reads>,
    strayed: AtomicBool,
}

impl Replay {
    fn next(
        &self,
        kind: &GroupKind,
        namespace: &str,
        name: Option<&str>,
    ) -> Result<Vec<Arc<[u8]>>, LookupError> {
        match locked(&self.reads).pop_front() {
            Some(((k, ns, n), answer)) if k == *kind && ns == namespace && n.as_deref() == name => {
                answer
            }
            _ => {
                self.strayed.store(true, Ordering::Relaxed);
                Err(LookupError::Unavailable("it was not read the first time".into()))
            }
        }
    }

    fn has_strayed(&self) -> bool {
        self.strayed.load(Ordering::Relaxed) || !locked(&self.reads).is_empty()
    }
}

impl Lookups for Replay {
    fn get(
        &self,
        _: &PluginIdentity,
        kind: &GroupKind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Arc<[u8]>>, LookupError> {
        self.next(kind, namespace, Some(name)).map(|mut found| found.pop())
    }

    fn find(
        &self,
        _: &PluginIdentity,
        kind: &GroupKind,
        namespace: &str,
    ) -> Result<Vec<Arc<[u8]>>, LookupError> {
        self.next(kind, namespace, None)
    }
}

/// Nothing panics while it holds one of these.
fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use trimtab_core::identity::Digest;

    /// A cluster in which every read has another answer than the one before.
    struct Moving(AtomicU64);

    impl Lookups for Moving {
        fn get(
            &self,
            _: &PluginIdentity,
            _: &GroupKind,
            _: &str,
            _: &str,
        ) -> Result<Option<Arc<[u8]>>, LookupError> {
            let next = self.0.fetch_add(1, Ordering::Relaxed);
            Ok(Some(next.to_string().into_bytes().into()))
        }

        fn find(
            &self,
            plugin: &PluginIdentity,
            kind: &GroupKind,
            namespace: &str,
        ) -> Result<Vec<Arc<[u8]>>, LookupError> {
            Ok(self.get(plugin, kind, namespace, "")?.into_iter().collect())
        }
    }

    fn moving() -> Arc<dyn Lookups> {
        Arc::new(Moving(AtomicU64::new(0)))
    }

    fn read(lookups: &Arc<dyn Lookups>, name: &str) -> Vec<u8> {
        let plugin =
            PluginIdentity { name: "x".into(), version: "0.1.0".into(), digest: Digest::of(b"") };
        match lookups.get(&plugin, &GroupKind::new("", "Service"), "shop", name) {
            Ok(Some(json)) => json.to_vec(),
            other => format!("{other:?}").into_bytes(),
        }
    }

    fn how(result: Result<Vec<u8>, PluginFault>) -> String {
        match result {
            Err(PluginFault::Impure(how)) => how,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_the_cluster_did_between_two_runs_is_no_impurity() {
        let runs = AtomicU64::new(0);
        let answer = judged(true, &moving(), |lookups, _| {
            runs.fetch_add(1, Ordering::Relaxed);
            Ok([read(lookups, "a"), read(lookups, "b"), read(lookups, "a")].concat())
        });
        assert_eq!(answer, Ok(b"012".to_vec()));
        assert_eq!(runs.into_inner(), 2);
    }

    #[test]
    fn another_answer_another_read_and_a_trap_the_second_time_are_impure() {
        let answer = |again: bool| Ok::<_, PluginFault>(vec![u8::from(again)]);
        assert!(how(judged(true, &moving(), |_, again| answer(again))).contains("otherwise"));
        let other = |lookups: &Arc<dyn Lookups>, again: bool| {
            read(lookups, if again { "a" } else { "b" });
            Ok(Vec::<u8>::new())
        };
        assert!(how(judged(true, &moving(), other)).contains("other objects"));
        let fewer = |lookups: &Arc<dyn Lookups>, again: bool| {
            if !again {
                read(lookups, "a");
            }
            Ok(Vec::<u8>::new())
        };
        assert!(how(judged(true, &moving(), fewer)).contains("other objects"));
        let trap = |_: &Arc<dyn Lookups>, again: bool| match again {
            true => Err(PluginFault::Trap("x".into())),
            false => Ok(Vec::<u8>::new()),
        };
        assert!(how(judged(true, &moving(), trap)).contains("trapped: x"));
    }

    #[test]
    fn a_slow_second_run_says_nothing_of_the_plugin_and_a_failed_first_one_is_not_repeated() {
        let slow = |_: &Arc<dyn Lookups>, again: bool| match again {
            true => Err(PluginFault::Deadline(Duration::from_secs(1))),
            false => Ok(Vec::<u8>::new()),
        };
        assert_eq!(judged(true, &moving(), slow), Ok(Vec::new()));
        let runs = AtomicU64::new(0);
        let failing = judged(true, &moving(), |_, _| {
            runs.fetch_add(1, Ordering::Relaxed);
            Err::<Vec<u8>, _>(PluginFault::Trap("x".into()))
        });
        assert_eq!(failing, Err(PluginFault::Trap("x".into())));
        assert_eq!(runs.into_inner(), 1);
    }

    #[test]
    fn the_first_calls_are_run_twice_and_then_few() {
        let sampler = Sampler::default();
        assert!((0..FIRST).all(|_| sampler.takes()));
        let later = (FIRST..10 * EVERY).filter(|_| sampler.takes()).count();
        assert_eq!(later, 9);
    }
}
