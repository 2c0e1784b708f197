//! How much waits for connections at most.

use bytes::BytesMut;
use plait_base::{FourTuple, Instant, Random};
use plait_engine::endpoint::{Endpoint, Received};

use super::*;
use crate::{ClientConfig, EndpointConfig};

/// UDP payload bytes of what comes.
const SIZE: usize = 1_000;

/// An endpoint with one connection, and a datagram for it.
struct Source {
    endpoint: Endpoint,
    tuple: FourTuple,
    datagram: Vec<u8>,
}

impl Source {
    fn new() -> Self {
        let config = EndpointConfig::fresh().unwrap().into_engine();
        let mut endpoint = Endpoint::new(Arc::new(config), None, Random::from_u64(1));
        let client = ClientConfig::insecure(["test"]).unwrap().into_engine();
        let tuple = FourTuple { local: "10.0.0.1:1".parse().unwrap(), remote: "10.0.0.2:2".parse().unwrap() };
        let (_, mut connection) = endpoint.connect(Instant::ZERO, client, tuple, "localhost").unwrap();
        let mut first = Vec::new();
        connection.poll_transmit(Instant::ZERO, 1, &mut first).unwrap();
        // RFC 9000 17.2: flags, version, then both ids, each after its length
        let scid = &first[6 + usize::from(first[5])..];
        let mut datagram = vec![0x40];
        datagram.extend_from_slice(&scid[1..=usize::from(scid[0])]);
        datagram.resize(SIZE, 0);
        Self { endpoint, tuple, datagram }
    }

    fn input(&mut self) -> Input {
        let data = BytesMut::from(&self.datagram[..]);
        match self.endpoint.receive(Instant::ZERO, self.tuple, None, data, &mut Vec::new()) {
            Received::Connection(_, input) => input,
            _ => panic!("the connection does not know its id"),
        }
    }
}

/// Places of `SIZE` bytes in so many bytes.
fn places(bytes: usize) -> usize {
    bytes / (SIZE + size_of::<Input>())
}

/// Brings datagrams until one is refused; how many were taken.
fn fill(inbox: &Inbox, source: &mut Source) -> usize {
    let before = inbox.dropped();
    (0..)
        .take_while(|_| {
            inbox.push(source.input());
            inbox.dropped() == before
        })
        .count()
}

#[test]
fn one_connection_holds_its_own_bound_until_it_has_absorbed() {
    let (mut source, inbox) = (Source::new(), Inbox::new(Arc::default()));
    assert_eq!(fill(&inbox, &mut source), places(MAX_INBOX_BYTES));
    let mut taken = VecDeque::new();
    inbox.take(&mut taken, Waker::noop());
    // What the driver took is still in memory.
    assert_eq!(fill(&inbox, &mut source), 0);
    inbox.on_absorbed(taken.drain(..7).map(|input| cost(&input)).sum());
    assert_eq!(fill(&inbox, &mut source), 7);
}

#[test]
fn connections_of_an_endpoint_share_one_bound() {
    let mut source = Source::new();
    let budget = Arc::new(InboxBudget { limit: 100 * cost(&source.input()), held: AtomicUsize::new(0) });
    let inboxes: Vec<Inbox> = (0..3).map(|_| Inbox::new(budget.clone())).collect();
    (0..40).for_each(|_| inboxes[0].push(source.input()));
    assert_eq!(fill(&inboxes[1], &mut source), 60);
    assert_eq!(fill(&inboxes[2], &mut source), 0);
    assert_eq!(inboxes[0].dropped(), 0, "the newest is refused, and nobody's before it");

    // One that ends leaves its part to the others, with what its driver had taken.
    let mut taken = VecDeque::new();
    inboxes[0].take(&mut taken, Waker::noop());
    inboxes[0].clear();
    assert_eq!(fill(&inboxes[2], &mut source), 40);
    drop(inboxes);
    assert_eq!(budget.held.load(Ordering::Relaxed), 0);
}

#[test]
fn silence_leaves_no_room_behind() {
    let (mut source, inbox) = (Source::new(), Inbox::new(Arc::default()));
    let mut taken = VecDeque::new();
    for _ in 0..3 {
        inbox.push(source.input());
        inbox.take(&mut taken, Waker::noop());
        inbox.on_absorbed(taken.drain(..).map(|input| cost(&input)).sum());
    }
    inbox.shrink_to_fit();
    taken.shrink_to_fit();
    assert_eq!((inbox.lock().inputs.capacity(), taken.capacity()), (0, 0));
}
