//! Amounts as people type and read them: sizes, shares, seconds, rates.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::zone;

/// Most bytes that one stream can carry (RFC 9000 4.5: 2^62 - 1).
pub(crate) const MAX_BYTES: u64 = (1 << 62) - 1;

/// Reads `100M`, `1.5G`, `64Ki` or `1200`: K, M, G, T are powers of 1000, Ki, Mi, Gi, Ti of 1024.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let hint = || format!("`{text}` is not a size; write bytes as 1200, 64Ki, 100M or 1.5G, 0 or more");
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let unit: u64 = match suffix.strip_suffix('B').unwrap_or(suffix) {
        "" => 1,
        "K" | "k" => 1000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        _ => return Err(hint()),
    };
    let bytes = match number.split_once('.') {
        None => number.parse::<u64>().map_err(|_| hint())?.checked_mul(unit),
        Some((whole, part)) => {
            if whole.is_empty() || part.is_empty() || part.len() > 9 || part.contains('.') || unit == 1 {
                return Err(hint());
            }
            let whole: u64 = whole.parse().map_err(|_| hint())?;
            let scale = 10u128.pow(part.len() as u32);
            let part: u128 = part.parse().map_err(|_| hint())?;
            let fraction = u64::try_from(part * u128::from(unit) / scale).unwrap_or(0);
            whole.checked_mul(unit).and_then(|bytes| bytes.checked_add(fraction))
        }
    };
    bytes
        .filter(|bytes| *bytes <= MAX_BYTES)
        .ok_or_else(|| format!("`{text}` is more than a stream can carry ({MAX_BYTES} bytes)"))
}

/// Bytes of a window: a few packets at least, a gigabyte at most.
const WINDOWS: RangeInclusive<u64> = 16 * 1024..=1 << 30;

/// Reads the size of a window, 16Ki to 1Gi.
pub(crate) fn parse_window(text: &str) -> Result<u64, String> {
    let in_range = parse_size(text).ok().filter(|bytes| WINDOWS.contains(bytes));
    in_range.ok_or_else(|| format!("`{text}` is not a window; write bytes as 64Ki or 4M, 16Ki to 1Gi"))
}

/// Reads the size of a datagram, 1200 to 65527.
pub(crate) fn parse_mtu(text: &str) -> Result<u16, String> {
    let bytes = parse_size(text).ok().and_then(|bytes| u16::try_from(bytes).ok());
    let in_range = bytes.filter(|bytes| (1200..=65_527).contains(bytes));
    in_range.ok_or_else(|| format!("`{text}` is not the size of a datagram; write bytes of UDP payload, 1200 to 65527"))
}

/// Reads an address with a port.
pub(crate) fn parse_socket(text: &str) -> Result<SocketAddr, String> {
    let wrong = || format!("`{text}` is no address with a port; write 127.0.0.1:4433, [::1]:4433 or [::]:0");
    let address = zone::socket_address(text).unwrap_or_else(|| Err(wrong()))?;
    match address {
        SocketAddr::V6(v6) if v6.scope_id() == 0 && zone::needs_zone(address.ip()) => Err(zone::missing(address.ip())),
        _ => Ok(address),
    }
}

/// Reads a share as `0.001` or `0.1%`, between 0 and 1.
pub(crate) fn parse_share(text: &str) -> Result<f64, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|p| p / 100.0),
        None => text.parse(),
    };
    match share {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(format!("`{text}` is not a share; write 0.001 or 0.1%, between 0 and 1 (100%)")),
    }
}

/// Reads seconds as `10`, `0.5`, `1.5s` or `200ms`; above zero, up to a year.
pub(crate) fn parse_seconds(text: &str) -> Result<Duration, String> {
    let (number, scale) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 0.001),
        (None, Some(number)) => (number, 1.0),
        (None, None) => (text, 1.0),
    };
    match number.trim().parse::<f64>() {
        Ok(value) if value > 0.0 && value * scale <= 31_536_000.0 => Ok(Duration::from_secs_f64(value * scale)),
        _ => Err(format!("`{text}` is not a time; write seconds as 10, 0.5 or 200ms, above zero and at most a year")),
    }
}

/// Reads a rate in Mbit/s, above 0 and up to 100,000.
pub(crate) fn parse_mbps(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= 100_000.0 => Ok(rate),
        _ => Err(format!("`{text}` is not a rate; write Mbit/s as 50 or 0.5, above 0 and up to 100000")),
    }
}

/// Reads milliseconds, 0 to 60,000.
pub(crate) fn parse_millis(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(ms) if (0.0..=60_000.0).contains(&ms) => Ok(Duration::from_secs_f64(ms / 1000.0)),
        _ => Err(format!("`{text}` is not a time in milliseconds between 0 and 60000")),
    }
}

