//! Which connection, and which of its paths, a datagram belongs to.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use plait_base::limits::MAX_DEPARTED_CONNECTIONS;
use plait_base::{ConnectionId, FourTuple, Instant, PathId, ResetToken};
use plait_crypto::ResetKey;

use super::cid_list::CidList;
use super::cid_map::CidMap;
use super::first::FirstKey;
use super::waiting::WaitingId;
use crate::io::ConnectionHandle;

/// A connection and one of its paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Destination {
    pub(crate) handle: ConnectionHandle,
    pub(crate) path: PathId,
}

/// Who owns a destination connection id that a client chose for its first packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstOwner {
    /// A connection that was accepted.
    Connection(ConnectionHandle),
    /// One that waits for the application's decision.
    Waiting(WaitingId),
}

/// The key of connections with zero-length ids: the peer and our port. Our IP may still be unknown when they begin.
type PeerKey = (SocketAddr, u16);

/// A reset token under a keyed hash, so that look-ups leak nothing about tokens by their timing (RFC 9000 10.3.1).
type HiddenToken = [u8; 16];

/// All that datagrams are recognized by.
///
/// Ids that we chose are looked up by hash. Keys that peers choose are kept in ordered maps, where no choice of keys
/// makes look-ups slow.
pub(crate) struct Demux {
    cids: CidMap<Destination>,
    peers: BTreeMap<PeerKey, ConnectionHandle>,
    firsts: BTreeMap<FirstKey, FirstOwner>,
    resets: BTreeMap<(SocketAddr, HiddenToken), ConnectionHandle>,
    hiding_key: ResetKey,
    members: Vec<Option<Member>>,
    free: Vec<ConnectionHandle>,
    handshaking: usize,
    /// Connections that are gone while their peers' packets may still be under way, by the time when they left.
    departed: VecDeque<Departed>,
}

/// Names no connection: packets of one that departed are known, and dropped (RFC 9000 10.2.2).
const NOBODY: ConnectionHandle = ConnectionHandle(u32::MAX);

/// What packets of a connection are known by that is gone.
struct Departed {
    cids: CidList,
    first: Option<FirstKey>,
    /// From then on they are a stranger's.
    until: Instant,
}

/// What must be forgotten with a connection.
#[derive(Default)]
struct Member {
    cids: CidList,
    peer: Option<PeerKey>,
    first: Option<FirstKey>,
    resets: Vec<(SocketAddr, HiddenToken)>,
    stage: Stage,
}

/// Whether a connection counts as pressure.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    /// A client's, or one whose handshake is complete.
    #[default]
    Settled,
    /// A server's whose handshake is not complete.
    Handshaking,
}

impl Destination {
    /// False for packets of a connection that departed.
    pub(crate) fn is_somebody(&self) -> bool {
        self.handle != NOBODY
    }
}

impl Demux {
    /// Nothing known. The key hides reset tokens and is nobody else's.
    pub(crate) fn new(hiding_key: ResetKey) -> Self {
        Self {
            cids: CidMap::default(),
            peers: BTreeMap::new(),
            firsts: BTreeMap::new(),
            resets: BTreeMap::new(),
            hiding_key,
            members: Vec::new(),
            free: Vec::new(),
            handshaking: 0,
            departed: VecDeque::new(),
        }
    }

    pub(crate) fn connections(&self) -> usize {
        self.members.len() - self.free.len()
    }

    /// Server connections whose handshake is not complete.
    pub(crate) fn handshaking(&self) -> usize {
        self.handshaking
    }

    /// Forgets a connection whose peer closed it, but for what its peer's late packets are known by, until they cannot come
    /// any more; where too many connections departed in so short a time, the first of them are forgotten altogether.
    pub(crate) fn depart(&mut self, handle: ConnectionHandle, now: Instant, until: Instant) {
        self.forget_departed(now);
        let Some(member) = self.member(handle) else { return };
        let (cids, first) = (std::mem::take(&mut member.cids), member.first.take());
        self.leave(handle);
        for cid in cids.iter() {
            self.cids.insert(cid, Destination { handle: NOBODY, path: PathId::ZERO });
        }
        if let Some(first) = first {
            self.firsts.insert(first, FirstOwner::Connection(NOBODY));
        }
        self.departed.push_back(Departed { cids, first, until });
    }

