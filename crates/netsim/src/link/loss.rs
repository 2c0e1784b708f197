//! Loss models: independent, in bursts, or per byte.

use std::time::Duration;

use plait_base::{Instant, Random};

/// How datagrams get lost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Loss {
    /// Not at all.
    #[default]
    None,
    /// Each with this probability, independently.
    Bernoulli(f64),
    /// Two states with their own loss (Gilbert-Elliott); the state moves once a datagram, before it is judged.
    GilbertElliott {
        /// Probability to go from the good state to the bad.
        to_bad: f64,
        /// Probability to go from the bad state to the good; the mean burst is its inverse.
        to_good: f64,
        /// Loss in the good state.
        loss_good: f64,
        /// Loss in the bad state.
        loss_bad: f64,
    },
    /// As [`Loss::GilbertElliott`], but the state moves with time, whatever is sent: it stays for times drawn from
    /// exponential distributions with these means. A burst takes many datagrams of a fast flow and few of a slow one.
    TimedGilbertElliott {
        /// Mean time in the good state.
        good: Duration,
        /// Mean time in the bad state.
        bad: Duration,
        /// Loss in the good state.
        loss_good: f64,
        /// Loss in the bad state.
        loss_bad: f64,
    },
    /// Each byte with this probability; a datagram of n bytes is lost with 1 - (1 - p)^n.
    PerByte(f64),
}

impl Loss {
    /// Bursts with `mean` overall loss and `burst` datagrams a burst on average, all lost within a burst.
    pub fn bursts(mean: f64, burst: f64) -> Self {
        let to_good = 1.0 / burst.max(1.0);
        let to_bad = if mean >= 1.0 { 1.0 } else { to_good * mean.max(0.0) / (1.0 - mean) };
        Self::GilbertElliott { to_bad: to_bad.min(1.0), to_good, loss_good: 0.0, loss_bad: 1.0 }
    }

    /// Bursts of `burst` on average, in which everything is lost, and which take up a share `mean` of the time.
    pub fn timed_bursts(mean: f64, burst: Duration) -> Self {
        let mean = mean.clamp(0.0, 1.0);
        let good = Duration::try_from_secs_f64(burst.as_secs_f64() * (1.0 - mean) / mean).unwrap_or(Duration::MAX);
        Self::TimedGilbertElliott { good, bad: burst, loss_good: 0.0, loss_bad: 1.0 }
    }

    /// The share of datagrams that it takes in the long run, of `bytes` each.
    pub fn mean(&self, bytes: u32) -> f64 {
        let mix = |bad: f64, loss_good: f64, loss_bad: f64| bad * loss_bad + (1.0 - bad) * loss_good;
        match *self {
            Self::None => 0.0,
            Self::Bernoulli(p) => p,
            Self::PerByte(p) => 1.0 - (1.0 - p).powi(i32::try_from(bytes).unwrap_or(i32::MAX)),
            Self::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
                mix(to_bad / (to_bad + to_good).max(1e-9), loss_good, loss_bad)
            }
            Self::TimedGilbertElliott { good, bad, loss_good, loss_bad } => {
                mix(share_of_time(bad, good), loss_good, loss_bad)
            }
        }
    }

    /// Its probabilities by name.
    pub(crate) fn shares(&self) -> Vec<(&'static str, f64)> {
        match *self {
            Self::None => Vec::new(),
            Self::Bernoulli(p) => vec![("loss", p)],
            Self::PerByte(p) => vec![("loss per byte", p)],
            Self::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
                vec![("to_bad", to_bad), ("to_good", to_good), ("loss_good", loss_good), ("loss_bad", loss_bad)]
            }
            Self::TimedGilbertElliott { loss_good, loss_bad, .. } => {
                vec![("loss_good", loss_good), ("loss_bad", loss_bad)]
            }
        }
    }
}

/// The share of `part` in both together.
fn share_of_time(part: Duration, rest: Duration) -> f64 {
    let (part, rest) = (part.as_secs_f64(), rest.as_secs_f64());
    if part > 0.0 { part / (part + rest) } else { 0.0 }
}

/// The state of a burst model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Weather {
    #[default]
    Good,
    Bad,
}

/// A loss model with the state that it draws from.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LossDraw {
    weather: Weather,
    /// When the weather was last looked at.
    seen_at: Instant,
}

impl LossDraw {
    /// True when the next datagram, of `bytes` and at `now`, is lost.
    pub(crate) fn takes(&mut self, loss: &Loss, (now, bytes): (Instant, u64), random: &mut Random) -> bool {
        match *loss {
            Loss::None => false,
            Loss::Bernoulli(p) => random.chance(p),
            Loss::PerByte(p) => {
                let survives = (1.0 - p.clamp(0.0, 1.0)).powi(i32::try_from(bytes).unwrap_or(i32::MAX));
                random.chance(1.0 - survives)
            }
            Loss::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
                self.weather = match self.weather {
                    Weather::Good if random.chance(to_bad) => Weather::Bad,
                    Weather::Bad if random.chance(to_good) => Weather::Good,
                    same => same,
                };
                random.chance(if self.weather == Weather::Bad { loss_bad } else { loss_good })
            }
            Loss::TimedGilbertElliott { good, bad, loss_good, loss_bad } => {
                self.let_time_pass(now, (good, bad), random);
                random.chance(if self.weather == Weather::Bad { loss_bad } else { loss_good })
            }
        }
    }
    /// Draws the weather at `now` from what it was before and the mean times that it stays good and bad.
    fn let_time_pass(&mut self, now: Instant, (good, bad): (Duration, Duration), random: &mut Random) {
        let passed = now.since(self.seen_at).as_secs_f64();
        self.seen_at = self.seen_at.max(now);
        // What is left of the memory of a two-state Markov process after this time, however often it moved meanwhile.
        let memory = if good.is_zero() || bad.is_zero() {
            0.0
        } else {
            (-passed * (1.0 / good.as_secs_f64() + 1.0 / bad.as_secs_f64())).exp()
        };
        let was_bad = if self.weather == Weather::Bad { 1.0 } else { 0.0 };
        let usual = share_of_time(bad, good);
        let is_bad = random.chance(usual + (was_bad - usual) * memory);
        self.weather = if is_bad { Weather::Bad } else { Weather::Good };
    }
}
