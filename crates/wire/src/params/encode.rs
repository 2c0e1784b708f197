//! Writing transport parameters, in random order and with one that means nothing.

use std::ops::Range;

use plait_base::{Random, Side};

use super::{
    ActiveMigration, AdditionalAddressesUse, Announcements, GreaseQuicBit, TransportParameters, UnconfirmedPaths, ids,
};
use crate::varint;

/// Most bytes of the value of the parameter that means nothing.
const GREASE_BYTES_MAX: u64 = 16;

impl TransportParameters {
    /// Writes what `sender` declares: parameters at their defaults are left out, those that only a server may send
    /// are left out for a client. Order and one reserved parameter (RFC 9000 18.1) come from `random`, so that no
    /// peer learns to rely on either.
    pub fn encode(&self, sender: Side, random: &mut Random) -> Vec<u8> {
        let mut list = Entries::default();
        self.put_integers(&mut list);
        self.put_extensions(&mut list);
        if let Some(cid) = &self.cids.initial_scid {
            list.put(ids::INITIAL_SCID, |out| out.extend_from_slice(cid));
        }
        if self.active_migration == ActiveMigration::Disabled {
            list.put(ids::DISABLE_ACTIVE_MIGRATION, |_| {});
        }
        if sender.is_server() {
            self.put_server_only(&mut list);
        } else if self.announcements.additional_addresses == AdditionalAddressesUse::Supported {
            list.put(ids::ADDITIONAL_ADDRESSES, |_| {});
        }
        list.put(31 * random.below(1 << 27) + 27, |out| {
            let mut noise = [0; GREASE_BYTES_MAX as usize];
            random.fill(&mut noise);
            let len = random.below(GREASE_BYTES_MAX + 1) as usize;
            out.extend_from_slice(noise.get(..len).unwrap_or_default());
        });
        list.shuffle(random);
        list.concat()
    }

    fn put_integers(&self, list: &mut Entries) {
        let default = Self::default();
        let (limits, acks) = (&self.limits, &self.acks);
        let integers = [
            (ids::MAX_IDLE_TIMEOUT, self.max_idle_timeout_ms, 0),
            (ids::MAX_UDP_PAYLOAD_SIZE, self.max_udp_payload_bytes, default.max_udp_payload_bytes),
            (ids::INITIAL_MAX_DATA, limits.max_data, 0),
            (ids::INITIAL_MAX_STREAM_DATA_BIDI_LOCAL, limits.max_stream_data_bidi_local, 0),
            (ids::INITIAL_MAX_STREAM_DATA_BIDI_REMOTE, limits.max_stream_data_bidi_remote, 0),
            (ids::INITIAL_MAX_STREAM_DATA_UNI, limits.max_stream_data_uni, 0),
            (ids::INITIAL_MAX_STREAMS_BIDI, limits.max_streams_bidi, 0),
            (ids::INITIAL_MAX_STREAMS_UNI, limits.max_streams_uni, 0),
            (ids::ACK_DELAY_EXPONENT, acks.delay_exponent.into(), default.acks.delay_exponent.into()),
            (ids::MAX_ACK_DELAY, acks.max_delay_ms, default.acks.max_delay_ms),
            (ids::ACTIVE_CID_LIMIT, self.active_cid_limit, default.active_cid_limit),
            (ids::MAX_DATAGRAM_FRAME_SIZE, self.max_datagram_frame_bytes, 0),
        ];
        for (id, value, absent) in integers {
            if value != absent {
                list.put(id, |out| varint::put(out, value));
            }
        }
    }

    fn put_extensions(&self, list: &mut Entries) {
        if let Some(limit) = self.initial_max_path_id {
            list.put(ids::INITIAL_MAX_PATH_ID, |out| varint::put(out, limit.0.into()));
        }
        if let Some(limit) = self.max_sending_uniflow_id {
            list.put(ids::MAX_SENDING_UNIFLOW_ID, |out| varint::put(out, limit.0.into()));
        }
        if self.announcements.own != Announcements::default() {
            list.put(ids::ANNOUNCEMENTS, |out| varint::put(out, self.announcements.own.bits()));
        }
        if let Some(addresses) = self.announcements.nat_traversal_addresses {
            list.put(ids::NAT_TRAVERSAL, |out| out.push(addresses.get()));
        }
        if let Some(delay_us) = self.acks.min_delay_us {
            list.put(ids::MIN_ACK_DELAY, |out| varint::put(out, delay_us));
        }
        if self.fixed_bit == GreaseQuicBit::Supported {
            list.put(ids::GREASE_QUIC_BIT, |_| {});
        }
        if self.unconfirmed_paths == UnconfirmedPaths::Welcome {
            list.put(ids::UNCONFIRMED_PATHS, |_| {});
        }
        if let Some(info) = &self.version_info {
            list.put(ids::VERSION_INFORMATION, |out| info.encode(out));
        }
    }

    fn put_server_only(&self, list: &mut Entries) {
        if let Some(cid) = &self.cids.original_dcid {
            list.put(ids::ORIGINAL_DCID, |out| out.extend_from_slice(cid));
        }
        if let Some(cid) = &self.cids.retry_scid {
            list.put(ids::RETRY_SCID, |out| out.extend_from_slice(cid));
        }
        if let Some(token) = &self.stateless_reset_token {
            list.put(ids::STATELESS_RESET_TOKEN, |out| out.extend_from_slice(&token.0));
        }
        if let Some(address) = &self.preferred_address {
            list.put(ids::PREFERRED_ADDRESS, |out| address.encode(out));
        }
    }
}

/// Encoded parameters, one after the other.
struct Entries {
    bytes: Vec<u8>,
    /// Where each of them is, in the order in which they leave.
    places: Vec<Range<usize>>,
    /// The value of the one that is being written.
    value: Vec<u8>,
}

impl Default for Entries {
    /// With room for all that is usual.
    fn default() -> Self {
        Self { bytes: Vec::with_capacity(256), places: Vec::with_capacity(32), value: Vec::with_capacity(64) }
    }
}

impl Entries {
    fn put(&mut self, id: u64, write: impl FnOnce(&mut Vec<u8>)) {
        self.value.clear();
        write(&mut self.value);
        let start = self.bytes.len();
        varint::put(&mut self.bytes, id);
        varint::put(&mut self.bytes, self.value.len() as u64);
        self.bytes.extend_from_slice(&self.value);
        self.places.push(start..self.bytes.len());
    }

    fn shuffle(&mut self, random: &mut Random) {
        for i in (1..self.places.len()).rev() {
            self.places.swap(i, random.below(i as u64 + 1) as usize);
        }
    }

    fn concat(self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.bytes.len());
        for place in self.places {
            all.extend_from_slice(self.bytes.get(place).unwrap_or_default());
        }
        all
    }
}
