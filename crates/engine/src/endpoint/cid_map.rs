//! What connection ids of ours lead to. Those of eight bytes, which is the usual length, take half the memory of longer ones: an
//! endpoint has several for each connection.

use plait_base::ConnectionId;
use rustc_hash::FxHashMap;

/// A map by connection id; to be used for ids that we chose, since no care is taken of keys that collide.
#[derive(Debug)]
pub(super) struct CidMap<T> {
    of_eight: FxHashMap<u64, T>,
    others: FxHashMap<ConnectionId, T>,
}

/// An id of eight bytes as a number.
fn as_number(cid: &ConnectionId) -> Option<u64> {
    <[u8; 8]>::try_from(&cid[..]).ok().map(u64::from_be_bytes)
}

impl<T> Default for CidMap<T> {
    fn default() -> Self {
        Self { of_eight: FxHashMap::default(), others: FxHashMap::default() }
    }
}

impl<T: Copy> CidMap<T> {
    #[inline]
    pub(super) fn get(&self, cid: &ConnectionId) -> Option<T> {
        match as_number(cid) {
            Some(number) => self.of_eight.get(&number).copied(),
            None => self.others.get(cid).copied(),
        }
    }

    /// What it led to before.
    pub(super) fn insert(&mut self, cid: ConnectionId, to: T) -> Option<T> {
        match as_number(&cid) {
            Some(number) => self.of_eight.insert(number, to),
            None => self.others.insert(cid, to),
        }
    }

    pub(super) fn remove(&mut self, cid: &ConnectionId) {
        match as_number(cid) {
            Some(number) => self.of_eight.remove(&number),
            None => self.others.remove(cid),
        };
    }

    pub(super) fn len(&self) -> usize {
        self.of_eight.len() + self.others.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_all_lengths_are_told_apart() {
        let cids: Vec<_> = (0..=20).map(|len| ConnectionId::new(&vec![0; len]).unwrap()).collect();
        let mut map = CidMap::default();
        for (at, cid) in cids.iter().enumerate() {
            assert_eq!((map.get(cid), map.insert(*cid, at)), (None, None), "{at} bytes");
        }
        assert_eq!((map.insert(cids[8], 50), map.insert(cids[9], 51), map.len()), (Some(8), Some(9), 21));
        let eight = |last: u8| ConnectionId::new(&[0, 0, 0, 0, 0, 0, 0, last]).unwrap();
        assert_eq!((map.get(&eight(0)), map.get(&eight(1)), map.get(&cids[9])), (Some(50), None, Some(51)));
        cids.iter().for_each(|cid| map.remove(cid));
        map.remove(&eight(1));
        assert_eq!((map.len(), map.get(&cids[8]), map.get(&cids[20])), (0, None, None));
    }
}
