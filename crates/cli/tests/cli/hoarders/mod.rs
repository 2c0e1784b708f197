//! Resident memory of a server under peers that hoard: what was promised to them, times 1.5, is what they can hold.
//!
//! Small counts in an ordinary run. The full table:
//! `PLAIT_HOARDERS=full cargo test -p plait-cli --test cli hoarders -- --nocapture`

#![allow(unreachable_pub)] // modules of one test binary

mod peers;
mod server;
mod wire;

use std::fmt::Write;
use std::time::Duration;

use plait_base::CloseCode;

use self::server::Server;
use self::wire::{Wire, params};

/// What a process may hold beside what it promised its peers: receive buffers, queues on their way, what the allocator
/// keeps for itself. Bytes.
const PROCESS_BYTES: u64 = 4 << 20;
/// What a connection may hold beside its windows, whatever its peer does: TLS, keys, paths, packets before their keys,
/// CRYPTO data in pieces. Bytes.
const CONNECTION_BYTES: u64 = 64 << 10;

/// What a connection costs that says nothing after its handshake, all told; `docs/performance.md` says what is whose. Bytes.
const IDLE_BYTES: u64 = 20_000;

/// Counts of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// In an ordinary run of the tests.
    Small,
    /// For the table.
    Full,
}

impl Scale {
    fn wanted() -> Self {
        if std::env::var("PLAIT_HOARDERS").is_ok_and(|v| v == "full") { Self::Full } else { Self::Small }
    }

    /// The count for this scale.
    pub fn of(self, small: u64, full: u64) -> u64 {
        if self == Self::Full { full } else { small }
    }
}

/// What hoarders did, and what they were promised for it.
pub struct Hoard {
    /// Connections that they hold.
    pub connections: u64,
    /// Bytes that flow control, or a bound of ours, promised over all of them.
    pub promised: u64,
    /// Keeps their ends alive while the server is measured.
    pub ends: Box<dyn std::any::Any>,
}

/// One way to hoard.
struct Case {
    name: &'static str,
    server: fn() -> Server,
    hoard: fn(&Server, Scale) -> Hoard,
}

const CASES: &[Case] = &[
    Case { name: "small pieces", server: Server::library, hoard: peers::small_pieces },
    Case { name: "pieces beyond gaps", server: Server::library, hoard: peers::gaps },
    Case { name: "an unread stream beside a busy one", server: Server::library, hoard: peers::unread_beside_busy },
    Case { name: "unread datagrams beside a busy stream", server: Server::library, hoard: peers::unread_datagrams },
    Case { name: "half-open handshakes", server: Server::library, hoard: peers::half_open },
    Case { name: "CRYPTO gaps, packets before keys", server: Server::library, hoard: peers::before_keys },
    Case { name: "idle connections", server: Server::library, hoard: peers::idle },
    Case { name: "GET without credit", server: peers::serve_files, hoard: peers::without_credit },
    Case { name: "GET without acks", server: peers::serve_files, hoard: peers::without_acks },
    Case { name: "GET and STOP_SENDING", server: peers::serve_files, hoard: peers::stopped },
];

#[test]
#[allow(clippy::disallowed_methods)] // it watches another process
fn hoarders_hold_no_more_than_was_promised() {
    let scale = Scale::wanted();
    let mut table = String::from(
        "| hoarders | connections | promised, KB | grew, KB | of 1.5 x promised |\n|---|---|---|---|---|\n",
    );
    let mut faults = Vec::new();
    for case in CASES {
        let server = (case.server)();
        // One honest connection first: what is made once is made.
        drop(peers::honest(&server));
        let Some(before) = server.resident() else {
            println!("skipped: this system does not tell the resident memory of a process");
            return;
        };
        let hoard = (case.hoard)(&server, scale);
        // Longer than data is lent, and than a timer needs on a busy machine.
        std::thread::sleep(Duration::from_millis(300));
        let grew = server.resident().unwrap().saturating_sub(before);
        let bound = hoard.promised + hoard.connections * CONNECTION_BYTES + PROCESS_BYTES;
        let share = 100 * grew / (bound + bound / 2);
        writeln!(table, "| {} | {} | {} | {} | {share} % |", case.name, hoard.connections, bound / 1000, grew / 1000)
            .unwrap();
        if share > 100 {
            faults.push(case.name);
        }
        drop(hoard.ends);
    }
    println!("{table}");
    assert!(faults.is_empty(), "too much held: {faults:?}\n{table}");
}

#[test]
#[allow(clippy::disallowed_methods)] // it watches another process
fn an_idle_connection_costs_little() {
    let server = Server::library();
    let first: Vec<Wire> = (0..20).map(|n| Wire::connect(server.address, server.alpn, params(0), n)).collect();
    let Some(before) = server.resident() else {
        println!("skipped: this system does not tell the resident memory of a process");
        return;
    };
    let count = Scale::wanted().of(100, 1_000);
    let idle = |n| {
        let mut wire = Wire::connect(server.address, server.alpn, params(0), 100 + n);
        wire.ack();
        wire
    };
    let ends: Vec<Wire> = (0..count).map(idle).collect();
    // Spare memory is given back after a moment of silence.
    std::thread::sleep(Duration::from_millis(600));
    let each = server.resident().unwrap().saturating_sub(before) / count;
    println!("an idle connection costs {each} bytes");
    assert!(each <= IDLE_BYTES + IDLE_BYTES / 2, "an idle connection costs {each} bytes");
    drop((first, ends));
}

/// `--patience`: who takes nothing of what it asked for is told so and dropped; who takes it slowly is not.
#[test]
fn a_client_that_takes_nothing_is_given_up() {
    let server = peers::serve_files_with(&["--patience", "1"]);
    let mut idle = Wire::connect(server.address, server.alpn, params(0), 1);
    let mut mute = Wire::connect(server.address, server.alpn, params(0), 2);
    let mut slow = Wire::connect(server.address, server.alpn, params(1 << 30), 3);
    mute.frames(peers::get(0));
    slow.frames(peers::get(0));
    for _ in 0..400 {
        for wire in [&mut idle, &mut mute, &mut slow] {
            wire.listen(Duration::from_millis(50));
        }
        assert_eq!(idle.closed, None, "it asked for nothing");
        assert_eq!(slow.closed, None, "it takes what it gets");
        slow.ack();
        match mute.closed {
            Some(code) => return assert_eq!(code, CloseCode(408)),
            // Packets alone are no progress.
            None => mute.frames(vec![0x01]),
        }
    }
    panic!("the connection was not given up");
}
