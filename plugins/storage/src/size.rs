//! Sizes of volumes, in order: quantities such as `10Gi`, `1.5T` or `1000`.

/// In thousandths of a byte; `None` for what is no plain size, about which nothing is claimed.
pub(crate) fn of(text: &str) -> Option<u128> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || part.len() > 3 || part.contains('.') {
        return None;
    }
    let milli = format!("{whole}{part:0<3}").parse::<u128>().ok()?;
    let power = |base: u128| {
        let at = ["k", "M", "G", "T", "P", "E"].iter().position(|it| suffix.starts_with(it))?;
        base.checked_pow(u32::try_from(at).ok()? + 1)
    };
    let unit = match suffix {
        "" => 1,
        "Ki" => 1 << 10,
        "ki" => return None,
        _ if suffix.len() == 1 => power(1000)?,
        _ if suffix.len() == 2 && suffix.ends_with('i') => power(1024)?,
        _ => return None,
    };
    milli.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn sizes_are_in_the_order_of_what_they_mean() {
        let ascending = [
            "1", "999", "1k", "1Ki", "1M", "1Mi", "1.5Mi", "1G", "1Gi", "1025Mi", "1T", "2Ti",
            "1E", "1Ei",
        ];
        let sizes: Vec<_> = ascending.iter().map(|text| of(text).unwrap()).collect();
        assert!(sizes.is_sorted_by(|a, b| a < b), "{sizes:?}");
        assert_eq!(of("3072Mi"), of("3Gi"));
    }

    #[test]
    fn of_what_is_no_plain_size_nothing_is_claimed() {
        for text in ["", "Gi", "1e3", "1Zi", "-1", "1.2.3", "1.2345Gi", "lots", "1ki"] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
