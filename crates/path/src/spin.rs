//! The latency spin bit of one path, by which the network may watch round trips (RFC 9000 17.4).

use plait_base::{Random, Side};

/// One path in so many does not spin, at random, so that those that never do are not conspicuous.
const ONE_IN: u64 = 10;

/// What the spin bit of the next packet is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpinBit {
    role: Role,
    bit: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Role {
    /// The bit stays as it is.
    #[default]
    Still,
    /// A client sends the opposite of what it got.
    Inverts,
    /// A server sends what it got.
    Reflects,
}

impl SpinBit {
    /// A path that spins, unless chance is against it: then its bit is random and stays.
    pub fn chosen(side: Side, random: &mut Random) -> Self {
        // RFC 9000 17.4: disabled for at least one in 16 paths
        let still = random.below(ONE_IN) == 0;
        let role = match side {
            _ if still => Role::Still,
            Side::Client => Role::Inverts,
            Side::Server => Role::Reflects,
        };
        Self { role, bit: still && random.next_u32() & 1 == 1 }
    }

    /// A path that does not spin.
    pub fn still(random: &mut Random) -> Self {
        Self { role: Role::Still, bit: random.next_u32() & 1 == 1 }
    }

    /// The bit of a packet with the highest number so far arrived.
    pub(crate) fn on_received(&mut self, bit: bool) {
        match self.role {
            Role::Still => {}
            Role::Inverts => self.bit = !bit,
            Role::Reflects => self.bit = bit,
        }
    }

    /// Another connection id of the peer is in use: the wave starts again.
    pub(crate) fn on_new_cid(&mut self) {
        if self.role != Role::Still {
            self.bit = false;
        }
    }

    /// The bit of the next packet.
    pub(crate) fn bit(&self) -> bool {
        self.bit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_invert_and_servers_reflect() {
        // RFC 9000 17.4
        for (side, sent) in [(Side::Client, false), (Side::Server, true)] {
            let mut spinning = 0;
            for seed in 0..1_000 {
                let mut spin = SpinBit::chosen(side, &mut Random::from_u64(seed));
                let before = spin;
                spin.on_received(true);
                let follows = spin.bit() == sent;
                spin.on_received(false);
                spinning += u64::from(follows && spin.bit() != sent);
                spin.on_new_cid();
                assert!(!spin.bit() || spin == before);
            }
            assert!((850..938).contains(&spinning), "{spinning} of 1000");
        }
    }
}
