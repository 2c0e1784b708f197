//! Connection ids that somebody looks up beside the endpoint: on a thread of its own, without the endpoint's lock.

use bytes::BytesMut;
use plait_base::{ConnectionId, Ecn, FourTuple, Instant, PathId};
use rustc_hash::FxHashMap;

use super::cid_list::CidList;
use super::cid_map::CidMap;
use super::demux::Destination;
use super::receive::{DatagramInfo, Received, receive_known};
use crate::io::{ConnectionHandle, EndpointEvent, Input};

/// Ids of ours that lead to some of an endpoint's connections.
///
/// What the endpoint knows it may know too: whoever keeps it tells it of the same events, before the endpoint where an id or a
/// connection goes. So it holds no id that the endpoint does not hold, and no more than those.
#[derive(Debug)]
pub struct KnownIds {
    cid_len: usize,
    ids: CidMap<Destination>,
    owned: FxHashMap<ConnectionHandle, CidList>,
}

impl KnownIds {
    /// None yet, of an endpoint whose ids have `cid_len` bytes.
    pub fn new(cid_len: usize) -> Self {
        Self { cid_len, ids: CidMap::default(), owned: FxHashMap::default() }
    }

    /// Datagrams with this id are of that connection and path.
    pub fn register(&mut self, handle: ConnectionHandle, cid: ConnectionId, path: PathId) {
        if !cid.is_empty() && self.ids.insert(cid, Destination { handle, path }).is_none() {
            self.owned.entry(handle).or_default().push(cid);
        }
    }

    /// A connection tells its news; an id that it registers is taken in.
    pub fn on_connection_event(&mut self, handle: ConnectionHandle, event: EndpointEvent) {
        match event {
            EndpointEvent::Register { cid, path } => self.register(handle, cid, path),
            EndpointEvent::Retire { cid } => {
                if let Some(owned) = self.owned.get_mut(&handle)
                    && owned.remove(&cid)
                {
                    self.ids.remove(&cid);
                }
            }
            EndpointEvent::Drained => self.forget(handle),
            EndpointEvent::ResetToken { .. }
            | EndpointEvent::ForgetToken { .. }
            | EndpointEvent::AddressProven { .. }
            | EndpointEvent::Established
            | EndpointEvent::Draining { .. } => {}
        }
    }

    /// Nothing leads to this connection any more.
    pub fn forget(&mut self, handle: ConnectionHandle) {
        for cid in self.owned.remove(&handle).unwrap_or_default().iter() {
            self.ids.remove(&cid);
        }
    }

    /// How many ids are known.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// True when none is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// As [`Endpoint::receive_front`](super::Endpoint::receive_front) for datagrams whose connection is known here; none, and `train`
    /// as it was, where it is not: then the endpoint is to be asked.
    pub fn receive_front(
        &self,
        now: Instant,
        tuple: FourTuple,
        ecn: Option<Ecn>,
        train: &mut BytesMut,
        segment_bytes: usize,
    ) -> Option<(ConnectionHandle, Input)> {
        let arrival = DatagramInfo { now, tuple, ecn };
        match receive_known(arrival, self.cid_len, train, segment_bytes, |cid| self.ids.get(cid))? {
            Received::Connection(handle, input) => Some((handle, input)),
            Received::Nothing | Received::Incoming(_) | Received::Reply(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cid(n: u8) -> ConnectionId {
        ConnectionId::new(&[n; 8]).unwrap()
    }

    fn train(ids: &[u8]) -> BytesMut {
        ids.iter().flat_map(|id| [[0x40].as_slice(), &[*id; 8], &[7; 21]].concat()).collect()
    }

    fn tuple() -> FourTuple {
        let address = |port| std::net::SocketAddr::from(([127, 0, 0, 1], port));
        FourTuple { local: address(1), remote: address(2) }
    }

    #[test]
    fn what_is_known_is_taken_and_the_rest_is_left_for_the_endpoint() {
        let (a, b) = (ConnectionHandle(3), ConnectionHandle(5));
        let mut known = KnownIds::new(8);
        known.register(a, cid(1), PathId::ZERO);
        known.on_connection_event(b, EndpointEvent::Register { cid: cid(2), path: PathId(4) });
        let mut bytes = train(&[1, 1, 2, 9, 1]);
        let take = |bytes: &mut BytesMut| {
            let (handle, input) = known.receive_front(Instant::ZERO, tuple(), None, bytes, 30)?;
            Some((handle, input.path(), input.datagrams()))
        };
        assert_eq!(take(&mut bytes), Some((a, PathId::ZERO, 2)));
        assert_eq!(take(&mut bytes), Some((b, PathId(4), 1)));
        assert_eq!(take(&mut bytes), None, "nobody's here");
        assert_eq!(bytes, train(&[9, 1]));
        let mut long = BytesMut::from(&[0xc0, 1, 1, 1, 1, 1, 1, 1, 1, 1][..]);
        assert_eq!((take(&mut long), long.len()), (None, 10));
    }

    #[test]
    fn ids_go_one_by_one_and_with_their_connection() {
        let (a, b) = (ConnectionHandle(0), ConnectionHandle(1));
        let mut known = KnownIds::new(8);
        for (handle, n) in [(a, 1), (a, 2), (a, 3), (b, 4)] {
            known.register(handle, cid(n), PathId::ZERO);
        }
        known.on_connection_event(b, EndpointEvent::Retire { cid: cid(1) });
        assert_eq!(known.len(), 4, "only the owner retires an id");
        known.on_connection_event(a, EndpointEvent::Retire { cid: cid(1) });
        assert_eq!(known.len(), 3);
        known.on_connection_event(a, EndpointEvent::Drained);
        assert_eq!((known.len(), known.is_empty()), (1, false));
        known.forget(b);
        assert!(known.is_empty() && known.owned.is_empty());
    }
}
