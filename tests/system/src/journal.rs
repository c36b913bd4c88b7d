//! The host's journal, followed while it is written.

use crate::Id;
use anyhow::Result;
use serde_json::Value;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// `journal.jsonl` of one state directory.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    read: Mutex<Followed>,
}

#[derive(Debug, Default)]
struct Followed {
    offset: u64,
    lines: Vec<Arc<Line>>,
    unreadable: Vec<String>,
}

/// One line.
#[derive(Debug)]
pub struct Line(pub Value);

impl Line {
    /// `pass`, `intent`, `host`, `source` or `plugin`.
    pub fn kind(&self) -> &str {
        self.0["type"].as_str().unwrap_or_default()
    }

    /// How a pass ended.
    pub fn outcome(&self) -> &str {
        self.0["outcome"].as_str().unwrap_or_default()
    }

    /// What made the host look.
    pub fn trigger(&self) -> &str {
        self.0["trigger"].as_str().unwrap_or_default()
    }

    /// What goes with the outcome.
    pub fn message(&self) -> &str {
        self.0["message"].as_str().unwrap_or_default()
    }

    /// Whether it is about this object.
    pub fn is_about(&self, id: &Id) -> bool {
        let object = &self.0["object"];
        let is = |key: &str, value: &str| object[key].as_str().unwrap_or_default() == value;
        is("group", id.group())
            && is("kind", &id.kind)
            && is("namespace", &id.namespace)
            && is("name", &id.name)
    }

    /// The object that it is about, in words; empty for lines about none.
    pub fn object(&self) -> String {
        let object = &self.0["object"];
        let part = |key: &str| object[key].as_str().unwrap_or_default();
        let slash = if part("namespace").is_empty() { "" } else { "/" };
        format!("{} {}{slash}{}", part("kind"), part("namespace"), part("name")).trim().to_owned()
    }

    /// The paths that differed.
    pub fn paths(&self) -> Vec<&str> {
        self.differences().filter_map(|difference| difference["path"].as_str()).collect()
    }

    /// Everybody to whom a difference is attributed.
    pub fn managers(&self) -> Vec<&str> {
        let managers =
            self.differences().filter_map(|difference| difference["managers"].as_array());
        managers.flatten().filter_map(|manager| manager["name"].as_str()).collect()
    }

    /// From the event that caused the pass to its end, in milliseconds.
    pub fn since_event_ms(&self) -> Option<f64> {
        self.0["sinceEventMs"].as_f64()
    }

    /// The problems that a source line tells.
    pub fn problems(&self) -> Vec<&str> {
        let problems = self.0["problems"].as_array();
        problems.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    fn differences(&self) -> impl Iterator<Item = &Value> {
        self.0["differences"].as_array().into_iter().flatten()
    }
}

impl Journal {
    /// Of this state directory; it need not be there yet.
    pub fn new(state: &Path) -> Self {
        Self { path: state.join("journal.jsonl"), read: Mutex::default() }
    }

    /// Every complete line until now.
    ///
    /// # Errors
    /// The file is there and cannot be read.
    pub fn lines(&self) -> Result<Vec<Arc<Line>>> {
        self.follow(|followed| followed.lines.clone())
    }

    /// How many complete lines there are: a mark for what comes after.
    ///
    /// # Errors
    /// As [`Journal::lines`].
    pub fn mark(&self) -> Result<usize> {
        self.follow(|followed| followed.lines.len())
    }

    /// Complete lines that are no JSON.
    ///
    /// # Errors
    /// As [`Journal::lines`].
    pub fn unreadable(&self) -> Result<Vec<String>> {
        self.follow(|followed| followed.unreadable.clone())
    }

    /// Whether the file ends within a line.
    ///
    /// # Errors
    /// As [`Journal::lines`].
    pub fn is_torn(&self) -> Result<bool> {
        let bytes = std::fs::read(&self.path)?;
        Ok(bytes.last().is_some_and(|last| *last != b'\n'))
    }

    /// The whole file as text.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn text(&self) -> Result<String> {
        Ok(String::from_utf8_lossy(&std::fs::read(&self.path)?).into_owned())
    }

    fn follow<T>(&self, then: impl FnOnce(&Followed) -> T) -> Result<T> {
        let mut followed = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        match std::fs::File::open(&self.path) {
            Ok(mut file) => {
                file.seek(SeekFrom::Start(followed.offset))?;
                let mut new = Vec::new();
                file.read_to_end(&mut new)?;
                followed.take(&new);
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        Ok(then(&followed))
    }
}

impl Followed {
    fn take(&mut self, new: &[u8]) {
        let Some(end) = new.iter().rposition(|byte| *byte == b'\n') else { return };
        let complete = &new[..=end];
        self.offset += u64::try_from(complete.len()).unwrap_or_default();
        for line in complete.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match serde_json::from_slice(line) {
                Ok(value) => self.lines.push(Arc::new(Line(value))),
                Err(_) => self.unreadable.push(String::from_utf8_lossy(line).into_owned()),
            }
        }
    }
}
