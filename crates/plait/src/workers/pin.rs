//! Threads that stay on a core each.

/// Keeps this thread on a core of its own, where cores were given to this process and the system permits it.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn pin_this_thread(index: usize, threads: usize) {
    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::unistd::{Pid, SysconfVar, sysconf};

    let this = Pid::from_raw(0);
    let Ok(allowed) = sched_getaffinity(this) else { return };
    let allowed: Vec<usize> = (0..CpuSet::count()).filter(|core| allowed.is_set(*core).unwrap_or(false)).collect();
    let Ok(Some(machine)) = sysconf(SysconfVar::_NPROCESSORS_ONLN) else { return };
    let mut own = CpuSet::new();
    if let Some(core) = own_core(&allowed, usize::try_from(machine).unwrap_or(0), index, threads)
        && own.set(core).is_ok()
        && let Err(error) = sched_setaffinity(this, &own)
    {
        tracing::debug!(%error, core, "a worker is not bound to its core");
    }
}

/// The core for the `index`-th of `threads` threads, of those that the process may use on a machine with so many.
///
/// None where the process may use them all: others may as well, and two that count cores in the same order would share the first
/// ones and leave the last idle. None, too, where no core would be left for what the process does beside them: it would wait for
/// a core that another leaves idle.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn own_core(allowed: &[usize], machine: usize, index: usize, threads: usize) -> Option<usize> {
    let is_given = allowed.len() < machine;
    let leaves_one = allowed.len() > threads;
    if is_given && leaves_one { allowed.get(index).copied() } else { None }
}

/// Keeps this thread where it is; not known on this system.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn pin_this_thread(_index: usize, _threads: usize) {}

#[cfg(all(test, any(target_os = "linux", target_os = "android")))]
mod tests {
    use super::own_core;

    #[test]
    fn threads_keep_to_cores_that_were_given_to_the_process() {
        let given = [8, 9, 10, 11];
        assert_eq!(
            (0..4).map(|at| own_core(&given, 16, at, 3)).collect::<Vec<_>>(),
            [Some(8), Some(9), Some(10), Some(11)]
        );
        assert_eq!(own_core(&given, 16, 0, 4), None, "none would be left for others");
        assert_eq!(own_core(&given, 4, 0, 2), None, "others use them as well");
        assert_eq!(own_core(&given, 0, 0, 2), None, "nobody knows how many there are");
    }
}
