//! Plugins that are not called, kept over a restart of the host: one that misbehaved before is not
//! called anew because the host was.

use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;
use trimtab_core::identity::Digest;
use trimtab_core::quarantine::{Health, Standing};

/// Name of the file within the state directory.
const FILE: &str = "quarantine.json";

/// One build that is not called.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Held {
    /// SHA-256 of its file.
    digest: String,
    /// End of the pause, in milliseconds since the Unix epoch; none: it is refused for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until_ms: Option<u64>,
    /// How long the pause is: the next one is twice that.
    #[serde(default)]
    pause_seconds: u64,
    last_fault: String,
}

impl Held {
    /// What of this build's health has to outlive the host; `None`: it is called.
    pub(crate) fn of(digest: &Digest, health: &Health) -> Option<Self> {
        let (until_ms, pause_seconds) = match health.standing() {
            Standing::Serving => return None,
            Standing::Quarantined { until_ms, pause, .. } => (Some(*until_ms), pause.as_secs()),
            Standing::Refused => (None, 0),
        };
        let last_fault = health.last_fault().unwrap_or_default().to_owned();
        Some(Self { digest: digest.to_string(), until_ms, pause_seconds, last_fault })
    }

    fn health(self, now_ms: u64) -> Option<(Digest, Health)> {
        let standing = match self.until_ms {
            None => Standing::Refused,
            Some(until_ms) => Standing::Quarantined {
                until_ms,
                pause: Duration::from_secs(self.pause_seconds),
                probing: false,
            },
        };
        Some((Digest::parse(&self.digest)?, Health::resumed(standing, self.last_fault, now_ms)))
    }
}

/// Replaces the file at once.
pub(crate) fn write(state: &Path, held: &[Held]) -> anyhow::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(state)?;
    serde_json::to_writer_pretty(&mut file, held)?;
    file.persist(state.join(FILE))?;
    Ok(())
}

/// The health of the builds that the host before this one did not call.
///
/// # Errors
/// The file cannot be read: then it is not known whom to call.
pub(crate) fn read(state: &Path, now_ms: u64) -> anyhow::Result<Vec<(Digest, Health)>> {
    use anyhow::Context as _;
    let path = state.join(FILE);
    let text = match std::fs::read(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text,
    };
    let told = || {
        format!(
            "{} does not say which plugins are quarantined: remove it to have all of them called",
            path.display()
        )
    };
    let held: Vec<Held> = serde_json::from_slice(&text.with_context(told)?).with_context(told)?;
    held.into_iter().map(|held| held.health(now_ms).with_context(told)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_cannot_be_read_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path();
        assert!(read(state, 0).unwrap().is_empty(), "the first start");
        let digest = Digest::of(b"x");
        let pause = Duration::from_secs(120);
        let quarantined = Standing::Quarantined { until_ms: 200_000, pause, probing: false };
        for standing in [quarantined, Standing::Refused] {
            let health = Health::resumed(standing, "trapped".into(), 90_000);
            write(state, &[Held::of(&digest, &health).unwrap()]).unwrap();
            let (of, read) = read(state, 90_000).unwrap().remove(0);
            assert_eq!((of, read.standing()), (digest, health.standing()));
            assert_eq!(read.last_fault(), Some("trapped"));
        }
        assert!(Held::of(&digest, &Health::default()).is_none());
        for broken in ["", "[{\"digest\":\"x\",\"lastFault\":\"\"}]", "{}"] {
            std::fs::write(state.join(FILE), broken).unwrap();
            let error = format!("{:#}", read(state, 0).unwrap_err());
            assert!(error.contains("quarantine.json") && error.contains("remove it"), "{error}");
        }
    }
}