    /// Forgets those departed whose time is over, in the order in which they left.
    fn forget_departed(&mut self, now: Instant) {
        while let Some(oldest) = self.departed.front()
            && (oldest.until <= now || self.departed.len() >= MAX_DEPARTED_CONNECTIONS)
        {
            let Some(Departed { cids, first, .. }) = self.departed.pop_front() else { return };
            for cid in cids.iter() {
                self.cids.remove(&cid);
            }
            if let Some(first) = first {
                self.firsts.remove(&first);
            }
        }
    }

    /// A handle for a new connection.
    pub(crate) fn enter(&mut self) -> ConnectionHandle {
        let handle = self.free.pop().unwrap_or_else(|| {
            self.members.push(None);
            ConnectionHandle(self.members.len() as u32 - 1)
        });
        self.members[handle.index()] = Some(Member::default());
        handle
    }

    /// Forgets a connection and all that led to it.
    pub(crate) fn leave(&mut self, handle: ConnectionHandle) {
        let Some(member) = self.members.get_mut(handle.index()).and_then(Option::take) else { return };
        for cid in member.cids.iter() {
            self.cids.remove(&cid);
        }
        if let Some(peer) = member.peer {
            self.peers.remove(&peer);
        }
        if let Some(first) = member.first {
            self.firsts.remove(&first);
        }
        for key in &member.resets {
            if self.resets.get(key) == Some(&handle) {
                self.resets.remove(key);
            }
        }
        if member.stage == Stage::Handshaking {
            self.handshaking -= 1;
        }
        self.free.push(handle);
    }

    fn member(&mut self, handle: ConnectionHandle) -> Option<&mut Member> {
        self.members.get_mut(handle.index())?.as_mut()
    }

    /// Packets with `cid` go to this connection and path. An id that is taken stays with its first owner.
    pub(crate) fn register(&mut self, handle: ConnectionHandle, cid: ConnectionId, path: PathId) {
        if cid.is_empty() || self.is_taken(&cid) {
            return;
        }
        let Some(member) = self.member(handle) else { return };
        member.cids.push(cid);
        self.cids.insert(cid, Destination { handle, path });
    }

    /// Packets with `cid` are nobody's any more.
    pub(crate) fn retire(&mut self, handle: ConnectionHandle, cid: ConnectionId) {
        if self.cids.get(&cid).is_some_and(|to| to.handle == handle) {
            self.cids.remove(&cid);
            if let Some(member) = self.member(handle) {
                member.cids.remove(&cid);
            }
        }
    }

