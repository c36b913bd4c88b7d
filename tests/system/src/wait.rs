//! Waiting for events: look, and look again, until it is so or the deadline is over.

use anyhow::{Result, anyhow};
use std::fmt::Display;
use std::time::{Duration, Instant};

/// How long anything may take here: the machine may be building something else meanwhile.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks.
const POLL: Duration = Duration::from_millis(15);

/// Looks until `look` gives a value. Its errors mean "not yet".
///
/// # Errors
/// The deadline is over: `what` did not happen, with the last "not yet".
pub async fn until<T>(
    what: impl Display,
    limit: Duration,
    mut look: impl AsyncFnMut() -> Result<T>,
) -> Result<T> {
    let start = Instant::now();
    loop {
        match look().await {
            Ok(found) => return Ok(found),
            Err(not_yet) if start.elapsed() >= limit => {
                return Err(anyhow!(
                    "within {} s this did not happen: {what} ({not_yet:#})",
                    limit.as_secs()
                ));
            }
            Err(_) => tokio::time::sleep(POLL).await,
        }
    }
}
