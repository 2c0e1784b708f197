//! Threads that stay on a core each.

/// Keeps this thread on the `index`-th of the cores that the process may use, where `threads` such threads leave a core for
/// others, and the system permits it.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn pin_this_thread(index: usize, threads: usize) {
    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::unistd::Pid;

    let this = Pid::from_raw(0);
    let Ok(allowed) = sched_getaffinity(this) else { return };
    let cores: Vec<usize> = (0..CpuSet::count()).filter(|core| allowed.is_set(*core).unwrap_or(false)).collect();
    // With a thread on every core, the one that has most to do beside others would wait for a core that another leaves idle.
    if cores.len() <= threads {
        return;
    }
    let mut own = CpuSet::new();
    if let Some(core) = cores.get(index)
        && own.set(*core).is_ok()
        && let Err(error) = sched_setaffinity(this, &own)
    {
        tracing::debug!(%error, core, "a worker is not bound to its core");
    }
}

/// Keeps this thread where it is; not known on this system.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn pin_this_thread(_index: usize, _threads: usize) {}