    /// All ids that lead to a connection, each with its path.
    pub(crate) fn ids_of(&self, handle: ConnectionHandle) -> impl Iterator<Item = (ConnectionId, PathId)> + '_ {
        let member = self.members.get(handle.index()).and_then(Option::as_ref);
        let cids = member.into_iter().flat_map(|member| member.cids.iter());
        cids.filter_map(|cid| Some((cid, self.cids.get(&cid)?.path)))
    }

    /// True when an id is in use.
    pub(crate) fn is_taken(&self, cid: &ConnectionId) -> bool {
        self.cids.get(cid).is_some()
    }

    /// Packets without an id between these addresses go to this connection; false when they go to another already.
    pub(crate) fn register_peer(&mut self, handle: ConnectionHandle, tuple: FourTuple) -> bool {
        let key = (tuple.remote, tuple.local.port());
        if self.peers.contains_key(&key) {
            return false;
        }
        let Some(member) = self.member(handle) else { return false };
        member.peer = Some(key);
        self.peers.insert(key, handle);
        true
    }

    /// The client's further first packets wait with this one.
    pub(crate) fn first_waits(&mut self, key: FirstKey, id: WaitingId) {
        self.firsts.insert(key, FirstOwner::Waiting(id));
    }

    /// The client's further first packets go to this server connection, which counts as handshaking.
    pub(crate) fn first_accepted(&mut self, key: FirstKey, handle: ConnectionHandle) {
        let Some(member) = self.member(handle) else { return };
        member.first = Some(key);
        member.stage = Stage::Handshaking;
        self.handshaking += 1;
        self.firsts.insert(key, FirstOwner::Connection(handle));
    }

    /// The client's further first packets are nobody's.
    pub(crate) fn first_forgotten(&mut self, key: &FirstKey) {
        self.firsts.remove(key);
    }

    /// The handshake of this connection is complete.
    pub(crate) fn established(&mut self, handle: ConnectionHandle) {
        if let Some(member) = self.member(handle)
            && std::mem::take(&mut member.stage) == Stage::Handshaking
        {
            self.handshaking -= 1;
        }
    }

    fn hide(&self, token: &[u8; 16]) -> HiddenToken {
        self.hiding_key.token(token).0
    }

    /// A datagram from `remote` that ends in `token` ends this connection.
    pub(crate) fn register_reset(&mut self, handle: ConnectionHandle, remote: SocketAddr, token: &ResetToken) {
        let key = (remote, self.hide(&token.0));
        let Some(member) = self.member(handle) else { return };
        if !member.resets.contains(&key) {
            member.resets.push(key);
        }
        self.resets.insert(key, handle);
    }

    pub(crate) fn forget_reset(&mut self, handle: ConnectionHandle, remote: SocketAddr, token: &ResetToken) {
        let key = (remote, self.hide(&token.0));
        let Some(member) = self.member(handle) else { return };
        member.resets.retain(|kept| *kept != key);
        if self.resets.get(&key) == Some(&handle) {
            self.resets.remove(&key);
        }
    }

    /// The owner of an id of ours.
    pub(crate) fn by_cid(&self, cid: &ConnectionId) -> Option<Destination> {
        self.cids.get(cid)
    }

    /// The connection with zero-length ids between these addresses.
    pub(crate) fn by_peer(&self, tuple: &FourTuple) -> Option<Destination> {
        let handle = *self.peers.get(&(tuple.remote, tuple.local.port()))?;
        Some(Destination { handle, path: PathId::ZERO })
    }

    /// The owner of an id that a client chose.
    pub(crate) fn by_first(&self, key: &FirstKey) -> Option<FirstOwner> {
        self.firsts.get(key).copied()
    }

    /// The connection that a datagram from `remote` resets, if it does (RFC 9000 10.3.1).
    pub(crate) fn by_reset(&self, remote: SocketAddr, datagram: &[u8]) -> Option<ConnectionHandle> {
        // A look at the address first: most peers that send unknown ids have no tokens with us.
        self.resets.range((remote, [0; 16])..=(remote, [0xff; 16])).next()?;
        let token = datagram.last_chunk::<16>()?;
        self.resets.get(&(remote, self.hide(token))).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demux() -> Demux {
        Demux::new(ResetKey::new(&[1; 32]))
    }

    fn cid(n: u8) -> ConnectionId {
        ConnectionId::new(&[n; 8]).unwrap()
    }

    fn remote(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    #[test]
    fn an_id_names_connection_and_path() {
        let mut demux = demux();
        let (a, b) = (demux.enter(), demux.enter());
        demux.register(a, cid(1), PathId(0));
        demux.register(a, cid(2), PathId(3));
        demux.register(b, cid(2), PathId(0));
        assert_eq!(demux.by_cid(&cid(2)), Some(Destination { handle: a, path: PathId(3) }));
        demux.retire(b, cid(2));
        assert!(demux.by_cid(&cid(2)).is_some(), "only the owner retires an id");
        demux.retire(a, cid(2));
        assert_eq!(demux.by_cid(&cid(2)), None);
    }

    #[test]
    fn leaving_forgets_everything_once() {
        let mut demux = demux();
        let a = demux.enter();
        let token = ResetToken([9; 16]);
        demux.register(a, cid(1), PathId(0));
        demux.first_accepted((remote(1), cid(7)), a);
        demux.register_reset(a, remote(1), &token);
        assert_eq!((demux.connections(), demux.handshaking()), (1, 1));
        demux.leave(a);
        demux.leave(a);
        assert_eq!((demux.connections(), demux.handshaking()), (0, 0));
        assert_eq!(demux.by_cid(&cid(1)), None);
        assert_eq!(demux.by_first(&(remote(1), cid(7))), None);
        assert_eq!(demux.by_reset(remote(1), &[9; 40]), None);
        assert_eq!(demux.enter(), a, "handles are given out again");
    }

    #[test]
    fn who_departs_is_known_for_a_while() {
        // RFC 9000 10.2.2
        let at = |ms| Instant::ZERO + std::time::Duration::from_millis(ms);
        let mut demux = demux();
        let (a, key) = (demux.enter(), (remote(1), cid(7)));
        demux.register(a, cid(1), PathId(2));
        demux.first_accepted(key, a);
        demux.register_reset(a, remote(1), &ResetToken([9; 16]));
        demux.depart(a, at(0), at(10));
        demux.depart(a, at(0), at(10));
        assert_eq!((demux.connections(), demux.handshaking(), demux.departed.len()), (0, 0, 1));
        let b = demux.enter();
        assert_eq!(b, a, "the handle is free");
        assert!(demux.is_taken(&cid(1)) && !demux.by_cid(&cid(1)).unwrap().is_somebody());
        assert_eq!(demux.by_first(&key), Some(FirstOwner::Connection(NOBODY)));
        assert_eq!(demux.by_reset(remote(1), &[9; 40]), None);
        demux.register(b, cid(2), PathId(0));
        demux.depart(b, at(9), at(20));
        assert!(demux.by_cid(&cid(1)).is_some(), "its time is not over");
        let c = demux.enter();
        demux.depart(c, at(10), at(20));
        assert_eq!((demux.by_cid(&cid(1)), demux.by_first(&key)), (None, None));
        assert!(demux.by_cid(&cid(2)).is_some());
        for _ in 0..2 * MAX_DEPARTED_CONNECTIONS {
            let d = demux.enter();
            demux.depart(d, at(11), at(20));
        }
        assert_eq!(demux.departed.len(), MAX_DEPARTED_CONNECTIONS);
        assert_eq!(demux.by_cid(&cid(2)), None, "the first to leave is the first to be forgotten");
    }

    #[test]
    fn established_counts_once() {
        let mut demux = demux();
        let a = demux.enter();
        demux.first_accepted((remote(1), cid(7)), a);
        demux.established(a);
        demux.established(a);
        assert_eq!(demux.handshaking(), 0);
        demux.leave(a);
        assert_eq!(demux.handshaking(), 0);
    }

    #[test]
    fn resets_only_from_the_right_address() {
        // RFC 9000 10.3.1: tokens count for the address they were given for
        let mut demux = demux();
        let a = demux.enter();
        let token = ResetToken([9; 16]);
        demux.register_reset(a, remote(1), &token);
        let mut datagram = vec![0x40; 30];
        datagram.extend_from_slice(&token.0);
        assert_eq!(demux.by_reset(remote(1), &datagram), Some(a));
        assert_eq!(demux.by_reset(remote(2), &datagram), None);
        assert_eq!(demux.by_reset(remote(1), &datagram[..45]), None);
        assert_eq!(demux.by_reset(remote(1), &[]), None);
        demux.forget_reset(a, remote(1), &token);
        assert_eq!(demux.by_reset(remote(1), &datagram), None);
    }

    #[test]
    fn a_first_id_belongs_to_an_address() {
        let mut demux = demux();
        let a = demux.enter();
        demux.first_accepted((remote(1), cid(7)), a);
        assert_eq!(demux.by_first(&(remote(1), cid(7))), Some(FirstOwner::Connection(a)));
        assert_eq!(demux.by_first(&(remote(2), cid(7))), None);
    }

    #[test]
    fn one_connection_without_ids_for_each_peer_and_port() {
        // RFC 9000 5.1-3
        let mut demux = demux();
        let (a, b) = (demux.enter(), demux.enter());
        let unknown = FourTuple { local: "0.0.0.0:5".parse().unwrap(), remote: remote(1) };
        let known = FourTuple { local: "10.0.0.1:5".parse().unwrap(), remote: remote(1) };
        assert!(demux.register_peer(a, unknown));
        assert!(!demux.register_peer(b, known));
        assert_eq!(demux.by_peer(&known).map(|to| to.handle), Some(a));
        demux.leave(a);
        assert_eq!(demux.by_peer(&known), None);
    }
}
