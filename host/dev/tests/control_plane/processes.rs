//! Looking at processes from outside, and a process of our own to kill.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// Pid, parent's pid and command line of each process that runs; zombies do not.
fn processes() -> Vec<(u32, u32, String)> {
    let columns = ["-A", "-ww", "-o", "pid=,ppid=,stat=,args="];
    let output = Command::new("ps").args(columns).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let parse = |line: &str| {
        let mut words = line.split_whitespace();
        let pid = words.next()?.parse().ok()?;
        let parent = words.next()?.parse().ok()?;
        let state = words.next()?;
        let command = words.collect::<Vec<_>>().join(" ");
        (!state.starts_with('Z')).then_some((pid, parent, command))
    };
    text.lines().filter_map(parse).collect()
}

pub(crate) fn running(pids: &HashSet<u32>) -> Vec<(u32, u32, String)> {
    processes().into_iter().filter(|(pid, ..)| pids.contains(pid)).collect()
}

/// Everything that descends from a process, watchers included.
pub(crate) fn below(root: u32) -> HashSet<u32> {
    let all = processes();
    let mut found = HashSet::from([root]);
    loop {
        let children = all.iter().filter(|(_, parent, _)| found.contains(parent));
        let grown: HashSet<u32> = children.map(|it| it.0).chain(found.iter().copied()).collect();
        if grown.len() == found.len() {
            found.remove(&root);
            return found;
        }
        found = grown;
    }
}

/// This very test program, run again to do one thing and be killed for it.
pub(crate) struct Helper {
    pub(crate) child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    pub(crate) dir: Option<String>,
}

impl Helper {
    pub(crate) fn start(what: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "helper", "--ignored", "--nocapture"])
            .env("TRIMTAB_DEV_HELPER", what)
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines, dir: None }
    }

    pub(crate) fn wait_for(&mut self, word: &str) {
        for line in &mut self.lines {
            let line = line.unwrap();
            if let Some((_, dir)) = line.split_once("dir=") {
                self.dir = Some(dir.to_owned());
            }
            if line.trim_end().ends_with(word) {
                return;
            }
        }
        panic!("the helper ended before it said {word:?}");
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).unwrap();
        kill_process(pid, signal).unwrap();
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
