//! Which paths this connection should have: the policy, the addresses it knows, and when to ask it again.

use std::net::{IpAddr, SocketAddr};

use plait_base::{FourTuple, Instant, Random, Side};
use plait_path::policy::{AddressUse, Facts, Opener, PathFact, Wish};
use plait_path::table::{OpenError, Pairing};
use plait_path::{PathPolicy, Paths};

use super::proven::ProvenAddresses;
use super::settings::PathSettings;
use super::{PathControl, PathError};
use crate::connection::handshake::Stage;

/// The path policy with the facts that it decides from.
#[derive(Debug)]
pub(crate) struct PathPlan {
    policy: Box<dyn PathPolicy>,
    local: Vec<SocketAddr>,
    /// The machine's addresses; none as long as the system does not tell.
    machine: Option<Vec<IpAddr>>,
    /// Addresses of ours changed: paths may have lost theirs.
    strays: bool,
    /// Paths would leave by other addresses of ours, and the peer gave no connection id for these yet.
    awaits_cid: bool,
    peer: Vec<SocketAddr>,
    /// The peer's address in the handshake.
    first_peer: Option<SocketAddr>,
    /// Addresses of the peer beside those, from which its packets come: at most one for each flow.
    heard: Vec<SocketAddr>,
    /// A server's preferred address, to be validated once the handshake is confirmed.
    pub(super) preferred: Option<Box<FourTuple>>,
    changed: bool,
    /// Addresses that the client of this server proved by attempts which it gave up.
    pub(super) proven: ProvenAddresses,
}

impl PathPlan {
    pub(crate) fn new(policy: Box<dyn PathPolicy>) -> Self {
        Self {
            policy,
            local: Vec::new(),
            machine: None,
            strays: false,
            awaits_cid: false,
            peer: Vec::new(),
            first_peer: None,
            heard: Vec::new(),
            preferred: None,
            changed: false,
            proven: ProvenAddresses::default(),
        }
    }

    /// A fact changed: the policy is asked again.
    pub(super) fn touch(&mut self) {
        self.changed = true;
    }

    /// A path is to leave by another address of ours once the peer gives a connection id for it.
    pub(super) fn await_cid(&mut self) {
        self.awaits_cid = true;
    }

    /// The peer gave a connection id.
    pub(super) fn on_new_cid(&mut self) {
        self.strays |= std::mem::take(&mut self.awaits_cid);
        self.touch();
    }

    pub(super) fn set_local(&mut self, addresses: &[SocketAddr]) {
        self.changed |= self.local != addresses;
        self.strays |= self.local != addresses;
        self.local = addresses.to_vec();
    }

    pub(super) fn set_machine(&mut self, addresses: &[IpAddr]) {
        if self.machine.as_deref() != Some(addresses) {
            self.machine = Some(addresses.to_vec());
            self.strays = true;
            self.changed = true;
        }
    }

    /// True while a change of our addresses was not acted on.
    pub(super) fn has_strays(&self) -> bool {
        self.strays
    }

    pub(super) fn settle_strays(&mut self) {
        self.strays = false;
    }

    /// True for an address of a path that no socket of ours has, or this machine no longer.
    pub(super) fn is_stray(&self, local: SocketAddr) -> bool {
        let serves = |own: &SocketAddr| {
            own.port() == local.port() && (own.ip() == local.ip() || is_wildcard_of(own, local.ip()))
        };
        let concrete = !local.ip().is_unspecified() && !local.ip().is_loopback();
        let lost = |machine: &Vec<IpAddr>| concrete && !machine.contains(&local.ip());
        let homeless = !self.local.is_empty() && !self.local.iter().any(serves);
        homeless || self.machine.as_ref().is_some_and(lost)
    }

