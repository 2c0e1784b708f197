//! Packets that the endpoint sends for itself: version negotiation, Retry, a close, a stateless reset.

use plait_base::limits::AMPLIFICATION_FACTOR;
use plait_base::{CloseCode, ConnectionId, PathId, Random, ResetToken, Side};
use plait_crypto::{Layout, initial_keys, retry as retry_integrity};
use plait_wire::frame::Close;
use plait_wire::header::{FixedBit, retry, stateless_reset, version_negotiation};
use plait_wire::{Encode, OutHeader, Version};

/// Bytes of an AEAD tag.
const TAG_BYTES: usize = plait_crypto::TAG_BYTES;

/// Clears a reply that is larger than an unvalidated address may get for `received` bytes (RFC 9000 8.1); gives the
/// size of what is left, if anything.
pub(crate) fn bounded(reply: &mut Vec<u8>, received: usize) -> Option<usize> {
    if reply.len() as u64 > AMPLIFICATION_FACTOR.saturating_mul(received as u64) {
        reply.clear();
    }
    Some(reply.len()).filter(|&size| size > 0)
}

/// Lists the versions that we speak, and one that nobody speaks (RFC 9000 6.3). The ids are those of the packet that
/// is answered, of up to 255 bytes.
pub(crate) fn negotiate_version(
    reply: &mut Vec<u8>,
    theirs: (&[u8], &[u8]),
    versions: &[Version],
    random: &mut Random,
) {
    let (dcid, scid) = theirs;
    let mut list = versions.to_vec();
    let at = random.below(list.len() as u64 + 1) as usize;
    list.insert(at, Version::reserved(random));
    // RFC 9000 17.2.1: each end's ids change places.
    version_negotiation::write(reply, scid, dcid, &list, random.next_u32() as u8);
}

/// The ids of a handshake packet that we send without a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplyIds {
    /// The client's source id.
    pub(crate) client: ConnectionId,
    pub(crate) ours: ConnectionId,
    /// Destination id of the client's Initial that is answered.
    pub(crate) answered: ConnectionId,
}

/// A Retry with `token`; none when the version has none.
pub(crate) fn ask_to_retry(
    reply: &mut Vec<u8>,
    version: Version,
    ids: &ReplyIds,
    token: &[u8],
    random: &mut Random,
) -> Option<()> {
    let start = reply.len();
    retry::write(reply, version, &ids.client, &ids.ours, token, random.next_u32() as u8);
    let Some(tag) = reply.get(start..).and_then(|packet| retry_integrity::tag(version.0, &ids.answered, packet)) else {
        reply.truncate(start);
        return None;
    };
    reply.extend_from_slice(&tag);
    Some(())
}

/// An Initial that closes the connection before there is one (RFC 9000 10.2.3).
pub(crate) fn close(reply: &mut Vec<u8>, version: Version, ids: &ReplyIds, code: CloseCode) -> Option<()> {
    let keys = initial_keys(version.0, &ids.answered, Side::Server)?;
    let start = reply.len();
    let header = OutHeader::Initial { version, dcid: ids.client, scid: ids.ours, token: &[] };
    let marks = header.write(reply, 0, 1, FixedBit::Set);
    Close::Transport { code, frame_type: 0, reason: &[] }.encode(reply);
    // The frame takes 4 bytes and more, which with a one-byte number is enough to sample.
    let end = reply.len() + TAG_BYTES;
    marks.set_length(reply, end);
    let layout = Layout { start: marks.start, pn_at: marks.pn_at, pn_len: marks.pn_len };
    let sealed = keys.local.seal_packet(reply, layout, PathId::ZERO, 0);
    if sealed.is_err() {
        reply.truncate(start);
    }
    sealed.ok()
}

