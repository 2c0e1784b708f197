//! The QUIC versions of one connection: the one it began in, the one it is in, and the move between (RFC 9368 2.3).
//!
//! A server that prefers another version than its client began in keeps the ClientHello until it is whole, before it
//! begins TLS, and answers in the version that both know. The client follows with the first packet of it that opens.

use bytes::Bytes;
use plait_base::limits::MAX_CLIENT_HELLO_BYTES;
use plait_base::{CloseCode, Random, Side, Space, TransportError, Violation};
use plait_crypto::tls::{Hello, read_client_hello, read_encrypted_extensions};
use plait_crypto::{OpenKeys, PacketKeys, ServerTlsConfig, TlsSession, initial_keys};
use plait_wire::Version;
use plait_wire::header::PacketKind;
use plait_wire::params::{TransportParameters, VersionInfo};

use crate::connection::handshake::Handshake;
use crate::connection::handshake::parameters;
use crate::connection::handshake::uniflows::{UniflowNonces, UniflowOffer};

/// Whether TLS lets a connection end in another version than it began in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VersionSwitching {
    Allowed,
    Fixed,
}

/// The versions of a connection.
pub(crate) struct Versions {
    /// Of the client's first flight in this handshake: of its 0-RTT, and of Retry.
    pub(crate) original: Version,
    /// Of all that is sent now, and of Handshake and 1-RTT packets.
    pub(crate) current: Version,
    /// Of the very first packet: another than `original` once a Version Negotiation was followed.
    pub(crate) before_negotiation: Version,
    /// Those that we speak, best first.
    ours: Vec<Version>,
    switching: VersionSwitching,
    /// Initial keys of one more version. On a client of one that a packet claims and that the server may move to; on a
    /// server that has moved, of the original one (RFC 9369 4.1).
    other: Option<Box<(Version, PacketKeys)>>,
}

impl Versions {
    pub(crate) fn new(version: Version, ours: Vec<Version>, switching: VersionSwitching) -> Self {
        Self { original: version, current: version, before_negotiation: version, ours, switching, other: None }
    }

    /// True once a Version Negotiation was followed.
    pub(crate) fn was_negotiated(&self) -> bool {
        self.before_negotiation != self.original
    }

    /// True on a client whose first flight some server may answer in another version.
    pub(crate) fn may_change(&self) -> bool {
        self.switching == VersionSwitching::Allowed && self.ours.iter().any(|v| are_compatible(self.original, *v))
    }

    /// The Initial keys of no further version are of use.
    pub(crate) fn forget_other(&mut self) {
        self.other = None;
    }

    /// RFC 9368 4: what the server says fits the versions that were used, and an honest Version Negotiation.
    fn fits_server(&self, info: Option<&VersionInfo>) -> bool {
        let Some(info) = info else {
            // RFC 9368 8: servers of version 1 may not know the parameter; one that moved us does
            return self.current == self.original && (!self.was_negotiated() || self.original == Version::V1);
        };
        let offered = |v: &Version| info.available.contains(v) || info.chosen == *v;
        let would_choose = self.ours.iter().copied().find(offered);
        let honest = !offered(&self.before_negotiation) && would_choose == Some(self.original);
        info.chosen == self.current && (!self.was_negotiated() || honest)
    }

    /// RFC 9368 4: what a client says fits the version of its first flight.
    fn fits_client(&self, info: Option<&VersionInfo>) -> bool {
        info.is_none_or(|info| info.chosen == self.original)
    }
}

/// RFC 9369 4: the two versions whose first flights are alike.
fn are_compatible(one: Version, other: Version) -> bool {
    let known = [Version::V1, Version::V2];
    one != other && known.contains(&one) && known.contains(&other)
}

/// A server's TLS before it begins: the ClientHello decides in which version.
pub(crate) struct DeferredTls {
    tls: ServerTlsConfig,
    /// Ours; the chosen version is to be filled in.
    params: TransportParameters,
    random: Random,
    /// Versions to move to, best first.
    preferred: Vec<Version>,
}

