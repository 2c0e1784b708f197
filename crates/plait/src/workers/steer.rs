//! A program by which the system deals datagrams to the sockets of a server's threads: by their connection ids.
//!
//! A datagram with a short header goes to the socket of the thread that its id leads to ([`CidSteering`]), one with a long header, whose
//! id is the client's at first, to the socket that the system chooses by the addresses.

use std::sync::Arc;

use plait_base::Random;
use plait_crypto::CidSteering;

use crate::sockets::SharedSocket;

/// Lets the system deal datagrams to the sockets of each group by connection ids of `cid_len` bytes. None where it deals by addresses: ids
/// are too short, there is one socket, or the system refuses.
pub(crate) fn steer(
    groups: &[Vec<Arc<SharedSocket>>],
    cid_len: usize,
    random: &mut Random,
) -> Option<Arc<CidSteering>> {
    let threads = groups.iter().map(Vec::len).min()?;
    if threads < 2 || cid_len < CidSteering::BLOCK_BYTES {
        return None;
    }
    let steering = CidSteering::generate(threads, random);
    for first in groups.iter().filter_map(|group| group.first()) {
        if let Err(error) = attach(first, &steering) {
            tracing::info!(%error, local = %first.local(), "datagrams are dealt to threads by their addresses");
            return None;
        }
    }
    Some(Arc::new(steering))
}

#[cfg(target_os = "linux")]
fn attach(socket: &SharedSocket, steering: &CidSteering) -> std::io::Result<()> {
    #[cfg(test)]
    if refusal::is_wanted() {
        return Err(std::io::ErrorKind::PermissionDenied.into());
    }
    socket.deal_by(&mut filter::program(steering))
}

#[cfg(not(target_os = "linux"))]
fn attach(_: &SharedSocket, _: &CidSteering) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// The program, in the instructions of classic BPF.
#[cfg(target_os = "linux")]
mod filter {
    use libc::{
        BPF_A, BPF_ABS, BPF_ADD, BPF_ALU, BPF_B, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_LDX, BPF_LSH, BPF_MEM, BPF_MISC,
        BPF_MOD, BPF_RET, BPF_RSH, BPF_ST, BPF_TAX, BPF_W, BPF_X, BPF_XOR, sock_filter,
    };
    use plait_crypto::CidSteering;

    /// Answers that name no socket: the system chooses by the addresses.
    const BY_ADDRESS: u32 = u32::MAX;
    const LONG_FORM: u32 = 0x80;

    fn op(code: u32, k: u32) -> sock_filter {
        // Codes have 16 bits.
        sock_filter { code: code as u16, jt: 0, jf: 0, k }
    }

    /// Loads a word of the UDP payload; where there is none, the program answers 0.
    fn load(offset: u32) -> sock_filter {
        op(BPF_LD | BPF_W | BPF_ABS, offset)
    }

    /// What `steering` says of the id that begins behind the first byte of a short header.
    pub(super) fn program(steering: &CidSteering) -> Vec<sock_filter> {
        let mut ops = vec![
            op(BPF_LD | BPF_B | BPF_ABS, 0),
            sock_filter { jf: 1, ..op(BPF_JMP | BPF_JSET | BPF_K, LONG_FORM) },
            op(BPF_RET | BPF_K, BY_ADDRESS),
            load(1),
            op(BPF_ST, 0),
            load(5),
            op(BPF_ST, 1),
        ];
        for (round, key) in steering.round_keys().iter().enumerate() {
            let (changed, other) = if round % 2 == 0 { (0, 1) } else { (1, 0) };
            // M[changed] += (((M[other] << 4) ^ (M[other] >> 5)) + M[other]) ^ key
            ops.extend([
                op(BPF_LD | BPF_MEM, other),
                op(BPF_ALU | BPF_LSH | BPF_K, 4),
                op(BPF_MISC | BPF_TAX, 0),
                op(BPF_LD | BPF_MEM, other),
                op(BPF_ALU | BPF_RSH | BPF_K, 5),
                op(BPF_ALU | BPF_XOR | BPF_X, 0),
                op(BPF_LDX | BPF_MEM, other),
                op(BPF_ALU | BPF_ADD | BPF_X, 0),
                op(BPF_ALU | BPF_XOR | BPF_K, *key),
                op(BPF_LDX | BPF_MEM, changed),
                op(BPF_ALU | BPF_ADD | BPF_X, 0),
                op(BPF_ST, changed),
            ]);
        }
        ops.extend([
            op(BPF_LD | BPF_MEM, 0),
            op(BPF_ALU | BPF_MOD | BPF_K, steering.receivers()),
            op(BPF_RET | BPF_A, 0),
        ]);
        ops
    }
}

