//! Which of the offered paths may carry data at all: active ones, else backups, else failed ones.

use plait_base::observe::PathState;

use crate::view::PathView;

/// Paths of one tier are used only when no better tier has a usable path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// Free to use.
    Active,
    /// RFC 10069 3.3: only while no other path is usable.
    Backup,
    /// Potentially failed: only when nothing else is left.
    Failed,
}

impl Tier {
    /// The tier of a path in `state`; none where it may not carry data.
    pub(crate) fn of(state: PathState) -> Option<Self> {
        match state {
            PathState::Active => Some(Self::Active),
            PathState::Backup => Some(Self::Backup),
            PathState::Failed => Some(Self::Failed),
            PathState::Validating | PathState::Unused | PathState::Closing | PathState::Closed => None,
        }
    }

    /// The best tier with a usable path.
    pub(crate) fn best(paths: &[PathView]) -> Option<Self> {
        paths.iter().filter(|p| p.is_usable()).filter_map(|p| Self::of(p.state)).min()
    }
}

/// Usable paths of the best tier, whether or not they admit a packet now.
pub fn eligible(paths: &[PathView]) -> impl Iterator<Item = &PathView> {
    let best = Tier::best(paths);
    paths.iter().filter(move |p| p.is_usable() && best.is_some() && Tier::of(p.state) == best)
}

/// Eligible paths that admit a packet now.
pub fn candidates(paths: &[PathView]) -> impl Iterator<Item = &PathView> {
    eligible(paths).filter(|p| p.has_room())
}

/// The eligible path with the smallest smoothed RTT, with room or not; ties go to the lower id.
pub fn fastest(paths: &[PathView]) -> Option<&PathView> {
    // One walk finds the best tier and the best of it.
    first_by(paths, |p| Some((Tier::of(p.state)?, p.rtt_or_max(), p.id)).filter(|_| p.is_usable()))
}

/// The candidate with the smallest smoothed RTT; ties go to the lower id.
pub fn fastest_with_room(paths: &[PathView]) -> Option<&PathView> {
    fastest(paths).and_then(|fast| fastest_beside(fast, paths))
}

/// The candidate with the smallest smoothed RTT, where `fast` is the fastest path of all.
pub(crate) fn fastest_beside<'a>(fast: &'a PathView, paths: &'a [PathView]) -> Option<&'a PathView> {
    if fast.has_room() {
        return Some(fast);
    }
    let tier = Tier::of(fast.state);
    first_by(paths, |p| (p.has_room() && Tier::of(p.state) == tier).then(|| (p.rtt_or_max(), p.id)))
}

/// The path of the smallest key, of those that have one.
#[inline]
fn first_by<K: Ord>(paths: &[PathView], key_of: impl Fn(&PathView) -> Option<K>) -> Option<&PathView> {
    let mut first: Option<(K, &PathView)> = None;
    for path in paths {
        if let Some(key) = key_of(path)
            && first.as_ref().is_none_or(|(least, _)| key < *least)
        {
            first = Some((key, path));
        }
    }
    first.map(|(_, path)| path)
}

#[cfg(test)]
pub(crate) mod tests;