/// The peer's first message with transport parameters, on its way to TLS.
pub(crate) struct HelloBuffer {
    /// What came of it so far.
    bytes_so_far: Vec<u8>,
    /// On a server whose client's parameters decide of versions or nonces: TLS, until that is settled.
    deferred: Option<Box<DeferredTls>>,
}

impl HelloBuffer {
    pub(crate) fn new(deferred: Option<Box<DeferredTls>>) -> Self {
        Self { bytes_so_far: Vec::new(), deferred }
    }
}

impl DeferredTls {
    pub(crate) fn new(
        tls: ServerTlsConfig,
        params: TransportParameters,
        random: Random,
        preferred: Vec<Version>,
    ) -> Self {
        Self { tls, params, random, preferred }
    }

    /// The version of a connection whose client declares `params`.
    fn choose(&self, original: Version, params: &TransportParameters) -> Version {
        let Some(info) = &params.version_info else { return original };
        let possible = |v: &&Version| **v == original || are_compatible(original, **v);
        let known = |v: &&Version| info.available.contains(v);
        let best = self.preferred.iter().filter(possible).find(known);
        // RFC 9368 4: a client that contradicts itself is refused, not moved
        best.copied().filter(|_| info.chosen == original).unwrap_or(original)
    }

    fn session(&mut self, original: Version, chosen: Version) -> Result<TlsSession, TransportError> {
        if let Some(info) = &mut self.params.version_info {
            info.chosen = chosen;
        }
        let params = self.params.encode(Side::Server, &mut self.random);
        TlsSession::new_moving_server(&self.tls, (original.0, chosen.0), params)
            .map_err(|e| TransportError::new(CloseCode::INTERNAL_ERROR, e.to_string()))
    }
}

impl Handshake {
    /// True for packets whose version is right for their kind, or may turn out to be.
    pub(crate) fn accepts(&self, kind: PacketKind, version: Version) -> bool {
        match kind {
            PacketKind::OneRtt => true,
            // RFC 9369 4.1: 0-RTT stays in the version that it began in
            PacketKind::ZeroRtt => version == self.versions.original,
            // RFC 9369 4.1: until a Handshake packet comes, the client may not know of the move
            PacketKind::Initial if self.side.is_server() && version == self.versions.original => true,
            PacketKind::Initial | PacketKind::Handshake => {
                version == self.versions.current || self.may_move_to(version)
            }
        }
    }

    /// True on a client whose server may still answer in `version`.
    fn may_move_to(&self, version: Version) -> bool {
        let v = &self.versions;
        self.side.is_client()
            && v.switching == VersionSwitching::Allowed
            && v.current == v.original
            && are_compatible(v.original, version)
            && v.ours.contains(&version)
            && !self.has_keys(Space::Handshake)
            && !self.is_complete()
    }

    /// Keys that open Initial packets of `version`, one that [`Self::accepts`].
    pub(crate) fn initial_open_keys(&mut self, version: Version) -> Option<&OpenKeys> {
        // Once the Initial keys are gone, so are those of every version.
        self.keys(Space::Initial)?;
        if version == self.versions.current {
            return self.keys(Space::Initial).map(|keys| &keys.remote);
        }
        if self.side.is_client() && self.versions.other.is_none() {
            let keys = initial_keys(version.0, &self.ids.keys_from(), self.side)?;
            self.versions.other = Some(Box::new((version, keys)));
        }
        self.versions.other.as_deref().filter(|(v, _)| *v == version).map(|(_, keys)| &keys.remote)
    }

