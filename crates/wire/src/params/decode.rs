//! Reading transport parameters, with every range that RFC 9000 18.2 and the extensions set.

use std::num::NonZeroU8;

use plait_base::limits::{MAX_ACK_DELAY_EXPONENT, MAX_ACK_DELAY_MS, MAX_STREAM_COUNT, MIN_DATAGRAM_BYTES};
use plait_base::{ConnectionId, PathId, ResetToken, Side, Violation};

use super::{
    ActiveMigration, AdditionalAddressesUse, Announcements, GreaseQuicBit, PreferredAddress, TransportParameters,
    UnconfirmedPaths, VersionInfo, ids,
};
use crate::varint::Reader;

impl TransportParameters {
    /// Reads the parameters that `sender` declared; unknown ones are ignored.
    ///
    /// # Errors
    /// A parameter is repeated, malformed, out of its range, missing, or not the sender's to declare (RFC 9000 7.4, 18.2).
    pub fn decode(bytes: &[u8], sender: Side) -> Result<Self, Violation> {
        let mut params = Self::default();
        let mut r = Reader::new(bytes);
        let mut seen = Vec::new();
        while !r.is_empty() {
            let id = r.varint().map_err(|_| Violation::ParameterMalformed)?;
            let value = r.prefixed().map_err(|_| Violation::ParameterMalformed)?;
            seen.push(id);
            params.set(id, value, sender)?;
        }
        // RFC 9000 7.4: no parameter twice, known or not.
        seen.sort_unstable();
        if seen.windows(2).any(|pair| pair.first() == pair.last()) {
            return Err(Violation::ParameterRepeated);
        }
        params.check_whole(sender)?;
        Ok(params)
    }

    /// Takes one parameter in.
    fn set(&mut self, id: u64, value: &[u8], sender: Side) -> Result<(), Violation> {
        let limits = &mut self.limits;
        match id {
            ids::ORIGINAL_DCID => self.cids.original_dcid = Some(cid(from_server(value, sender)?)?),
            ids::MAX_IDLE_TIMEOUT => self.max_idle_timeout_ms = integer(value)?,
            ids::STATELESS_RESET_TOKEN => {
                let token = from_server(value, sender)?.try_into().map_err(|_| Violation::ParameterMalformed)?;
                self.stateless_reset_token = Some(ResetToken(token));
            }
            ids::MAX_UDP_PAYLOAD_SIZE => {
                self.max_udp_payload_bytes = within(value, MIN_DATAGRAM_BYTES as u64, u64::MAX)?;
            }
            ids::INITIAL_MAX_DATA => limits.max_data = integer(value)?,
            ids::INITIAL_MAX_STREAM_DATA_BIDI_LOCAL => limits.max_stream_data_bidi_local = integer(value)?,
            ids::INITIAL_MAX_STREAM_DATA_BIDI_REMOTE => limits.max_stream_data_bidi_remote = integer(value)?,
            ids::INITIAL_MAX_STREAM_DATA_UNI => limits.max_stream_data_uni = integer(value)?,
            // RFC 9000 4.6
            ids::INITIAL_MAX_STREAMS_BIDI => limits.max_streams_bidi = within(value, 0, MAX_STREAM_COUNT)?,
            ids::INITIAL_MAX_STREAMS_UNI => limits.max_streams_uni = within(value, 0, MAX_STREAM_COUNT)?,
            ids::ACK_DELAY_EXPONENT => self.acks.delay_exponent = within(value, 0, MAX_ACK_DELAY_EXPONENT)? as u8,
            ids::MAX_ACK_DELAY => self.acks.max_delay_ms = within(value, 0, MAX_ACK_DELAY_MS)?,
            ids::DISABLE_ACTIVE_MIGRATION => {
                empty(value)?;
                self.active_migration = ActiveMigration::Disabled;
            }
            ids::PREFERRED_ADDRESS => {
                let mut r = Reader::new(from_server(value, sender)?);
                self.preferred_address = Some(PreferredAddress::decode(&mut r)?);
                empty(r.rest())?;
            }
            ids::ACTIVE_CID_LIMIT => self.active_cid_limit = within(value, 2, u64::MAX)?,
            ids::INITIAL_SCID => self.cids.initial_scid = Some(cid(value)?),
            ids::RETRY_SCID => self.cids.retry_scid = Some(cid(from_server(value, sender)?)?),
            _ => self.set_extension(id, value, sender)?,
        }
        Ok(())
    }

