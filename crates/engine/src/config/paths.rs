//! Paths of a connection: how many, who opens them, where ACKs travel and what happens when one fails (RFC 10069).

use std::num::NonZeroU32;
use std::sync::Arc;

use plait_base::limits;
use plait_path::{AckRouteFactory, AddressScope, PathPolicyFactory};
use plait_schedule::reinject::ReinjectionFactory;

use super::{Extension, Switch, TransportConfig};

/// Settings of paths: how many, who opens them, what they carry.
impl TransportConfig {
    /// Paths that may be open at once, the first included. 2 to 64, default 8; 0 or 1 does not offer the extension.
    ///
    /// The peer learns of it as `initial_max_path_id = count - 1`.
    pub fn max_concurrent_multipath_paths(&mut self, count: u32) -> &mut Self {
        let count = if count < 2 { 0 } else { count.min(limits::MAX_PATHS as u32) };
        self.paths.max_concurrent = NonZeroU32::new(count);
        self
    }

    /// By which extension several paths may be had. Default [`Extension::Multipath`].
    pub fn extension(&mut self, extension: Extension) -> &mut Self {
        self.paths.extension = extension;
        self
    }

    /// Whether hosts tell each other of their addresses on RFC 10069 connections, by an extension of plait's that both must
    /// offer: a client opens paths to those that the server tells, and an address that is taken back loses its paths.
    /// Default off. Multiflow has frames of its own for it, which are always spoken.
    pub fn announce_addresses(&mut self, switch: impl Into<Switch>) -> &mut Self {
        self.paths.announce_addresses = switch.into();
        self
    }

    /// Whether 1-RTT packets of Multiflow connections have the nonces of its draft: the uniflow id in the top bits, in place
    /// of the IV's. Both must offer it, by a parameter of plait's own; else nonces are made as those of RFC 10069. Default
    /// off. A client cannot offer it whose tickets lie in a store of its own ([`ClientTlsConfig::may_move`]).
    ///
    /// [`ClientTlsConfig::may_move`]: plait_crypto::ClientTlsConfig::may_move
    pub fn uniflow_nonces(&mut self, switch: impl Into<Switch>) -> &mut Self {
        self.paths.uniflow_nonces = switch.into();
        self
    }

    /// Whether a server tells its addresses to a client in the frames of noq's NAT traversal, where both offer it beside
    /// RFC 10069 and not [`Self::announce_addresses`], which goes both ways. A client opens paths to them as its path policy
    /// wishes. Nobody is probed for a client that asks by REACH_OUT. Default off.
    pub fn nat_traversal(&mut self, switch: impl Into<Switch>) -> &mut Self {
        self.paths.nat_traversal = switch.into();
        self
    }

    /// Whether a server tells all its addresses at once, in ADDITIONAL_ADDRESSES, to a client that announces that it reads them
    /// (draft-piraux-quic-additional-addresses), where none of the extensions above is spoken. A client opens paths to them as
    /// its path policy wishes; without multipath it knows of them and stays where it is. Default off.
    pub fn additional_addresses(&mut self, switch: impl Into<Switch>) -> &mut Self {
        self.paths.additional_addresses = switch.into();
        self
    }

    /// Whether hosts tell each other how their paths do on RFC 10069 connections, by an extension of plait's that both must
    /// offer: state, RTT, rate and losses, which statistics and traces show. A path that failed for the peer is left alone
    /// until something is acked there, while another works. Default off.
    pub fn tell_paths(&mut self, switch: impl Into<Switch>) -> &mut Self {
        self.paths.tell_paths = switch.into();
        self
    }

    /// Which addresses that the peer names may be asked, and which of ours are named to it. Default
    /// [`AddressScope::Global`]: in networks of one's own, take [`AddressScope::Any`].
    pub fn address_scope(&mut self, scope: AddressScope) -> &mut Self {
        self.paths.address_scope = scope;
        self
    }

    /// Path validations under way at once. 1 to 8, default 8; further paths wait.
    pub fn max_concurrent_validations(&mut self, count: usize) -> &mut Self {
        self.paths.max_validations = count.clamp(1, limits::MAX_VALIDATIONS);
        self
    }

    /// Connection ids of the peer that we keep for each path. 2 to 8, default 4 (RFC 9000 18.2).
    pub fn active_connection_id_limit(&mut self, count: u64) -> &mut Self {
        self.paths.cid_limit = count.clamp(2, limits::MAX_LOCAL_CIDS_PER_PATH as u64);
        self
    }

    /// Whether a path that stopped answering is avoided at once and its packets go elsewhere. Default on.
    pub fn potentially_failed(&mut self, switch: impl Into<Switch>) -> &mut Self {
        self.paths.potentially_failed = switch.into();
        self
    }

    /// Whether a new path carries only copies until its RTT is known, so that a bad path costs nothing. Default on.
    pub fn duplicate_until_rtt(&mut self, switch: impl Into<Switch>) -> &mut Self {
        self.paths.duplicate_until_rtt = switch.into();
        self
    }

    /// Probe time-outs in a row after which a failed path is abandoned, if another works. At least 2, default 30: about half a minute.
    pub fn abandon_after_ptos(&mut self, count: u32) -> &mut Self {
        self.paths.abandon_after_ptos = count.max(2);
        self
    }

    /// Which path carries the ACKs of a path. Default `fastest`.
    pub fn ack_route(&mut self, factory: Arc<dyn AckRouteFactory>) -> &mut Self {
        self.paths.ack_route = factory;
        self
    }

    /// Whether data that is under way on one path is sent again on another that has nothing else to carry.
    /// Default `tail`.
    pub fn reinjection(&mut self, factory: Arc<dyn ReinjectionFactory>) -> &mut Self {
        self.paths.reinjection = factory;
        self
    }

    /// Who opens and closes paths. Default `manual`: the application alone.
    pub fn path_policy(&mut self, factory: Arc<dyn PathPolicyFactory>) -> &mut Self {
        self.paths.policy = factory;
        self
    }
}
