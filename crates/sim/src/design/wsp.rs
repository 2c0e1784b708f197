//! The WSP algorithm (Santiago, Claeys-Bruno, Sergent 2012): from many random points keep a subset in which no two are
//! closer than a distance.

use plait_base::Random;

/// Random candidates for each point that is wanted.
const CANDIDATES_PER_POINT: usize = 40;
/// Fewest and most candidates.
const CANDIDATES: (usize, usize) = (2_000, 20_000);
/// Halvings of the interval in which the distance is sought.
const SEARCH_STEPS: usize = 40;

/// Points in the unit cube and the least distance between two of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Points {
    /// Each with as many coordinates as the cube has dimensions, 0 to 1.
    pub points: Vec<Vec<f64>>,
    /// No two are closer.
    pub distance_min: f64,
}

/// `count` points in `dimensions` dimensions: the largest distance that leaves at least so many of the candidates that
/// `seed` draws, the first `count` of which are kept.
pub fn wsp(count: usize, dimensions: usize, seed: u64) -> Points {
    let mut random = Random::from_u64(seed);
    let total = (count * CANDIDATES_PER_POINT).clamp(CANDIDATES.0, CANDIDATES.1).max(count);
    let candidates: Vec<Vec<f64>> = (0..total).map(|_| (0..dimensions).map(|_| random.unit()).collect()).collect();
    let (mut low, mut high) = (0.0, (dimensions as f64).sqrt());
    let mut best = select(&candidates, 0.0, count);
    for _ in 0..SEARCH_STEPS {
        let middle = f64::midpoint(low, high);
        let chosen = select(&candidates, middle, count);
        if chosen.len() >= count {
            (low, best) = (middle, chosen);
        } else {
            high = middle;
        }
        if high - low < 1e-4 {
            break;
        }
    }
    best.truncate(count);
    Points { points: best.into_iter().filter_map(|i| candidates.get(i).cloned()).collect(), distance_min: low }
}

/// The algorithm itself: from the point nearest to the middle on, drop all that are closer than `distance` and go on
/// with the nearest that is left, until `enough` are chosen or too few are left.
fn select(candidates: &[Vec<f64>], distance: f64, enough: usize) -> Vec<usize> {
    let middle: Vec<f64> = candidates.first().map(|c| vec![0.5; c.len()]).unwrap_or_default();
    let mut left: Vec<usize> = (0..candidates.len()).collect();
    let mut chosen = Vec::new();
    // Nothing is too close to the middle.
    let (mut here, mut square) = (&middle, 0.0);
    while chosen.len() < enough && chosen.len() + left.len() >= enough {
        // One pass drops the close and finds the nearest of the others.
        let (mut nearest, mut least, mut kept) = (None, f64::INFINITY, 0);
        left.retain(|i| {
            let gap = gap(here, &candidates[*i]);
            if gap < square {
                return false;
            }
            if gap < least {
                (nearest, least) = (Some(kept), gap);
            }
            kept += 1;
            true
        });
        let Some(at) = nearest else { break };
        let next = left.swap_remove(at);
        (here, square) = (&candidates[next], distance * distance);
        chosen.push(next);
    }
    chosen
}

fn gap(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_points_are_close() {
        let design = wsp(60, 4, 7);
        assert_eq!(design.points.len(), 60);
        assert!(design.distance_min > 0.25, "{}", design.distance_min);
        for (i, a) in design.points.iter().enumerate() {
            assert!(a.iter().all(|x| (0.0..=1.0).contains(x)));
            assert!(design.points[..i].iter().all(|b| gap(a, b).sqrt() >= design.distance_min));
        }
        assert_eq!(design, wsp(60, 4, 7));
        assert_ne!(design, wsp(60, 4, 8));
    }
}
