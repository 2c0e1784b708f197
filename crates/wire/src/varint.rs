//! Variable-length integers (RFC 9000 16).

/// Appends `value`, which must not exceed 2^62 - 1.
pub fn put(buf: &mut Vec<u8>, value: u64) {
    debug_assert!(value <= plait_base::units::VARINT_MAX);
    match size(value) {
        1 => buf.push(value as u8),
        2 => buf.extend_from_slice(&((value as u16) | 0x4000).to_be_bytes()),
        4 => buf.extend_from_slice(&((value as u32) | 0x8000_0000).to_be_bytes()),
        _ => buf.extend_from_slice(&(value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// Bytes that `value` takes: 1, 2, 4 or 8.
pub fn size(value: u64) -> usize {
    match value {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}
