//! version_information: the version in use and those that would do too (RFC 9368 3).

use plait_base::{Side, Violation};

use crate::varint::Reader;
use crate::version::Version;

/// Versions of one end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionInfo {
    /// The version of the connection, as the sender sees it.
    pub chosen: Version,
    /// Versions that the sender speaks, best first; a client's includes `chosen`.
    pub available: Vec<Version>,
}

impl VersionInfo {
    /// Reads the parameter of `sender`.
    pub(super) fn decode(value: &[u8], sender: Side) -> Result<Self, Violation> {
        let mut r = Reader::new(value);
        let mut read = || match r.u32() {
            // RFC 9368 3: version 0 and a wrong length are parsing failures.
            Ok(0) | Err(_) => Err(Violation::ParameterMalformed),
            Ok(version) => Ok(Version(version)),
        };
        if !value.len().is_multiple_of(4) {
            return Err(Violation::ParameterMalformed);
        }
        let chosen = read()?;
        let available = (1..value.len() / 4).map(|_| read()).collect::<Result<Vec<_>, _>>()?;
        // RFC 9368 4: a client's choice is one of those that it has available.
        if sender.is_client() && !available.contains(&chosen) {
            return Err(Violation::ParameterMalformed);
        }
        Ok(Self { chosen, available })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.chosen.0.to_be_bytes());
        self.available.iter().for_each(|v| out.extend_from_slice(&v.0.to_be_bytes()));
    }
}
