//! What happens: one step, chosen at random.

use super::Year;
use super::model::{Declared, KINDS, Part, SOURCES, VALUE};
use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;
use trimtab_system_tests::{GitLine, Id};

/// Folders of a source: where an object stands says nothing of what it is.
const FOLDERS: [&str; 3] = ["one", "two", "two/deep"];
/// Files for each of which all of a source is refused.
const SPOILT: [(&str, &str); 5] = [
    ("broken.yaml", "kind: [\n"),
    ("kustomization.yaml", "resources: []\n"),
    ("nameless.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: default}\n"),
    (
        "twice.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
    ),
    ("link.yaml", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"),
];

impl Year<'_> {
    pub(super) async fn step(&mut self) -> Result<()> {
        let roll = self.random.below(100);
        let (name, result) = match roll {
            0..=33 => ("commit", self.change(true)),
            34..=36 => ("unsigned commit", self.change(false)),
            37..=40 => ("spoilt commit", self.spoil()),
            41..=42 => ("emptied or missing folder", self.empty()),
            43..=47 => ("mass removal", self.remove_many()),
            48..=50 => ("rewind", self.step_back()),
            51..=53 => ("force-push", self.force_push()),
            54..=58 => ("allow a step back", self.allow().await),
            59..=63 => ("line", self.line()),
            64..=69 => ("kill", self.kill(false)),
            70..=71 => ("kill and corrupt the mirror", self.kill(true)),
            72 => ("lose the state directory", self.lose_state().await),
            73..=80 => ("foreign edit", self.edit().await),
            81..=86 => ("foreign deletion", self.delete().await),
            87..=88 => ("foreign object", self.foreign().await),
            89..=91 => ("suspend", self.suspend().await),
            92..=94 => ("resume", self.resume().await),
            95..=97 => ("approve", self.approve().await.map(|_| String::new())),
            _ => ("settle", self.settle().await.map(|()| String::new())),
        };
        let said = result.with_context(|| format!("in step {}: {name}", self.done.len()))?;
        self.done.push(format!("{:3} {name} {said}", self.done.len()));
        Ok(())
    }

    fn number(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    pub(super) fn declared(&mut self) -> Declared {
        let folder = FOLDERS[self.random.below(FOLDERS.len())];
        Declared { folder, value: self.number() }
    }

    pub(super) fn add_to(&mut self, part: &mut Part) {
        let namespace = self.namespaces[self.random.below(self.namespaces.len())].clone();
        let kind = KINDS[self.random.below(KINDS.len())];
        let id = Id::new("v1", kind, &namespace, &format!("o{}", self.number()));
        let declared = self.declared();
        part.objects.insert(id, declared);
    }

    /// Some object of a source, and no namespace.
    fn some(&mut self, part: &Part) -> Option<Id> {
        let ids: Vec<&Id> = part.objects.keys().filter(|id| id.kind != "Namespace").collect();
        self.random.pick(&ids).map(|id| (*id).clone())
    }

    /// What the next commit begins with: mostly whole again, if the one before was not.
    fn parts(&mut self) -> [Part; 2] {
        let mut parts = self.history.head().parts.clone();
        for source in 0..2 {
            let part = &parts[source];
            let is_wrong = part.spoilt.is_some() || part.gone || part.objects.is_empty();
            if is_wrong && !self.random.once_in(3) {
                self.mend(source, &mut parts);
            }
        }
        parts
    }

    /// As the source was when it last declared something, as far as the other does not now.
    pub(super) fn mend(&self, source: usize, parts: &mut [Part; 2]) {
        (parts[source].spoilt, parts[source].gone) = (None, false);
        if !parts[source].objects.is_empty() {
            return;
        }
        let line = self.history.line(self.history.head);
        let before = line.iter().map(|at| &self.history.commits[*at].parts[source].objects);
        if let Some(before) = before.into_iter().find(|objects| !objects.is_empty()) {
            let other = &parts[1 - source].objects;
            let free = before.iter().filter(|(id, _)| !other.contains_key(id));
            parts[source].objects = free.map(|(id, it)| (id.clone(), it.clone())).collect();
        }
    }

    /// A commit of some small changes.
    fn change(&mut self, signed: bool) -> Result<String> {
        // Somebody mends a branch that nothing can follow any more.
        let line = self.history.line(self.history.head);
        let oldest = line.iter().rev().position(|at| !self.history.commits[*at].signed);
        let before = oldest.filter(|at| *at > 0).map(|at| line[line.len() - at]);
        let mut on = before.filter(|_| signed && self.random.once_in(2));
        // Or puts it back on what is in force.
        if let Some(at) = self.in_force()?[0]
            && signed
            && !line.contains(&at)
            && self.random.once_in(3)
        {
            on = Some(at);
        }
        if let Some(on) = on {
            self.rewind(on)?;
        }
        let mut parts = self.parts();
        let mut said = on.map_or_else(String::new, |on| format!("on {on}: "));
        for _ in 0..1 + self.random.below(4) {
            said += &self.edit_parts(&mut parts);
        }
        self.commit(parts, signed, None)?;
        Ok(format!("{said}-> {}", self.history.head))
    }

    fn edit_parts(&mut self, parts: &mut [Part; 2]) -> String {
        let source = self.random.below(2);
        let few = parts[source].objects.len() < 12;
        let Some(id) = self.some(&parts[source]) else {
            self.add_to(&mut parts[source]);
            return "add, ".into();
        };
        match self.random.below(if few { 4 } else { 9 }) {
            0 => {
                // Something that was declared before, and is not now.
                let at = self.random.below(self.history.commits.len());
                let before = self.history.commits[at].parts[source].clone();
                let again = self.some(&before);
                let is_declared = |id: &Id| parts.iter().any(|it| it.objects.contains_key(id));
                let Some(again) = again.filter(|id| !is_declared(id)) else { return "".into() };
                let declared = self.declared();
                parts[source].objects.insert(again.clone(), declared);
                format!("declare {again} again, ")
            }
            1 => {
                self.add_to(&mut parts[source]);
                format!("add to {source}, ")
            }
            2 | 3 => {
                let declared = self.declared();
                parts[source].objects.insert(id.clone(), declared);
                format!("change {id}, ")
            }
            4 => {
                let Some(mut declared) = parts[source].objects.remove(&id) else {
                    return "".into();
                };
                let namespace = &self.namespaces[self.random.below(self.namespaces.len())];
                let moved = Id { namespace: namespace.clone(), ..id.clone() };
                declared.value = self.number();
                if !parts.iter().any(|part| part.objects.contains_key(&moved)) {
                    parts[source].objects.insert(moved, declared);
                }
                format!("move {id} to another namespace, ")
            }
            5 | 6 => {
                let Some(declared) = parts[source].objects.remove(&id) else { return "".into() };
                parts[1 - source].objects.insert(id.clone(), declared);
                format!("move {id} to source {}, ", SOURCES[1 - source])
            }
            _ => {
                parts[source].objects.remove(&id);
                format!("remove {id}, ")
            }
        }
    }

    fn spoil(&mut self) -> Result<String> {
        let mut parts = self.parts();
        let source = self.random.below(2);
        let spoilt = SPOILT[self.random.below(SPOILT.len())];
        parts[source].spoilt = Some(spoilt);
        self.edit_parts(&mut parts);
        self.commit(parts, true, None)?;
        Ok(format!("{} of {}", spoilt.0, SOURCES[source]))
    }

    fn empty(&mut self) -> Result<String> {
        let mut parts = self.parts();
        let source = self.random.below(2);
        parts[source].objects.clear();
        parts[source].gone = self.random.once_in(2);
        let gone = parts[source].gone;
        self.commit(parts, true, None)?;
        Ok(format!("{}, gone: {gone} -> {}", SOURCES[source], self.history.head))
    }

    fn remove_many(&mut self) -> Result<String> {
        let mut parts = self.parts();
        let source = self.random.below(2);
        let share = 25 + self.random.below(60);
        let mut random = self.random.fork(&self.next.to_string());
        self.number();
        parts[source].objects.retain(|id, _| id.kind == "Namespace" || random.below(100) >= share);
        self.commit(parts, true, None)?;
        Ok(format!("{share} % of {} -> {}", SOURCES[source], self.history.head))
    }

    /// Some commit before the branch's, if there is one.
    fn earlier(&mut self) -> Option<usize> {
        let line = self.history.line(self.history.head);
        let back = 1 + self.random.below(4);
        line.get(back.min(line.len() - 1)).copied().filter(|at| *at != self.history.head)
    }

    fn step_back(&mut self) -> Result<String> {
        let Some(to) = self.earlier() else { return Ok("(nowhere)".into()) };
        self.rewind(to)?;
        Ok(format!("to {to}"))
    }

    fn force_push(&mut self) -> Result<String> {
        let Some(on) = self.earlier() else { return Ok("(nowhere)".into()) };
        self.rewind(on)?;
        let mut parts = self.parts();
        self.edit_parts(&mut parts);
        self.commit(parts, true, None)?;
        Ok(format!("on {on} -> {}", self.history.head))
    }

    /// A person lets a source take what the branch has now, whatever that is.
    async fn allow(&mut self) -> Result<String> {
        let source = self.random.below(2);
        let head = self.history.head;
        self.history.allowed.insert((source, head));
        let id = self.history.head().id.clone();
        let (done, text) = self.source(&["allow", SOURCES[source], &id]).await?;
        Ok(format!("{head} for {}: {done} {}", SOURCES[source], text.lines().last().unwrap_or("")))
    }

    fn line(&mut self) -> Result<String> {
        let line = match self.random.below(6) {
            0 => GitLine::Away,
            1 => GitLine::Failing,
            2 | 3 => GitLine::Cut(100 + self.random.below(4000)),
            _ => GitLine::Open,
        };
        self.server.set(line);
        Ok(format!("{line:?}"))
    }

    fn kill(&mut self, corrupt: bool) -> Result<String> {
        if let Some(host) = self.host.take() {
            host.kill()?;
        }
        let mut said = String::new();
        if corrupt {
            let source = SOURCES[self.random.below(2)];
            let mirror = self.room.state().join("sources").join(source).join("mirror");
            let files = files(&mirror)?;
            if let Some(file) = self.random.pick(&files).cloned() {
                let mut bytes = std::fs::read(&file)?;
                let at = self.random.below(bytes.len().max(1));
                match self.random.below(3) {
                    0 => bytes.truncate(at),
                    _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 0x10),
                }
                // Git's own files may not be written to.
                std::fs::remove_file(&file)?;
                if !self.random.once_in(4) {
                    std::fs::write(&file, bytes)?;
                }
                said = format!("{} at {at}", file.strip_prefix(&mirror)?.display());
            }
        }
        self.host = Some(self.room.start()?);
        Ok(said)
    }

    async fn lose_state(&mut self) -> Result<String> {
        // What the cluster knows by then is what was accepted last.
        self.settle().await?;
        if let Some(host) = self.host.take() {
            host.kill()?;
        }
        self.past = self.lines()?;
        std::fs::remove_dir_all(self.room.state())?;
        self.host = Some(self.room.start()?);
        Ok(String::new())
    }

    /// Something that the branch declares, and no namespace.
    fn declared_now(&mut self) -> Option<Id> {
        let parts = self.history.head().parts.clone();
        let source = self.random.below(2);
        self.some(&parts[source])
    }

    async fn edit(&mut self) -> Result<String> {
        let Some(id) = self.declared_now() else { return Ok(String::new()) };
        let value = format!("bobs-{}", self.number());
        let mut patch = json!({"metadata": {"labels": {VALUE: value}}});
        if id.kind == "ConfigMap" {
            patch["data"] = json!({VALUE: value});
        }
        // It need not be there.
        let done = self.cluster.user("bob")?.merge(&id, &patch).await.is_ok();
        Ok(format!("{id}: {done}"))
    }

    async fn delete(&mut self) -> Result<String> {
        let Some(id) = self.declared_now() else { return Ok(String::new()) };
        let done = self.cluster.user("bob")?.delete(&id).await.is_ok();
        Ok(format!("{id}: {done}"))
    }

    /// An object of somebody else's that looks like ours.
    async fn foreign(&mut self) -> Result<String> {
        let namespace = self.namespaces[self.random.below(self.namespaces.len())].clone();
        let name = format!("foreign-{}", self.number());
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": name, "namespace": namespace,
                "labels": {"trimtab.dev/inventory": SOURCES[0], VALUE: "v1"},
            },
        });
        let made = self.cluster.user("bob")?.create(&object).await?;
        let uid = made["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        self.foreign.push((Id::new("v1", "ConfigMap", &namespace, &name), uid));
        Ok(name)
    }

    async fn suspend(&mut self) -> Result<String> {
        let source = self.random.below(2);
        if self.suspended[source].is_some() {
            return Ok("(it is)".into());
        }
        self.source_done(&["suspend", SOURCES[source]]).await?;
        // What was under way ends.
        tokio::time::sleep(Duration::from_millis(500)).await;
        self.suspended[source] = Some(self.lines()?.len());
        Ok(SOURCES[source].into())
    }

    /// Resumes what is suspended; nothing of it was written meanwhile.
    pub(super) async fn resume(&mut self) -> Result<String> {
        for (source, name) in SOURCES.into_iter().enumerate() {
            let Some(mark) = self.suspended[source] else { continue };
            for line in self.lines()?.iter().skip(mark) {
                let written = matches!(line.outcome(), "created" | "corrected")
                    || line.kind() == "prune" && line.0["step"] == "deleting";
                ensure!(!written || line.0["source"] != name, "{name} is suspended: {line:?}");
            }
            self.source_done(&["resume", name, "--yes"]).await?;
            self.suspended[source] = None;
        }
        Ok(String::new())
    }

    /// A person allows everything that is held. Whether there was anything.
    pub(super) async fn approve(&mut self) -> Result<bool> {
        let mut any = false;
        for (source, name) in SOURCES.iter().enumerate() {
            let Ok(listed) = self.listed(source) else { continue };
            for held in listed["held"].as_array().into_iter().flatten() {
                let words = held.as_str().unwrap_or_default().split([' ', '`']);
                let digest = words.clone().find(|word| word.starts_with("sha256:"));
                let digest = digest.with_context(|| format!("no digest in {held}"))?;
                // It may be another set by now.
                let undeclared = self.undeclared(source).await?;
                let (done, text) = self.source(&["approve", name, digest]).await?;
                if done {
                    self.approved.extend(undeclared.into_iter().map(|id| (source, id)));
                    any = true;
                } else {
                    self.done.push(format!("    approve {name}: {}", text.trim()));
                }
            }
        }
        Ok(any)
    }
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(found) };
    for entry in entries {
        let path = entry?.path();
        match path.is_dir() {
            true => found.extend(files(&path)?),
            false => found.push(path),
        }
    }
    found.sort();
    Ok(found)
}