/// Reads the time from one event to the next in milliseconds, 0.001 to 60,000: a clock cannot tell less apart.
pub(crate) fn parse_period(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(ms) if (0.001..=60_000.0).contains(&ms) => Ok(Duration::from_secs_f64(ms / 1000.0)),
        _ => Err(format!("`{text}` is not a time in milliseconds from 0.001 to 60000")),
    }
}

/// Reads whole numbers within `range`.
pub(crate) fn whole<T: TryFrom<u64>>(range: RangeInclusive<u64>) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        let fits = number.and_then(|number| T::try_from(number).ok());
        fits.ok_or_else(|| format!("`{text}` is not a whole number from {} to {}", range.start(), range.end()))
    }
}

/// Mbit/s of `bytes` in `seconds`; 0 when no time has passed.
pub(crate) fn mbps(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 * 8.0 / seconds / 1e6 } else { 0.0 }
}

/// `value` cut to `places` decimals, as results show it.
pub(crate) fn rounded(value: f64, places: i32) -> f64 {
    let scale = 10f64.powi(places);
    (value * scale).round() / scale
}

/// Bytes for people: `12.3 MB`.
pub(crate) fn human_bytes(bytes: u64) -> String {
    match bytes {
        0..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}

/// Reads a QUIC version, hexadecimal.
pub(crate) fn parse_version(text: &str) -> Result<u32, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u32::from_str_radix(digits, 16).map_err(|_| format!("`{text}` is not a version such as 0x1a2a3a4a"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let good = [
            ("0", 0),
            ("1200", 1200),
            ("100M", 100_000_000),
            ("1G", 1_000_000_000),
            ("64Ki", 65_536),
            ("64KiB", 65_536),
            ("2Mi", 2 << 20),
            ("1.5G", 1_500_000_000),
            ("0.5Ki", 512),
            ("3k", 3000),
            ("7B", 7),
        ];
        for (text, bytes) in good {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "M", "-1", "1.5", "1..2M", ".5M", "5.M", "10X", "1 M", "99999999999999999999", "9000000T"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
        assert!(parse_size("12q").unwrap_err().contains("64Ki"));
        assert_eq!(parse_window("64Ki"), Ok(65_536));
        assert_eq!(parse_socket("[::1]:9"), Ok(SocketAddr::new(std::net::Ipv6Addr::LOCALHOST.into(), 9)));
        assert!(parse_socket("[fe80::1]:9").unwrap_err().contains("write it with yours, as fe80::1%eth0"));
        assert!(parse_socket("[fe80::1%none]:9").unwrap_err().contains("there is no interface `none`"));
        for text in ["", "127.0.0.1", "localhost:4433", "127.0.0.1:65536", "[::1"] {
            assert!(parse_socket(text).unwrap_err().contains("write 127.0.0.1:4433"), "{text}");
        }
        assert_eq!((parse_mtu("1200"), parse_mtu("65527")), (Ok(1200), Ok(65_527)));
        assert!(
            ["1199", "65528", "64Ki", "9k9", "-1"].iter().all(|text| parse_mtu(text).unwrap_err().contains("65527"))
        );
        assert!(["0", "16383", "2Gi", "x"].iter().all(|text| parse_window(text).unwrap_err().contains("16Ki to 1Gi")));
    }

    #[test]
    fn shares_times_rates() {
        assert_eq!(parse_share("0.001"), Ok(0.001));
        assert!((parse_share("0.1%").unwrap() - 0.001).abs() < 1e-12);
        assert!(["-0.1", "1.1", "101%", "x", "NaN"].iter().all(|t| parse_share(t).is_err()));
        assert_eq!(parse_seconds("200ms"), Ok(Duration::from_millis(200)));
        assert_eq!(parse_seconds("1.5s"), Ok(Duration::from_millis(1500)));
        assert!(["0", "-1", "inf", "x", ""].iter().all(|t| parse_seconds(t).is_err()));
        assert!(["0", "-1", "inf", "1e9"].iter().all(|t| parse_mbps(t).is_err()));
        assert_eq!(parse_millis("0"), Ok(Duration::ZERO));
        assert!(parse_millis("-1").is_err());
        assert_eq!(parse_period("0.001"), Ok(Duration::from_micros(1)));
        assert!(
            ["0", "0.0000001", "-1", "60001", "x"].iter().all(|t| parse_period(t).unwrap_err().contains("0.001 to"))
        );
    }

    #[test]
    fn shown() {
        assert_eq!(human_bytes(999), "999 B");
        assert_eq!(human_bytes(12_345_678), "12.3 MB");
        assert_eq!(mbps(1_000_000, 1.0), 8.0);
        assert_eq!(mbps(1, 0.0), 0.0);
        assert_eq!(rounded(97.4449, 2), 97.44);
    }
}
