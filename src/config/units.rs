//! Durations and sizes as people write them.

use std::time::Duration;

const DURATION_UNITS: [(&str, u64); 5] = [
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

const SIZE_UNITS: [(&str, u64); 7] = [
    ("", 1),
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("MB", 1_000_000),
];

/// Reads `500ms`, `10s`, `5m`, `1h` or `7d`.
///
/// # Errors
/// What is wrong with the text.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let milliseconds = parse(text, &DURATION_UNITS).ok_or_else(|| {
        format!("`{text}` is not a duration; write a number and a unit, such as 500ms, 10s, 5m, 1h or 7d")
    })?;
    Ok(Duration::from_millis(milliseconds))
}

/// Reads `65536`, `64KiB`, `100MiB`, `1GiB`, `64kB` or `1MB`.
///
/// # Errors
/// What is wrong with the text.
pub fn parse_size(text: &str) -> Result<usize, String> {
    parse(text, &SIZE_UNITS)
        .and_then(|bytes| usize::try_from(bytes).ok())
        .ok_or_else(|| {
            format!("`{text}` is not a size; write a number of bytes, or one with a unit such as 64KiB or 100MiB")
        })
}

fn parse(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_their_unit() {
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("7d"), Ok(Duration::from_secs(604_800)));
        assert_eq!(parse_duration("10 s"), Ok(Duration::from_secs(10)));
        for bad in [
            "10",
            "",
            "s",
            "-1s",
            "1.5s",
            "10 seconds",
            "99999999999999999999s",
            "18446744073709551615d",
        ] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_may_have_a_unit() {
        assert_eq!(parse_size("65536"), Ok(65_536));
        assert_eq!(parse_size("64KiB"), Ok(65_536));
        assert_eq!(parse_size("1MB"), Ok(1_000_000));
        for bad in ["", "KiB", "64 K", "64k", "-1", "1.5MiB"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }
}
