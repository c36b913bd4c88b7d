//! What people ask while the host runs (`crate::requests`): taken up in the loop, one after the
//! other. What takes a while is answered later.

use super::Engine;
use crate::requests::{Ask, Reply, folder};
use crate::suspension::{self, Sort, Suspension};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use trimtab_core::identity::{Digest, ObjectKey};
use trimtab_core::object::Desired;
use trimtab_core::record::Trigger;

/// How often it is looked whether somebody asks: people wait for the answer.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Largest request that is read.
const BYTES_AT_MOST: u64 = 64 * 1024;

/// Where the answer to one request goes.
pub(super) struct Answer(PathBuf);

impl Answer {
    /// Answers: what was done, or why it was not.
    pub(super) fn give(self, result: Result<String, String>) {
        let done = result.is_ok();
        let (Ok(text) | Err(text)) = result;
        let written = || -> anyhow::Result<()> {
            let folder = self.0.parent().unwrap_or(Path::new("."));
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            serde_json::to_writer(&mut file, &Reply { done, text })?;
            file.persist(&self.0)?;
            Ok(())
        };
        if let Err(error) = written() {
            tracing::warn!("a request cannot be answered: {error:#}");
        }
    }
}

impl Engine {
    /// Takes up what people ask, once it is known which sources there are.
    pub(super) fn take_requests(&mut self) {
        if self.first.is_some() || self.requests_looked_at.elapsed() < LOOK_EVERY {
            return;
        }
        self.requests_looked_at = Instant::now();
        let Ok(entries) = std::fs::read_dir(folder(&self.options.state)) else { return };
        let mut files: Vec<PathBuf> = entries
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(|path| path.extension().is_some_and(|it| it == "ask"))
            .collect();
        files.sort();
        for file in files {
            let read = read(&file);
            let _ = std::fs::remove_file(&file);
            let answer = Answer(file.with_extension("reply"));
            match read {
                Ok(ask) => self.take_request(ask, answer),
                Err(why) => answer.give(Err(format!("the request cannot be read: {why}"))),
            }
        }
    }

    fn take_request(&mut self, ask: Ask, answer: Answer) {
        match ask {
            Ask::Sync { source } => match self.sources.get_mut(&source) {
                Some(entry) if entry.look() => entry.asked.push(answer),
                Some(_) => self.answer_one(&source, answer),
                None => answer.give(Err(unknown(Sort::Source, &source))),
            },
            Ask::Approve { source, digest } => answer.give(self.approve(&source, &digest)),
            Ask::Changes { changes, deletions, held } => {
                answer.give(self.approve_changes(&changes, &deletions, &held));
            }
            Ask::Suspend { sort, name } => {
                let done = self.known(sort, &name).and_then(|()| self.suspend(sort, &name));
                answer.give(done);
            }
            Ask::Resume { sort, name } => {
                let done = self.suspended(sort, &name).and_then(|it| self.resume(sort, &name, it));
                answer.give(done);
            }
            Ask::Preview { sort, name } => match self.suspended(sort, &name) {
                Ok(_) => self.preview(sort, &name, answer),
                Err(why) => answer.give(Err(why)),
            },
        }
    }

    /// Takes up what a person approved: what waits for it is looked at again.
    fn approve_changes(
        &mut self,
        changes: &[String],
        deletions: &[String],
        held: &[(String, String)],
    ) -> Result<String, String> {
        let digests = |texts: &[String]| -> Result<Vec<Digest>, String> {
            let read = |text: &String| Digest::parse(text).ok_or(format!("{text:?} is no digest"));
            texts.iter().map(read).collect()
        };
        let (changes, deletions) = (digests(changes)?, digests(deletions)?);
        let count = changes.len() + deletions.len();
        Arc::make_mut(&mut self.options.approvals.changes).extend(changes);
        self.options.approvals.deletions.extend(deletions);
        for (source, digest) in held {
            self.approve(source, digest)?;
        }
        let waiting: Vec<ObjectKey> = self
            .keys
            .iter()
            .filter(|(_, state)| state.awaits_approval())
            .map(|(key, _)| key.clone())
            .collect();
        for key in &waiting {
            if let Some(state) = self.keys.get_mut(key) {
                state.touched(Trigger::Request);
            }
        }
        self.add_to_order(waiting);
        self.pruning.moved();
        let text = format!("{count} changes of a plan are approved, each for once");
        self.tell_host("plan-approved", &text);
        Ok(text)
    }

    fn known(&self, sort: Sort, name: &str) -> Result<(), String> {
        let known = match sort {
            Sort::Source => self.sources.get(name).is_some(),
            Sort::Plugin => {
                let registry = self.parts.registry.borrow();
                registry.served().iter().any(|served| served.power.plugin.name == name)
            }
        };
        if known { Ok(()) } else { Err(unknown(sort, name)) }
    }

    /// The suspension that a command can end.
    fn suspended(&self, sort: Sort, name: &str) -> Result<Suspension, String> {
        self.known(sort, name)?;
        let entry = self.sources.get(name).filter(|_| sort == Sort::Source);
        if entry.is_some_and(|entry| entry.config.suspend) {
            return Err(format!(
                "source {name} is suspended by its configuration: give it another mode there"
            ));
        }
        suspension::of(&self.options.state, sort, name)
            .ok_or_else(|| format!("{} {name} is not suspended", sort.as_str()))
    }

