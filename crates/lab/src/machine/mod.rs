//! What this machine can do: asked once, read by `plait lab doctor` and by contenders that need something of it.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

use crate::{emulator, tool};

/// One thing that is needed or useful: it is there, or why it is not and what to do.
pub(crate) type Having = Result<(), String>;

/// What was found.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// The kernel's release.
    pub(crate) kernel: String,
    /// Processor cores that this process may use.
    pub(crate) cores: usize,
    /// `/dev/net/tun` can be opened.
    pub(crate) tun: Having,
    /// The kernel speaks MPTCP, and `ip` can set its endpoints.
    pub(crate) mptcp: Having,
    /// The kernel has netem.
    pub(crate) netem: Having,
    /// Threads may run in real time.
    pub(crate) real_time: Having,
    /// The share of the time that the kernel lets real-time threads have; none where it does not bound them.
    pub(crate) real_time_share: Option<f64>,
    /// Congestion controllers that a TCP socket may name.
    pub(crate) tcp_controllers: Vec<String>,
}

impl Machine {
    /// Looks at the machine, from inside the laboratory's own namespaces.
    pub(crate) fn look() -> Self {
        let controllers = read("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
        Self {
            kernel: read("/proc/sys/kernel/osrelease").unwrap_or_else(|_| "unknown".to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            tun: tun(),
            mptcp: mptcp(),
            netem: netem(),
            real_time: real_time(),
            real_time_share: real_time_share(),
            tcp_controllers: controllers.split_whitespace().map(str::to_owned).collect(),
        }
    }
}

fn read(path: impl AsRef<Path>) -> io::Result<String> {
    fs::read_to_string(path).map(|text| text.trim().to_owned())
}

fn tun() -> Having {
    let opened = OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    opened.map(|_| ()).map_err(|error| format!("/dev/net/tun: {error}; `modprobe tun`, and let this user open it"))
}

fn mptcp() -> Having {
    match read("/proc/sys/net/mptcp/enabled").as_deref() {
        Ok("1") => {}
        Ok(_) => return Err("MPTCP is switched off; sysctl -w net.mptcp.enabled=1".to_owned()),
        Err(_) => return Err("this kernel has no MPTCP; it needs 5.6 or newer with CONFIG_MPTCP".to_owned()),
    }
    tool::run("ip", ["mptcp", "limits", "show"]).map(|_| ()).map_err(|error| {
        format!(
            "`ip` cannot set up MPTCP ({error}); install iproute2 5.8 or newer, and a kernel with the MPTCP netlink API"
        )
    })
}

fn netem() -> Having {
    let tried = tool::run("tc", ["qdisc", "replace", "dev", "lo", "root", "netem", "delay", "1ms"]);
    // On a loopback device of our own; taken away all the same.
    let _ = tool::run("tc", ["qdisc", "del", "dev", "lo", "root"]);
    tried
        .map(|_| ())
        .map_err(|error| format!("this kernel has no netem ({error}); `modprobe sch_netem` where it is a module"))
}

fn real_time() -> Having {
    // What is allowed less than the loop has would run programs above it.
    let tried = tool::run("chrt", ["--fifo", &emulator::PRIORITY.to_string(), "true"]);
    tried.map(|_| ()).map_err(|error| {
        format!(
            "threads get no real-time priority ({error}); run as root, or with `ulimit -r` of {} or more",
            emulator::PRIORITY
        )
    })
}

/// See sched(7): what is not a number, or -1, is no bound.
fn real_time_share() -> Option<f64> {
    let read = |name: &str| read(format!("/proc/sys/kernel/sched_rt_{name}_us")).ok()?.parse::<u32>().ok();
    Some(f64::from(read("runtime")?) / f64::from(read("period")?))
}
