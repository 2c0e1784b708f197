//! LinUCB: a contextual bandit's arm, which predicts the reward of a context and how unsure it is.

/// Features of a context.
const FEATURES: usize = 6;

/// A context: what the two paths looked like.
pub(crate) type Context = [f64; FEATURES];

/// One arm's ridge regression of rewards on contexts; only exact IEEE 754 operations, so the same everywhere.
#[derive(Clone, Debug)]
pub(crate) struct Arm {
    /// The inverse of A = I + sum of x x^T.
    inverse: [Context; FEATURES],
    /// b = sum of R x.
    weighted: Context,
}

impl Default for Arm {
    fn default() -> Self {
        let mut inverse = [[0.0; FEATURES]; FEATURES];
        inverse.iter_mut().enumerate().for_each(|(i, row)| row[i] = 1.0);
        Self { inverse, weighted: [0.0; FEATURES] }
    }
}

fn dot(a: &Context, b: &Context) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl Arm {
    fn times_inverse(&self, x: &Context) -> Context {
        self.inverse.map(|row| dot(&row, x))
    }

    /// theta^T x with theta = A^-1 b: the reward that the past predicts.
    pub(crate) fn predicted(&self, x: &Context) -> f64 {
        dot(&self.times_inverse(&self.weighted), x)
    }

    /// sqrt(x^T A^-1 x): how little is known about contexts like this.
    pub(crate) fn uncertainty(&self, x: &Context) -> f64 {
        dot(x, &self.times_inverse(x)).max(0.0).sqrt()
    }

    /// Learns that context `x` brought `reward`: A += x x^T by Sherman and Morrison, b += R x.
    pub(crate) fn learn(&mut self, x: &Context, reward: f64) {
        let column = self.times_inverse(x);
        let scale = 1.0 + dot(x, &column);
        for (row, left) in self.inverse.iter_mut().zip(column) {
            for (cell, right) in row.iter_mut().zip(column) {
                *cell -= left * right / scale;
            }
        }
        for (b, x) in self.weighted.iter_mut().zip(x) {
            *b += reward * x;
        }
    }
}
