//! Loss models: independent, in bursts, or per byte.

use plait_base::Random;

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

    /// Its probabilities by name.
    pub(crate) fn shares(&self) -> Vec<(&'static str, f64)> {
        match *self {
            Self::None => Vec::new(),
            Self::Bernoulli(p) => vec![("loss", p)],
            Self::PerByte(p) => vec![("loss per byte", p)],
            Self::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
                vec![("to_bad", to_bad), ("to_good", to_good), ("loss_good", loss_good), ("loss_bad", loss_bad)]
            }
        }
    }
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
}

impl LossDraw {
    /// True when the next datagram, of `bytes`, is lost.
    pub(crate) fn takes(&mut self, loss: &Loss, bytes: u64, random: &mut Random) -> bool {
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
        }
    }
}
