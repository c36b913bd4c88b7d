//! Times as people and files read them: RFC 3339 in UTC, with milliseconds.

use std::time::{SystemTime, UNIX_EPOCH};

/// Now, in milliseconds since the Unix epoch.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// `2026-01-02T03:04:05.678Z`.
pub(crate) fn rfc3339(ms: u64) -> String {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(ms)
        .map(|at| at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string())
        .unwrap_or_default()
}

/// The same to the second, as an API server writes times: `2026-01-02T03:04:05Z`.
pub(crate) fn to_the_second(ms: u64) -> String {
    let mut text = rfc3339(ms);
    if let Some(point) = text.find('.') {
        text.replace_range(point.., "Z");
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn times_are_utc_with_milliseconds() {
        assert_eq!(super::rfc3339(1_767_323_045_678), "2026-01-02T03:04:05.678Z");
        assert_eq!(super::to_the_second(1_767_323_045_678), "2026-01-02T03:04:05Z");
    }
}