    /// Takes in one parameter from outside RFC 9000.
    fn set_extension(&mut self, id: u64, value: &[u8], sender: Side) -> Result<(), Violation> {
        match id {
            ids::VERSION_INFORMATION => self.version_info = Some(VersionInfo::decode(value, sender)?),
            ids::MAX_DATAGRAM_FRAME_SIZE => self.max_datagram_frame_bytes = integer(value)?,
            // RFC 10069 2.1: above 2^32 - 1 is a TRANSPORT_PARAMETER_ERROR
            ids::INITIAL_MAX_PATH_ID => self.initial_max_path_id = Some(path_id(value)?),
            // Ids of uniflows are path ids here, and have their range.
            ids::MAX_SENDING_UNIFLOW_ID => self.max_sending_uniflow_id = Some(path_id(value)?),
            ids::ANNOUNCEMENTS => self.announcements.own = Announcements::from_bits(integer(value)?),
            ids::NAT_TRAVERSAL => {
                // One byte, not a varint
                let &[addresses] = value else { return Err(Violation::ParameterMalformed) };
                let addresses = NonZeroU8::new(addresses).ok_or(Violation::ParameterOutOfRange)?;
                self.announcements.nat_traversal_addresses = Some(addresses);
            }
            // From a server it means nothing.
            ids::ADDITIONAL_ADDRESSES if sender.is_client() => {
                empty(value)?;
                self.announcements.additional_addresses = AdditionalAddressesUse::Supported;
            }
            ids::GREASE_QUIC_BIT => {
                empty(value)?;
                self.fixed_bit = GreaseQuicBit::Supported;
            }
            ids::UNCONFIRMED_PATHS => {
                empty(value)?;
                self.unconfirmed_paths = UnconfirmedPaths::Welcome;
            }
            ids::MIN_ACK_DELAY => self.acks.min_delay_us = Some(integer(value)?),
            // RFC 9000 7.4.2: unknown parameters are ignored.
            _ => {}
        }
        Ok(())
    }

    /// What only all parameters together show.
    fn check_whole(&self, sender: Side) -> Result<(), Violation> {
        // RFC 9000 7.3: these must be there.
        let Some(scid) = self.cids.initial_scid else { return Err(Violation::ParameterMissing) };
        if sender.is_server() && self.cids.original_dcid.is_none() {
            return Err(Violation::ParameterMissing);
        }
        // ack-frequency: min_ack_delay above max_ack_delay
        if self.acks.min_delay_us.is_some_and(|min_us| min_us > self.acks.max_delay_ms * 1000) {
            return Err(Violation::ParameterOutOfRange);
        }
        // RFC 9000 18.2: a server with zero-length ids has no preferred address.
        if self.preferred_address.is_some() && scid.is_empty() {
            return Err(Violation::ParameterOutOfRange);
        }
        // RFC 10069 2.1: initial_max_path_id over a zero-length id
        if self.initial_max_path_id.is_some() && scid.is_empty() {
            return Err(Violation::MultipathZeroLengthCid);
        }
        Ok(())
    }
}

/// A value that only a server may send.
fn from_server(value: &[u8], sender: Side) -> Result<&[u8], Violation> {
    if sender.is_server() { Ok(value) } else { Err(Violation::ParameterServerOnly) }
}

/// One varint and nothing else.
fn integer(value: &[u8]) -> Result<u64, Violation> {
    let mut r = Reader::new(value);
    let number = r.varint().map_err(|_| Violation::ParameterMalformed)?;
    empty(r.rest())?;
    Ok(number)
}

/// A path id or uniflow id.
fn path_id(value: &[u8]) -> Result<PathId, Violation> {
    u32::try_from(integer(value)?).map(PathId).map_err(|_| Violation::ParameterOutOfRange)
}

fn within(value: &[u8], least: u64, most: u64) -> Result<u64, Violation> {
    let number = integer(value)?;
    if (least..=most).contains(&number) { Ok(number) } else { Err(Violation::ParameterOutOfRange) }
}

fn empty(value: &[u8]) -> Result<(), Violation> {
    if value.is_empty() { Ok(()) } else { Err(Violation::ParameterMalformed) }
}

fn cid(value: &[u8]) -> Result<ConnectionId, Violation> {
    ConnectionId::new(value).ok_or(Violation::ParameterMalformed)
}
