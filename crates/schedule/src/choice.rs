//! The question that blest, ecf and peekaboo answer: wait for the fast path, or use the slow one that is open?

use plait_base::PathId;

use crate::candidates::{fastest, fastest_beside};
use crate::decision::Decision;
use crate::view::{Demand, DemandKind, PathView};

/// A real choice between two sampled paths.
pub(crate) struct Choice<'a> {
    /// f: the fastest path of all, held by its window or pacer.
    pub(crate) fast: &'a PathView,
    /// s: the fastest path that can send now.
    pub(crate) slow: &'a PathView,
}

/// True for the path that no other is waited for while it has room: what follows on it is no choice.
pub(crate) fn is_fastest(path: PathId, paths: &[PathView]) -> bool {
    fastest(paths).is_some_and(|fast| fast.id == path)
}

/// The choice that `paths` leave, or the decision where they leave none.
pub(crate) fn choice<'a>(paths: &'a [PathView], demand: &Demand) -> Result<Choice<'a>, Decision> {
    let Some((fast, slow)) = fastest(paths).and_then(|fast| Some((fast, fastest_beside(fast, paths)?))) else {
        return Err(Decision::send_or_wait(None, paths));
    };
    // Nothing waits for a path without a sample, and control frames wait for none.
    let urgent = demand.kind == DemandKind::Control;
    if fast.id == slow.id || urgent || fast.rtt.is_none() || slow.rtt.is_none() {
        return Err(Decision::Send(slow.id));
    }
    Ok(Choice { fast, slow })
}
