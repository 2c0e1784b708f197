//! The engine.
pub mod config;
pub mod connection {
    //! Stand-in.
    use crate::endpoint::parts::ConnectionParts;
    use crate::shared::Input;
    /// Stand-in.
    #[derive(Debug)]
    pub struct Connection {
        _parts: ConnectionParts,
    }
    impl Connection {
        /// Stand-in.
        pub fn new(_now: plait_base::Instant, parts: ConnectionParts) -> Result<Self, plait_base::TransportError> {
            Ok(Self { _parts: parts })
        }
        /// Stand-in.
        pub fn absorb(&mut self, _now: plait_base::Instant, _input: Input) {}
    }
}
pub mod endpoint;
pub mod shared;