/// A stateless reset smaller than the `received` bytes that it answers; none when they are too few.
pub(crate) fn reset(reply: &mut Vec<u8>, received: usize, token: &ResetToken, random: &mut Random) -> Option<()> {
    let len = stateless_reset::len_for(received, random)?;
    stateless_reset::write(reply, len, token, random);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use plait_wire::header::FixedBitRule;
    use plait_wire::{Frame, Frames, ProtectedHeader};

    fn cid(n: u8, len: usize) -> ConnectionId {
        ConnectionId::new(&[n; 20][..len]).unwrap()
    }

    fn ids() -> ReplyIds {
        ReplyIds { client: cid(1, 5), ours: cid(2, 8), answered: cid(3, 18) }
    }

    #[test]
    fn versions_are_listed_with_one_that_nobody_speaks() {
        // RFC 9000 17.2.1-2, 17.2.1-3, 17.2.1-4
        let mut reply = Vec::new();
        let (dcid, scid) = ([7; 255], [8; 30]);
        negotiate_version(&mut reply, (&dcid, &scid), &Version::SUPPORTED, &mut Random::from_u64(1));
        let (header, _) = ProtectedHeader::parse(&reply, 8, FixedBitRule::MustBeSet).unwrap();
        let ProtectedHeader::VersionNegotiation { versions, .. } = &header else { panic!("{header:?}") };
        let list: Vec<_> = version_negotiation::versions(&reply[versions.clone()]).collect();
        assert_eq!(list.len(), 3);
        assert_eq!(list.iter().filter(|v| v.is_reserved()).count(), 1);
        assert!(list.contains(&Version::V1) && list.contains(&Version::V2));
        assert_eq!((header.dcid(&reply), header.scid(&reply)), (&scid[..], &dcid[..]));
    }

    #[test]
    fn retry_is_what_the_client_verifies() {
        for version in Version::SUPPORTED {
            let mut reply = Vec::new();
            ask_to_retry(&mut reply, version, &ids(), b"token", &mut Random::from_u64(1)).unwrap();
            assert!(retry_integrity::verify(version.0, &ids().answered, &reply));
            let (header, _) = ProtectedHeader::parse(&reply, 8, FixedBitRule::MustBeSet).unwrap();
            let ProtectedHeader::Retry { dcid, scid, token, .. } = header else { panic!("{header:?}") };
            assert_eq!((dcid, scid, &reply[token]), (ids().client, ids().ours, &b"token"[..]));
        }
    }

    #[test]
    fn close_is_a_small_initial_that_the_client_opens() {
        for version in Version::SUPPORTED {
            let mut reply = Vec::new();
            close(&mut reply, version, &ids(), CloseCode::CONNECTION_REFUSED).unwrap();
            assert!(reply.len() < 100);
            let (header, span) = ProtectedHeader::parse(&reply, 8, FixedBitRule::MustBeSet).unwrap();
            assert!(matches!(header, ProtectedHeader::Initial { .. }));
            let keys = initial_keys(version.0, &ids().answered, Side::Client).unwrap();
            let unmasked = keys.remote.unmask(&mut reply, span.pn_offset).unwrap();
            let payload = keys.remote.open(&mut reply, span.pn_offset + unmasked.pn_len, PathId::ZERO, 0).unwrap();
            let frames: Vec<_> = Frames::new(&reply[payload]).map(Result::unwrap).collect();
            let refused = Close::Transport { code: CloseCode::CONNECTION_REFUSED, frame_type: 0, reason: &[] };
            assert_eq!(frames, [Frame::Close(refused)]);
        }
    }

    #[test]
    fn resets_shrink() {
        // RFC 9000 10.3-2
        // RFC 9000 10.3.3
        let mut random = Random::from_u64(1);
        let token = ResetToken([5; 16]);
        for received in 0..1_500 {
            let mut reply = Vec::new();
            if reset(&mut reply, received, &token, &mut random).is_some() {
                assert!(reply.len() < received && reply.len() >= 21);
                assert_eq!(&reply[reply.len() - 16..], &token.0);
                assert_eq!(reply[0] & 0xc0, 0x40);
            } else {
                assert!(received < 22 && reply.is_empty());
            }
        }
    }

    #[test]
    fn no_reply_above_three_times_the_datagram() {
        // RFC 9000 8.1
        let mut reply = vec![0; 300];
        assert_eq!(bounded(&mut reply, 100), Some(300));
        assert_eq!(bounded(&mut reply, 99), None);
        assert!(reply.is_empty());
    }
}