    /// True for an address at which a socket of ours listens, as far as is known.
    fn is_own(&self, remote: SocketAddr) -> bool {
        let ip = remote.ip().to_canonical();
        let is_here = ip.is_loopback() || self.machine.as_ref().is_some_and(|machine| machine.contains(&ip));
        let serves = |own: &IpAddr| *own == ip || (own.is_unspecified() && is_here);
        self.local.iter().any(|own| own.port() == remote.port() && serves(&own.ip().to_canonical()))
    }

    /// Addresses from which `remote` may be reached: those of our sockets first, then those that a wildcard socket has by
    /// what the system tells.
    pub(super) fn refuges(&self, remote: SocketAddr) -> impl Iterator<Item = SocketAddr> + '_ {
        let v4 = remote.is_ipv4();
        let own = self.local.iter().filter(move |own| own.is_ipv4() == v4).copied();
        let wild = own.clone().filter(|own| own.ip().is_unspecified());
        let by_wild = wild.flat_map(move |own| {
            let machine = self.machine.iter().flatten().filter(move |ip| ip.is_ipv4() == v4);
            let reaches = move |ip: &&IpAddr| ip.is_loopback() == remote.ip().is_loopback();
            machine.filter(reaches).map(move |ip| SocketAddr::new(*ip, own.port()))
        });
        own.chain(by_wild).filter(|local| !self.is_stray(*local))
    }

    /// Whether the policy itself opens paths from new addresses.
    pub(super) fn address_use(&self) -> AddressUse {
        self.policy.address_use()
    }

    pub(super) fn local(&self) -> &[SocketAddr] {
        &self.local
    }

    pub(crate) fn add_peer(&mut self, address: SocketAddr) {
        if !self.peer.contains(&address) {
            self.first_peer.get_or_insert(address);
            self.peer.push(address);
            self.changed = true;
        }
    }

    /// Our addresses by which the peer may reach us, as far as they are known. A socket may outlive its address.
    pub(super) fn concrete_local(&self) -> Vec<SocketAddr> {
        let own = self.local.iter().filter(|own| !own.ip().is_unspecified() && !self.is_stray(**own)).copied();
        let wild = self.local.iter().filter(|own| own.ip().is_unspecified());
        let machine = |own: &SocketAddr| {
            let (port, v4) = (own.port(), own.is_ipv4());
            let ips = self.machine.iter().flatten().filter(move |ip| ip.is_ipv4() == v4 && self.may_lead_here(**ip));
            ips.map(move |ip| SocketAddr::new(*ip, port))
        };
        own.chain(wild.flat_map(machine)).collect()
    }

    /// Whether an address of this machine means the same to the peer: loopback does where it is this machine too, link-local
    /// addresses lack the name of the link.
    fn may_lead_here(&self, ip: IpAddr) -> bool {
        let is_link_local = matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
        let is_here = self.first_peer().is_some_and(|peer| peer.ip().is_loopback());
        !is_link_local && ip.is_loopback() == is_here
    }

    /// Addresses from which packets of the peer came, those of the handshake and those that it told apart.
    pub(super) fn set_heard(&mut self, heard: impl Iterator<Item = SocketAddr>) {
        let before = std::mem::take(&mut self.heard);
        for address in heard {
            if !self.peer.contains(&address) && !self.heard.contains(&address) {
                self.heard.push(address);
            }
        }
        self.changed |= self.heard != before;
    }

    /// True for an address at which the peer may be reached, as far as is known.
    pub(super) fn knows_peer(&self, address: SocketAddr) -> bool {
        self.peer.contains(&address) || self.heard.contains(&address)
    }

    /// True for an address of the peer that does not rest on its packets alone.
    pub(super) fn is_peer(&self, address: SocketAddr) -> bool {
        self.peer.contains(&address)
    }

    /// The peer's address in the handshake.
    pub(super) fn first_peer(&self) -> Option<SocketAddr> {
        self.first_peer
    }

    /// The peer is where its packets come from and where it says, no more where it was in the handshake.
    pub(super) fn forget_peers(&mut self) {
        self.peer.clear();
    }

    pub(super) fn policy_mut(&mut self) -> &mut dyn PathPolicy {
        &mut *self.policy
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.policy.deadline()
    }

    /// True when there is reason to ask the policy.
    fn is_due(&self, now: Instant) -> bool {
        self.changed || self.policy.deadline().is_some_and(|at| at <= now)
    }

    /// The policy's wishes, when there is reason to ask it.
    pub(super) fn wishes(&mut self, now: Instant, side: Side, paths: &Paths, settings: &PathSettings) -> Vec<Wish> {
        let opener = match (paths.pairing(), side) {
            (Pairing::Paths, Side::Server) => Opener::Peer,
            (Pairing::Paths, Side::Client) | (Pairing::Uniflows, _) => Opener::Us,
        };
        if !self.is_due(now) {
            return Vec::new();
        }
        self.changed = false;
        let fact =
            |slot: &plait_path::table::Slot| Some(PathFact { id: slot.id, tuple: slot.tuple()?, state: slot.state() });
        let facts: Vec<PathFact> = paths.open_slots().filter_map(fact).collect();
        let mut wishes = Vec::new();
        // A server that was told nothing of its addresses has the one of the handshake.
        let first = facts.first().map(|path| path.tuple.local);
        // A peer may call anything its own.
        let is_own =
            |remote: &SocketAddr| self.is_own(*remote) || paths.open_paths().any(|p| p.tuple().local == *remote);
        let peer: Vec<SocketAddr> = self.peer.iter().chain(&self.heard).filter(|to| !is_own(to)).copied().collect();
        let own: Vec<SocketAddr> = self.local.iter().filter(|own| !self.is_stray(**own)).copied().collect();
        let local = if self.local.is_empty() { first.as_slice() } else { &own };
        self.policy.decide(
            &Facts {
                now,
                opener,
                local,
                peer: &peer,
                paths: &facts,
                room: settings.max_paths().saturating_sub(facts.len()),
                validations: settings.max_validations().saturating_sub(paths.validations()),
            },
            &mut wishes,
        );
        wishes
    }
}