    fn suspend(&mut self, sort: Sort, name: &str) -> Result<String, String> {
        let suspension = suspension::set(&self.options.state, sort, name);
        let suspension = suspension.map_err(|error| format!("{error:#}"))?;
        self.note_suspensions();
        // Each object's record says so, and nothing of it is under way unseen.
        let keys = self.keys_of(sort, name);
        for key in &keys {
            if let Some(state) = self.keys.get_mut(key) {
                state.touched(Trigger::Request);
            }
        }
        self.add_to_order(keys.iter().cloned());
        let since = crate::timestamp::rfc3339(suspension.since_ms);
        let text = format!(
            "{} {name} is suspended since {since}: its {} objects are not looked at",
            sort.as_str(),
            keys.len()
        );
        self.tell_host("suspended", &text);
        self.tell_plugins();
        Ok(text)
    }

    fn resume(&mut self, sort: Sort, name: &str, was: Suspension) -> Result<String, String> {
        suspension::end(&self.options.state, sort, name).map_err(|error| error.to_string())?;
        self.note_suspensions();
        let keys = self.keys_of(sort, name);
        for key in &keys {
            self.keys.entry(key.clone()).or_default().resumed(was.since_ms);
        }
        self.add_to_order(keys.iter().cloned());
        let text = format!(
            "{} {name} is resumed: its {} objects are looked at again",
            sort.as_str(),
            keys.len()
        );
        self.tell_host("resumed", &text);
        self.tell_plugins();
        Ok(text)
    }

    /// Reads what is suspended, as the state directory has it.
    pub(super) fn note_suspensions(&mut self) {
        let state = &self.options.state;
        self.sources.note_suspensions(state);
        let registry = self.parts.registry.borrow().clone();
        let names = registry.served().iter().map(|served| &served.power.plugin.name);
        self.suspended_plugins = names
            .filter_map(|name| Some((name.clone(), suspension::of(state, Sort::Plugin, name)?)))
            .collect();
    }

    /// Why objects of this source under this plugin are not looked at, if they are not.
    pub(super) fn suspension(&self, source: &str, plugin: &str) -> Option<String> {
        let of_source = self.sources.get(source).and_then(|entry| entry.suspension());
        of_source.or_else(|| {
            let since = crate::timestamp::rfc3339(self.suspended_plugins.get(plugin)?.since_ms);
            Some(format!(
                "plugin {plugin} is suspended since {since}: `trimtab plugin resume {plugin}` ends that"
            ))
        })
    }

    fn keys_of(&self, sort: Sort, name: &str) -> Vec<ObjectKey> {
        self.objects_of(sort, name).into_iter().map(|desired| desired.key.clone()).collect()
    }

    fn objects_of(&self, sort: Sort, name: &str) -> Vec<Arc<Desired>> {
        let registry = self.parts.registry.borrow().clone();
        let is = |desired: &&Arc<Desired>| match sort {
            Sort::Source => &*desired.source == name,
            Sort::Plugin => registry
                .for_kind(&desired.key.group_kind)
                .is_some_and(|served| served.power.plugin.name == name),
        };
        self.desired.objects.values().filter(is).cloned().collect()
    }

    /// What differs in these objects, in a task of its own: nothing of it is written.
    fn preview(&mut self, sort: Sort, name: &str, answer: Answer) {
        let objects = self.objects_of(sort, name);
        let (store, facts) = (self.parts.store.clone(), self.facts.clone());
        let (writer, redactor) = (self.parts.writer.clone(), self.redactor());
        let wrote = |desired: &Arc<Desired>| {
            Some((desired.key.clone(), self.made_uid(&desired.key)?.clone()))
        };
        let applied = objects.iter().filter_map(wrote).collect();
        let known = crate::round::Known { applied, ..crate::round::Known::default() };
        tokio::spawn(async move {
            let judges = crate::round::Judges::Generic;
            let looked =
                crate::round::look(&store, &facts, &writer, &judges, &redactor, &known, objects)
                    .await;
            answer.give(Ok(crate::cmd::diff::shown(looked)));
        });
    }

    /// A source was looked at because somebody asked.
    pub(super) fn answer_asked(&mut self, name: &str) {
        let Some(entry) = self.sources.get_mut(name).filter(|entry| !entry.asked.is_empty()) else {
            return;
        };
        if !entry.take_looked() {
            return;
        }
        for answer in std::mem::take(&mut entry.asked) {
            self.answer_one(name, answer);
        }
    }

    fn answer_one(&self, name: &str, answer: Answer) {
        let Some(entry) = self.sources.get(name) else {
            return answer.give(Err(unknown(Sort::Source, name)));
        };
        let in_force = entry.in_force.as_ref();
        let revision = in_force.map(|in_force| &*in_force.revision.id).unwrap_or("nothing");
        answer.give(match &entry.problem {
            Some(problem) => Err(format!(
                "source {name} cannot be used since {}: {}\nin force: {revision}",
                crate::timestamp::rfc3339(problem.since_ms),
                problem.text
            )),
            None => Ok(format!("source {name}: {revision} is in force")),
        });
    }
}

fn unknown(sort: Sort, name: &str) -> String {
    let sort = sort.as_str();
    format!("there is no {sort} {name:?}: `trimtab {sort} list` has their names")
}

fn read(file: &Path) -> Result<Ask, String> {
    let opened = std::fs::File::open(file).map_err(|error| error.to_string())?;
    let mut text = Vec::new();
    opened.take(BYTES_AT_MOST).read_to_end(&mut text).map_err(|error| error.to_string())?;
    serde_json::from_slice(&text).map_err(|error| error.to_string())
}
