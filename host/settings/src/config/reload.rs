//! The configuration file while the host runs: looked at, as the plugin directory is, and handed on
//! when it says something else. What cannot be read is told, and what was read last stays.

use super::{Config, SourceArgs};
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc;

/// Time between two looks; two that see the same file make it count.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What became of the file.
#[derive(Debug)]
pub enum ConfigUpdate {
    /// It says something else.
    Changed(Config),
    /// It cannot be used, and why.
    Refused(String),
    /// It is again what is in force.
    Same,
}

/// Looks at the file that the arguments name, for as long as somebody listens; `now` is what it said
/// at the start. Without a file nothing ever comes.
pub fn follow(args: SourceArgs, now: Config) -> mpsc::Receiver<ConfigUpdate> {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut last: Result<Config, String> = Ok(now);
        let mut good = last.clone().unwrap_or_default();
        let (mut taken, mut before) = (None, None);
        while args.config.is_some() {
            tokio::time::sleep(LOOK_EVERY).await;
            let seen = look(&args);
            let settled = before.replace(seen) == Some(seen);
            if sender.is_closed() {
                return;
            }
            if !settled || taken.as_ref() == Some(&seen) {
                continue;
            }
            taken = Some(seen);
            let read = args.read_some().map_err(|error| format!("{error:#}"));
            if read == last {
                continue;
            }
            let update = match &read {
                Ok(config) if *config == good => ConfigUpdate::Same,
                Ok(config) => {
                    good = config.clone();
                    ConfigUpdate::Changed(config.clone())
                }
                Err(why) => ConfigUpdate::Refused(why.clone()),
            };
            last = read;
            if sender.send(update).await.is_err() {
                return;
            }
        }
        // Nothing to follow: whoever listens hears nothing, and not the end.
        sender.closed().await;
    });
    receiver
}

/// What of the file tells that it changed; `None` where it cannot be looked at.
fn look(args: &SourceArgs) -> Option<(u64, Option<SystemTime>, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    let seen = std::fs::metadata(args.config.as_ref()?).ok()?;
    Some((seen.len(), seen.modified().ok(), seen.ino()))
}
