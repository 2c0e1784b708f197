//! The connection ids of one connection, for its end: each with its length before it, since most are much shorter than they may be.

use plait_base::ConnectionId;

/// Room is made for so many ids of one length: a connection has about as many, and rarely more later.
const IDS_AT_ONCE: usize = 6;

/// Connection ids in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct CidList(Vec<u8>);

impl CidList {
    pub(super) fn push(&mut self, cid: ConnectionId) {
        let bytes = 1 + cid.len();
        if self.0.capacity() - self.0.len() < bytes {
            self.0.reserve_exact(IDS_AT_ONCE * bytes);
        }
        self.0.push(cid.len() as u8);
        self.0.extend_from_slice(&cid);
    }

    /// False where it is not there.
    pub(super) fn remove(&mut self, cid: &ConnectionId) -> bool {
        let Some(index) = self.iter().position(|kept| kept == *cid) else { return false };
        let from: usize = self.iter().take(index).map(|kept| 1 + kept.len()).sum();
        self.0.drain(from..=from + cid.len());
        true
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        let mut rest = &self.0[..];
        std::iter::from_fn(move || {
            let (len, behind) = rest.split_first()?;
            let (cid, behind) = behind.split_at_checked(usize::from(*len))?;
            rest = behind;
            ConnectionId::new(cid)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_all_lengths_come_back_in_their_order() {
        let cid = |len: usize| ConnectionId::new(&vec![len as u8; len]).unwrap();
        let mut list = CidList::default();
        (0..=20).for_each(|len| list.push(cid(len)));
        assert!(list.iter().eq((0..=20).map(cid)));
        assert_eq!([0, 7, 20, 7].map(|len| list.remove(&cid(len))), [true, true, true, false]);
        assert!(list.iter().eq((1..20).filter(|len| *len != 7).map(cid)));
        assert_eq!(CidList::default().iter().count(), 0);
    }

    #[test]
    fn ids_of_eight_bytes_take_nine() {
        let mut list = CidList::default();
        (0..2 * IDS_AT_ONCE as u8).for_each(|n| list.push(ConnectionId::new(&[n; 8]).unwrap()));
        assert_eq!(list.0.capacity(), 2 * IDS_AT_ONCE * 9);
    }
}