/// A system that refuses, for tests.
#[cfg(test)]
pub(super) mod refusal {
    use std::cell::Cell;

    thread_local! {
        static IS_WANTED: Cell<bool> = const { Cell::new(false) };
    }

    /// Servers that this thread makes from now on get no program.
    pub(in super::super) fn want() {
        IS_WANTED.set(true);
    }

    pub(super) fn is_wanted() -> bool {
        IS_WANTED.get()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{SocketAddr, UdpSocket};

    use super::*;
    use crate::Bind;

    fn group(count: usize) -> Vec<Arc<SharedSocket>> {
        let bind = Bind::address(SocketAddr::from(([127, 0, 0, 1], 0)));
        let sockets = bind.open_group(count, |_| ()).unwrap();
        sockets
            .into_iter()
            .enumerate()
            .map(|(index, socket)| Arc::new(SharedSocket::of_worker(socket, index)))
            .collect()
    }

    /// The socket that has a datagram.
    async fn taken_by(group: &[Arc<SharedSocket>], datagram: &[u8], from: &UdpSocket) -> usize {
        from.send_to(datagram, group[0].local()).unwrap();
        loop {
            for (index, socket) in group.iter().enumerate() {
                let mut buffer = [0; 64];
                if let Ok(len) = socket.bare().recv(&mut buffer) {
                    assert_eq!(&buffer[..len], datagram);
                    return index;
                }
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }

    #[tokio::test]
    async fn the_system_deals_by_the_ids_of_short_headers_alone() {
        let mut random = Random::from_u64(3);
        for count in [2, 3, 7] {
            let group = group(count);
            let steering = steer(std::slice::from_ref(&group), 8, &mut random).expect("the system takes the program");
            let from = UdpSocket::bind("127.0.0.1:0").unwrap();
            for receiver in (0..count).cycle().take(60) {
                let cid = steering.connection_id(8, receiver, &mut random);
                let short = [&[0x40], &*cid, &[1, 2, 3]].concat();
                assert_eq!(taken_by(&group, &short, &from).await, receiver);
            }
            let mut by_address = None;
            for receiver in (0..count).cycle().take(30) {
                let cid = steering.connection_id(8, receiver, &mut random);
                let long = [&[0xc0], &*cid].concat();
                let taken = taken_by(&group, &long, &from).await;
                assert_eq!(*by_address.get_or_insert(taken), taken, "the addresses alone decide");
            }
            // Nonsense goes somewhere too.
            assert!(taken_by(&group, &[0x40, 1], &from).await < count);
        }
    }

    #[tokio::test]
    async fn what_the_system_refuses_leaves_the_addresses_to_decide() {
        let group = group(2);
        assert!(group[0].deal_by(&mut []).is_err(), "an empty program");
        assert!(steer(std::slice::from_ref(&group), 7, &mut Random::from_u64(3)).is_none(), "too short an id");
        refusal::want();
        assert!(steer(std::slice::from_ref(&group), 8, &mut Random::from_u64(3)).is_none());
        let mut taken = [0; 2];
        for _ in 0..40 {
            let from = UdpSocket::bind("127.0.0.1:0").unwrap();
            let first = taken_by(&group, &[0x40, 1, 2, 3, 4, 5, 6, 7, 8], &from).await;
            assert_eq!(taken_by(&group, &[0x40, 8, 7, 6, 5, 4, 3, 2, 1], &from).await, first);
            taken[first] += 1;
        }
        assert!(taken[0] > 0 && taken[1] > 0, "{taken:?}");
    }
}
