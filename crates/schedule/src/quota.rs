//! Counts of packets that a scheduler gave to each path, for those that share packets out.

use plait_base::PathId;

use crate::view::PathView;

/// Packets given to each path; few entries, in order of id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quotas(Vec<(PathId, u64)>);

impl Quotas {
    /// Packets that `path` was given.
    pub(crate) fn get(&self, path: PathId) -> u64 {
        self.0.binary_search_by_key(&path, |q| q.0).ok().map_or(0, |i| self.0[i].1)
    }

    /// Counts one packet of `path`.
    pub(crate) fn add(&mut self, path: PathId) {
        if let Ok(i) = self.0.binary_search_by_key(&path, |q| q.0) {
            self.0[i].1 = self.0[i].1.saturating_add(1);
        }
    }

    /// Enters paths that are new: each begins at its fair share of what the others have carried, so that it need not
    /// catch up on packets sent before it came. `share(path, quota, of)` scales another path's quota to the newcomer.
    pub(crate) fn admit(&mut self, paths: &[PathView], share: impl Fn(&PathView, u64, &PathView) -> u64) {
        for path in paths {
            let Err(i) = self.0.binary_search_by_key(&path.id, |q| q.0) else { continue };
            let start = paths.iter().filter(|p| p.id != path.id).filter_map(|other| {
                let i = self.0.binary_search_by_key(&other.id, |q| q.0).ok()?;
                Some(share(path, self.0[i].1, other))
            });
            let start = start.min().unwrap_or(0);
            self.0.insert(i, (path.id, start));
        }
    }

    pub(crate) fn remove(&mut self, path: PathId) {
        self.0.retain(|q| q.0 != path);
    }
}
