//! The client's devices, put down and up while a run goes on: by a thread of its own, for `ip` takes longer than the loop
//! that hands packets over may wait.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};

use plait_netsim::InterfaceState;

use super::namespace;

/// What is told to `ip` of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lever {
    /// The device's name.
    pub(super) device: String,
    /// Its address and its routes, which the kernel takes away with it.
    pub(super) lines: Vec<String>,
}

impl Lever {
    fn lines(&self, state: InterfaceState) -> Vec<String> {
        match state {
            InterfaceState::Up => {
                let up = format!("link set dev {} up", self.device);
                std::iter::once(up).chain(self.lines.iter().cloned()).collect()
            }
            InterfaceState::Down => vec![format!("link set dev {} down", self.device)],
        }
    }
}

/// The devices of the client's paths.
#[derive(Debug)]
pub(super) struct Switch {
    say: Sender<(usize, InterfaceState)>,
}

impl Switch {
    /// For the devices of the namespace at this file; `family` is the option of `ip`.
    pub(super) fn new(file: PathBuf, family: &'static str, levers: Vec<Lever>) -> Self {
        let (say, hear): (_, Receiver<(usize, InterfaceState)>) = channel();
        let work = move || {
            for (path, state) in hear {
                let Some(lever) = levers.get(path) else { continue };
                // A host that is going away refuses, and has no use for it.
                let _ = namespace::ip_batch(&file, family, &lever.lines(state));
            }
        };
        // Without a thread nothing hears, and interfaces stay as they are: the loop carries nothing of them all the same.
        let _ = std::thread::Builder::new().name("lab-switch".to_owned()).spawn(work);
        Self { say }
    }

    /// A path's device goes up or down.
    pub(super) fn turn(&self, path: usize, state: InterfaceState) {
        let _ = self.say.send((path, state));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_down_with_a_device_comes_back_with_it() {
        let lever = Lever { device: "c1".to_owned(), lines: vec!["address replace 10.0.2.2/32 dev c1".to_owned()] };
        assert_eq!(lever.lines(InterfaceState::Down), ["link set dev c1 down"]);
        assert_eq!(lever.lines(InterfaceState::Up), ["link set dev c1 up", "address replace 10.0.2.2/32 dev c1"]);
    }
}
