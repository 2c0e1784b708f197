//! The body behind `/bytes/N`: the bytes of `plait serve`, made again from their definition.

use anyhow::{Context, Result};
use bytes::Bytes;

/// Bytes after which it repeats.
const PERIOD: usize = 1_048_573;

/// One period of the body: the top byte of x -> x * 0xd1342543de82ef95 + 1 modulo 2^64.
pub fn block() -> Bytes {
    let mut x = 0x9e37_79b9_7f4a_7c15_u64;
    let mut step = || {
        x = x.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
        x.to_be_bytes()[0]
    };
    (0..PERIOD).map(|_| step()).collect::<Vec<u8>>().into()
}

/// Cuts the body of `len` bytes into pieces without copying.
pub fn pieces(block: &Bytes, len: u64) -> impl Iterator<Item = Bytes> + use<> {
    let block = block.clone();
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = (at % PERIOD as u64) as usize;
        let end = PERIOD.min(start + (len - at).min(65_536) as usize);
        at += (end - start) as u64;
        (end > start).then(|| block.slice(start..end))
    })
}

/// Reads `10M`, `1Ki`, `77`.
pub fn size(text: &str) -> Result<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit = match &text[digits..] {
        "" => 1,
        "K" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        _ => anyhow::bail!("no size: {text}"),
    };
    text[..digits].parse::<u64>()?.checked_mul(unit).context("too large")
}

/// The length that the request line of a `/bytes/N` asks for.
pub fn requested(line: &[u8]) -> Result<u64> {
    let line = std::str::from_utf8(line)?;
    let target = line.strip_prefix("GET ").with_context(|| format!("not a request: {line:?}"))?.trim_end();
    size(target.strip_prefix("/bytes/").with_context(|| format!("nothing at {target}"))?)
}
