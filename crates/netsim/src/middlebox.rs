//! Boxes in the path that drop, delay, double or change datagrams by rule.

use std::ops::Range;
use std::time::Duration;

use plait_base::{Ecn, Instant, Random};

use crate::host::Datagram;

/// What a middlebox does with a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Lets it go on, changed or not.
    On,
    /// The packet is dropped here.
    Drop,
    /// Lets it go on later.
    Later(Duration),
    /// Lets it go on twice.
    Twice,
}

/// A box in the path.
pub trait Middlebox {
    /// A datagram comes by; it may be changed.
    fn pass(&mut self, now: Instant, datagram: &mut Datagram, random: &mut Random) -> Pass;
}

/// The form of a QUIC header, by the first bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Header {
    /// Long and short headers.
    #[default]
    Any,
    /// First bit set.
    Long,
    /// First bit clear.
    Short,
}

/// Which datagrams a rule is for; all conditions hold together.
#[derive(Clone, Debug, PartialEq)]
pub struct When {
    /// Within these times.
    pub time: Range<Instant>,
    /// Sizes of UDP payload that it is for, bytes.
    pub bytes: Range<usize>,
    /// Position among the datagrams that meet the conditions above and `header`, from 0.
    pub position: Range<u64>,
    /// Of those within `position`, each so manieth: 3 is for the third, the sixth and so on; 1 for all.
    pub every: u64,
    /// The header form that it is for.
    pub header: Header,
    /// Share of these, 0 to 1.
    pub share: f64,
}

impl Default for When {
    /// A rule for every packet.
    fn default() -> Self {
        Self {
            time: Instant::ZERO..Instant::from_nanos(u64::MAX),
            bytes: 0..usize::MAX,
            position: 0..u64::MAX,
            every: 1,
            header: Header::Any,
            share: 1.0,
        }
    }
}

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treat {
    /// The packet goes no further.
    Drop,
    /// The packet goes on after this time.
    Delay(Duration),
    /// The packet goes on twice.
    Duplicate,
    /// Sets or clears the ECN mark.
    Mark(Option<Ecn>),
    /// Turns ECN-capable marks into CE.
    Congest,
    /// Flips one random bit.
    FlipBit,
    /// Cuts the payload to at most so many bytes.
    Truncate(usize),
    /// Puts random bytes in place of the payload.
    Scramble,
}

/// A middlebox of one rule; what the rule is not for passes.
#[derive(Clone, Debug)]
pub struct Rule {
    when: When,
    treat: Treat,
    seen: u64,
}

impl Rule {
    /// `treat`s datagrams `when`.
    pub fn new(when: When, treat: Treat) -> Self {
        Self { when, treat, seen: 0 }
    }

    fn is_for(&mut self, now: Instant, datagram: &Datagram, random: &mut Random) -> bool {
        let long = datagram.payload.first().is_some_and(|first| first & 0x80 != 0);
        let form = match self.when.header {
            Header::Any => true,
            Header::Long => long,
            Header::Short => !long,
        };
        if !form || !self.when.time.contains(&now) || !self.when.bytes.contains(&datagram.payload.len()) {
            return false;
        }
        let (position, every) = (self.seen, self.when.every.max(1));
        self.seen += 1;
        let turn = position.checked_sub(self.when.position.start).is_some_and(|nth| nth % every == every - 1);
        turn && self.when.position.contains(&position) && (self.when.share >= 1.0 || random.chance(self.when.share))
    }
}

impl Middlebox for Rule {
    fn pass(&mut self, now: Instant, datagram: &mut Datagram, random: &mut Random) -> Pass {
        if !self.is_for(now, datagram, random) {
            return Pass::On;
        }
        match self.treat {
            Treat::Drop => return Pass::Drop,
            Treat::Delay(delay) => return Pass::Later(delay),
            Treat::Duplicate => return Pass::Twice,
            Treat::Mark(mark) => datagram.ecn = mark,
            Treat::Congest => datagram.ecn = datagram.ecn.map(|_| Ecn::Ce),
            Treat::FlipBit => flip_bit(&mut datagram.payload, random),
            Treat::Truncate(bytes) => datagram.payload.truncate(bytes),
            Treat::Scramble => random.fill(&mut datagram.payload),
        }
        Pass::On
    }
}

/// Flips one bit of `payload`.
pub(crate) fn flip_bit(payload: &mut [u8], random: &mut Random) {
    let bit = random.below(payload.len() as u64 * 8);
    if let Some(byte) = payload.get_mut((bit / 8) as usize) {
        *byte ^= 1 << (bit % 8);
    }
}
