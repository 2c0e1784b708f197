//! What carries a load: QUIC, or TLS over a transport of the kernel.

/// Which of the kernel's transports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kernel {
    Tcp,
    /// RFC 8684; plain TCP where the peer does not speak it.
    Mptcp,
}

impl Kernel {
    /// The name under which it is reported.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Mptcp => "mptcp",
        }
    }
}

/// What carries the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    Quic,
    /// TLS over a transport of the kernel.
    Kernel(Kernel),
}

impl Carrier {
    /// The name under which it is reported.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Quic => "quic",
            Self::Kernel(kernel) => kernel.name(),
        }
    }
}