    /// An Initial of `version` was opened. A client follows its server to that version; true when it did.
    pub(crate) fn follow_version(&mut self, version: Version) -> bool {
        if version == self.versions.current || !self.may_move_to(version) || !self.tls.move_to(version.0) {
            return false;
        }
        let Some((_, keys)) = self.versions.other.take().map(|other| *other) else { return false };
        if let Some(level) = &mut self.initial {
            level.keys = Some(keys);
        }
        self.versions.current = version;
        true
    }

    /// Bytes of the handshake on their way to TLS: what TLS is to read now, if anything. The message with the peer's
    /// transport parameters is kept back until all of it is here.
    pub(crate) fn buffer_hello(&mut self, level: Space, bytes: Bytes) -> Result<Option<Bytes>, TransportError> {
        let (its_level, read): (_, fn(&[u8], usize) -> Hello<'_>) = match self.side {
            Side::Client => (Space::Handshake, read_encrypted_extensions),
            Side::Server => (Space::Initial, read_client_hello),
        };
        let may_change_nonces = self.params.ours.may_change_nonces();
        if may_change_nonces && self.side.is_client() && level == Space::Initial {
            // With these bytes come Handshake keys: the version is settled, and TLS must tell its secrets.
            self.tls.move_to(self.versions.current.0);
        }
        let Some(hello) = self.hello.as_mut().filter(|_| level == its_level) else { return Ok(Some(bytes)) };
        hello.bytes_so_far.extend_from_slice(&bytes);
        let is_asked = may_change_nonces || hello.deferred.is_some();
        let params = match read(&hello.bytes_so_far, MAX_CLIENT_HELLO_BYTES) {
            Hello::Partial => return Ok(None),
            // RFC 9001 8.2: those under the code point of the drafts are none
            Hello::Missing => return Err(Violation::MissingTransportParameters.into()),
            // What is wrong with them is for TLS and `Handshake::learn` to say, in the client's version.
            Hello::Params(params) if is_asked => parameters::decode(params, self.side).ok(),
            Hello::Params(_) | Hello::Unfit => None,
        };
        let Some(HelloBuffer { bytes_so_far, deferred }) = self.hello.take().map(|hello| *hello) else {
            return Ok(Some(bytes));
        };
        if let Some(params) = params {
            self.settle(deferred, &params)?;
        }
        Ok(Some(Bytes::from(bytes_so_far)))
    }

    /// The peer's parameters are known, and keys of 1-RTT packets are not made yet: the version of a server, and the nonces
    /// of either side.
    fn settle(
        &mut self,
        deferred: Option<Box<DeferredTls>>,
        params: &TransportParameters,
    ) -> Result<(), TransportError> {
        let nonces = self.params.ours.nonces_with(&UniflowOffer::of(params));
        if let Some(mut deferred) = deferred {
            let original = self.versions.original;
            let chosen = deferred.choose(original, params);
            if chosen != original || nonces.is_some() {
                self.tls = deferred.session(original, chosen)?;
            }
            if chosen != original {
                self.take_version(chosen);
            }
        }
        match nonces {
            Some(UniflowNonces { local, remote }) if !self.tls.set_nonces(local, remote) => {
                Err(TransportError::new(CloseCode::INTERNAL_ERROR, "TLS keeps the secrets that other nonces need"))
            }
            _ => Ok(()),
        }
    }

    /// A server goes on in another version than its client began in.
    fn take_version(&mut self, chosen: Version) {
        let keys = initial_keys(chosen.0, &self.ids.keys_from(), self.side);
        let before = self.initial.as_mut().and_then(|level| std::mem::replace(&mut level.keys, keys));
        self.versions.other = before.map(|keys| Box::new((self.versions.original, keys)));
        self.versions.current = chosen;
    }

    /// RFC 9368 4: the chosen version is the one in use, and no Version Negotiation that we followed was forged.
    pub(crate) fn fits_versions(&self, params: &TransportParameters) -> bool {
        let info = params.version_info.as_ref();
        match self.side {
            Side::Client => self.versions.fits_server(info),
            Side::Server => self.versions.fits_client(info),
        }
    }
}
