//! Durations as people write them: `90s`, `5m`, `1h30m`.

use std::time::Duration;

/// Shortest interval: a poll costs a request, or a walk over all files.
const AT_LEAST: Duration = Duration::from_secs(1);
/// Longest interval: whoever means "never" wants to suspend the source.
const AT_MOST: Duration = Duration::from_secs(24 * 3600);

/// Reads one.
///
/// # Errors
/// What is wrong with it.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no duration: write 90s, 5m or 1h30m");
    let mut seconds: u64 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|sign: char| !sign.is_ascii_digit()).ok_or_else(wrong)?;
        let number: u64 = rest[..digits].parse().map_err(|_| wrong())?;
        let unit = match rest[digits..].chars().next() {
            Some('s') => 1,
            Some('m') => 60,
            Some('h') => 3600,
            _ => return Err(wrong()),
        };
        let more = number.checked_mul(unit).ok_or_else(wrong)?;
        seconds = seconds.checked_add(more).ok_or_else(wrong)?;
        rest = &rest[digits + 1..];
    }
    let duration = Duration::from_secs(seconds);
    if text.is_empty() {
        return Err(wrong());
    }
    if duration < AT_LEAST || duration > AT_MOST {
        return Err(format!("{text} is not between 1s and 24h"));
    }
    Ok(duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        assert_eq!(parse("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse("1h30m"), Ok(Duration::from_secs(5400)));
        for text in ["", "5", "m", "5 m", "5ms", "-5s", "0s", "25h", "99999999999999999999h", "5é"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