impl PathControl {
    /// Lets the policy have its way, where limits allow, and sees after paths that lost their address.
    pub(crate) fn maintain(&mut self, now: Instant, random: &mut Random) {
        // What it may change must be here.
        if self.stage < Stage::Complete || self.table.has_lent() {
            return;
        }
        // RFC 9000 9: no migration before the handshake is confirmed
        if self.is_confirmed() {
            self.challenge_preferred(now);
        }
        self.tend_strays(now);
        if self.table.is_multipath() {
            self.offer_peer_addresses(now);
            self.run_path_policy(now, random);
            self.table.review_report(now);
        }
        self.ask_elsewhere(now);
    }

    /// True where [`Self::maintain`] has something to do for which all paths must be here.
    pub(crate) fn wants_all_paths(&self, now: Instant) -> bool {
        self.plan.is_due(now)
    }

    /// Opens and ends paths as the path policy wishes.
    fn run_path_policy(&mut self, now: Instant, random: &mut Random) {
        for wish in self.plan.wishes(now, self.side, &self.table, &self.settings) {
            match wish {
                Wish::Open { tuple, status } => {
                    // Where the peer stands in the way, `next_id` tells it; the policy is asked again when that changes.
                    if let Err(error) = self.open(now, tuple, status, random) {
                        tracing::debug!(%error, %tuple, "path not opened");
                        let is_full = matches!(error, PathError::Open(OpenError::NoRemoteCid(_)));
                        if is_full && self.let_go_failed(now, random) {
                            self.plan.touch();
                        }
                    }
                }
                Wish::Abandon { id, code } => {
                    let _ = self.abandon(now, id, code, random);
                }
            }
        }
    }
}

/// True when a socket at `own` has all addresses of the family of `ip`.
fn is_wildcard_of(own: &SocketAddr, ip: IpAddr) -> bool {
    own.ip().is_unspecified() && own.is_ipv4() == ip.is_ipv4()
}
