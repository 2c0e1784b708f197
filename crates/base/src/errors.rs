//! One variant for each way in which a peer can break the rules, with the code that closes the connection.

use std::fmt;

/// A transport error code on the wire (RFC 9000 20.1, RFC 10069 4.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CloseCode(pub u64);

#[allow(missing_docs)]
impl CloseCode {
    pub const NO_ERROR: Self = Self(0x00);
    pub const INTERNAL_ERROR: Self = Self(0x01);
    pub const CONNECTION_REFUSED: Self = Self(0x02);
    pub const FLOW_CONTROL_ERROR: Self = Self(0x03);
    pub const STREAM_LIMIT_ERROR: Self = Self(0x04);
    pub const STREAM_STATE_ERROR: Self = Self(0x05);
    pub const FINAL_SIZE_ERROR: Self = Self(0x06);
    pub const FRAME_ENCODING_ERROR: Self = Self(0x07);
    pub const TRANSPORT_PARAMETER_ERROR: Self = Self(0x08);
    pub const CONNECTION_ID_LIMIT_ERROR: Self = Self(0x09);
    pub const PROTOCOL_VIOLATION: Self = Self(0x0a);
    pub const INVALID_TOKEN: Self = Self(0x0b);
    pub const APPLICATION_ERROR: Self = Self(0x0c);
    pub const CRYPTO_BUFFER_EXCEEDED: Self = Self(0x0d);
    pub const KEY_UPDATE_ERROR: Self = Self(0x0e);
    pub const AEAD_LIMIT_REACHED: Self = Self(0x0f);
    pub const NO_VIABLE_PATH: Self = Self(0x10);
    pub const VERSION_NEGOTIATION_ERROR: Self = Self(0x11);
    /// In PATH_ABANDON: the application closed the path.
    pub const APPLICATION_ABANDON_PATH: Self = Self(0x3e);
    /// In PATH_ABANDON: no resources for the path.
    pub const PATH_RESOURCE_LIMIT_REACHED: Self = Self(0x3e75);
    /// In PATH_ABANDON: the path works badly or not at all.
    pub const PATH_UNSTABLE_OR_POOR: Self = Self(0x3e76);
    /// In PATH_ABANDON: the peer opened a path for which it gave no connection id.
    pub const NO_CID_AVAILABLE_FOR_PATH: Self = Self(0x3e77);

    /// The code of a TLS alert (RFC 9001 4.8).
    pub fn crypto(alert: u8) -> Self {
        Self(0x100 | u64::from(alert))
    }
}

impl fmt::Debug for CloseCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match *self {
            Self::NO_ERROR => "NO_ERROR",
            Self::INTERNAL_ERROR => "INTERNAL_ERROR",
            Self::CONNECTION_REFUSED => "CONNECTION_REFUSED",
            Self::FLOW_CONTROL_ERROR => "FLOW_CONTROL_ERROR",
            Self::STREAM_LIMIT_ERROR => "STREAM_LIMIT_ERROR",
            Self::STREAM_STATE_ERROR => "STREAM_STATE_ERROR",
            Self::FINAL_SIZE_ERROR => "FINAL_SIZE_ERROR",
            Self::FRAME_ENCODING_ERROR => "FRAME_ENCODING_ERROR",
            Self::TRANSPORT_PARAMETER_ERROR => "TRANSPORT_PARAMETER_ERROR",
            Self::CONNECTION_ID_LIMIT_ERROR => "CONNECTION_ID_LIMIT_ERROR",
            Self::PROTOCOL_VIOLATION => "PROTOCOL_VIOLATION",
            Self::INVALID_TOKEN => "INVALID_TOKEN",
            Self::APPLICATION_ERROR => "APPLICATION_ERROR",
            Self::CRYPTO_BUFFER_EXCEEDED => "CRYPTO_BUFFER_EXCEEDED",
            Self::KEY_UPDATE_ERROR => "KEY_UPDATE_ERROR",
            Self::AEAD_LIMIT_REACHED => "AEAD_LIMIT_REACHED",
            Self::NO_VIABLE_PATH => "NO_VIABLE_PATH",
            Self::VERSION_NEGOTIATION_ERROR => "VERSION_NEGOTIATION_ERROR",
            Self::APPLICATION_ABANDON_PATH => "APPLICATION_ABANDON_PATH",
            Self::PATH_RESOURCE_LIMIT_REACHED => "PATH_RESOURCE_LIMIT_REACHED",
            Self::PATH_UNSTABLE_OR_POOR => "PATH_UNSTABLE_OR_POOR",
            Self::NO_CID_AVAILABLE_FOR_PATH => "NO_CID_AVAILABLE_FOR_PATH",
            Self(code @ 0x100..=0x1ff) => return write!(f, "CRYPTO_ERROR(alert {})", code & 0xff),
            Self(code) => return write!(f, "error {code:#x}"),
        };
        f.write_str(name)
    }
}

impl fmt::Display for CloseCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

macro_rules! violations {
    ($($(#[$doc:meta])* $name:ident => $code:ident, $text:literal;)*) => {
        /// A way in which a peer broke the rules; each closes the connection with one code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Violation {
            $(#[doc = $text] $(#[$doc])* $name,)*
        }

        impl Violation {
            /// Every violation, for tests and documentation.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The code sent in CONNECTION_CLOSE.
            pub fn code(self) -> CloseCode {
                match self { $(Self::$name => CloseCode::$code,)* }
            }

            /// What happened, for people.
            pub fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

violations! {
    // Encoding of frames and packets
    TruncatedFrame => FRAME_ENCODING_ERROR, "a frame ends before its fields do";
    UnknownFrame => FRAME_ENCODING_ERROR, "a frame of unknown type";
    FrameTypeNotMinimal => PROTOCOL_VIOLATION, "a frame type that is not encoded in the fewest bytes";
    EmptyPacket => PROTOCOL_VIOLATION, "a packet without frames";
    FrameNotAllowedHere => PROTOCOL_VIOLATION, "a frame that packets of this type may not carry";
    ReservedBitsSet => PROTOCOL_VIOLATION, "reserved header bits are set";
    InitialTokenFromServer => PROTOCOL_VIOLATION, "a server's Initial with a token";
    AckRangeUnderflow => FRAME_ENCODING_ERROR, "an ack range below packet number 0";
    AckOfUnsentPacket => PROTOCOL_VIOLATION, "an ack of a packet that was never sent";
    EmptyNewToken => FRAME_ENCODING_ERROR, "a NEW_TOKEN frame without a token";
    NewTokenFromClient => PROTOCOL_VIOLATION, "NEW_TOKEN from a client";
    HandshakeDoneFromClient => PROTOCOL_VIOLATION, "HANDSHAKE_DONE from a client";
    OffsetTooLarge => FRAME_ENCODING_ERROR, "stream data beyond offset 2^62 - 1";
    AckDelayOutOfRange => PROTOCOL_VIOLATION, "an ACK_FREQUENCY frame asks for a delay below our min_ack_delay, or of 2^14 ms or more";
    DatagramNotNegotiated => PROTOCOL_VIOLATION, "a DATAGRAM frame that we did not ask for";
    DatagramTooLarge => PROTOCOL_VIOLATION, "a DATAGRAM frame larger than announced";
    // Streams
    ConnectionFlowControl => FLOW_CONTROL_ERROR, "more data than the connection's limit";
    StreamFlowControl => FLOW_CONTROL_ERROR, "more data than a stream's limit";
    StreamCount => STREAM_LIMIT_ERROR, "a stream beyond the limit on streams";
    StreamCountTooLarge => FRAME_ENCODING_ERROR, "a stream limit above 2^60";
    SendOnReceiveOnlyStream => STREAM_STATE_ERROR, "data on a stream on which the peer only receives";
    ControlOfSendOnlyStream => STREAM_STATE_ERROR, "a flow control or stop frame for a stream on which the peer only sends";
    StreamNeverOpened => STREAM_STATE_ERROR, "a frame for a stream of ours that was never opened";
    FinalSizeChanged => FINAL_SIZE_ERROR, "the final size of a stream changed";
    DataBeyondFinalSize => FINAL_SIZE_ERROR, "data beyond the final size of a stream";
    FinalSizeBelowData => FINAL_SIZE_ERROR, "a final size below data already received";
    StreamTooFragmented => INTERNAL_ERROR, "stream data in more pieces than we keep";
    // Crypto
    CryptoBufferExceeded => CRYPTO_BUFFER_EXCEEDED, "more CRYPTO data than we buffer";
    CryptoAfterHandshakeLevel => PROTOCOL_VIOLATION, "CRYPTO data at a level that is finished";
    KeyUpdateTooSoon => KEY_UPDATE_ERROR, "a key update before the previous one was acknowledged";
    KeyPhaseRegressed => KEY_UPDATE_ERROR, "old keys used for a packet numbered above one with new keys";
    AeadIntegrityLimit => AEAD_LIMIT_REACHED, "too many packets failed authentication";
    AeadConfidentialityLimit => AEAD_LIMIT_REACHED, "the keys are used up and could not be updated";
    MissingTransportParameters => CONNECTION_MISSING_PARAMETERS, "the handshake carried no transport parameters";
    NoAlpn => CONNECTION_NO_ALPN, "no common application protocol";
    // Transport parameters
    ParameterMalformed => TRANSPORT_PARAMETER_ERROR, "a malformed transport parameter";
    ParameterRepeated => TRANSPORT_PARAMETER_ERROR, "a transport parameter sent twice";
    ParameterOutOfRange => TRANSPORT_PARAMETER_ERROR, "a transport parameter out of its range";
    ParameterServerOnly => TRANSPORT_PARAMETER_ERROR, "a client sent a server's transport parameter";
    ParameterMissing => TRANSPORT_PARAMETER_ERROR, "a mandatory transport parameter is missing";
    CidMismatch => TRANSPORT_PARAMETER_ERROR, "a connection id in the transport parameters differs from the packets'";
    ParametersReducedForEarlyData => PROTOCOL_VIOLATION, "0-RTT accepted with lower limits than remembered";
    // Connection ids
    CidLimit => CONNECTION_ID_LIMIT_ERROR, "more connection ids than active_connection_id_limit";
    CidLength => FRAME_ENCODING_ERROR, "a new connection id of length 0 or above 20";
    RetirePriorToTooLarge => FRAME_ENCODING_ERROR, "retire_prior_to above the sequence number";
    CidReissued => PROTOCOL_VIOLATION, "a connection id issued again with other values";
    ResetTokenReused => PROTOCOL_VIOLATION, "a stateless reset token given to two connection ids";
    CidForZeroLength => PROTOCOL_VIOLATION, "new or retired ids where zero-length ids are used";
    RetireUnissuedCid => PROTOCOL_VIOLATION, "a connection id retired that was never issued";
    RetireCidInUse => PROTOCOL_VIOLATION, "a connection id retired by a packet that used it";
    TooManyRetirements => CONNECTION_ID_LIMIT_ERROR, "connection ids are retired faster than we can answer";
    // Paths
    UnsolicitedPathResponse => PROTOCOL_VIOLATION, "a PATH_RESPONSE that answers no challenge";
    MultipathNotNegotiated => PROTOCOL_VIOLATION, "a multipath frame without the extension";
    // RFC 9000 12.4: to who did not negotiate an extension, its frames are of unknown type.
    MultiflowNotNegotiated => FRAME_ENCODING_ERROR, "a Multiflow frame without the extension";
    UniflowIdAboveLimit => PROTOCOL_VIOLATION, "a uniflow id above the maximum that was announced";
    AddressesNotNegotiated => FRAME_ENCODING_ERROR, "an announcement of addresses or paths without its extension";
    AddressDirection => PROTOCOL_VIOLATION, "a NAT traversal frame of the other end";
    AddressReservedBits => FRAME_ENCODING_ERROR, "an announced address with reserved bits set";
    AddressIpVersion => FRAME_ENCODING_ERROR, "an announced address that is neither IPv4 nor IPv6";
    PathConditionUnknown => FRAME_ENCODING_ERROR, "a path in a condition without a meaning";
    MultipathZeroLengthCid => PROTOCOL_VIOLATION, "initial_max_path_id over a zero-length connection id";
    MultiflowZeroLengthCid => PROTOCOL_VIOLATION, "a zero-length connection id where we send on several uniflows";
    PathIdAboveLimit => PROTOCOL_VIOLATION, "a path id above the maximum we announced";
    MaxPathIdTooLarge => PROTOCOL_VIOLATION, "MAX_PATH_ID above 2^32 - 1";
    MaxPathIdBelowInitial => PROTOCOL_VIOLATION, "MAX_PATH_ID below the peer's own initial_max_path_id";
    PathsBlockedAboveLimit => PROTOCOL_VIOLATION, "PATHS_BLOCKED above the maximum we announced";
    PathCidsBlockedSequence => PROTOCOL_VIOLATION, "PATH_CIDS_BLOCKED with a sequence number beyond the next one";
    // Versions
    VersionNegotiation => VERSION_NEGOTIATION_ERROR, "the version information contradicts the versions used";
}

impl CloseCode {
    /// missing_extension alert (RFC 9001 8.2).
    const CONNECTION_MISSING_PARAMETERS: Self = Self(0x100 | 109);
    /// no_application_protocol alert (RFC 9001 8.1).
    const CONNECTION_NO_ALPN: Self = Self(0x100 | 120);
}

/// Why a connection closes: a peer's violation, a TLS alert, or a limit of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportError {
    /// The code sent in CONNECTION_CLOSE.
    pub code: CloseCode,
    /// Type of the frame at fault; none when unknown or not a frame's fault.
    pub frame: Option<u64>,
    /// The rule that was broken, where it is one of ours to name.
    pub violation: Option<Violation>,
    /// Reason phrase for people; at most [`crate::limits::MAX_REASON_BYTES`].
    pub reason: String,
}

impl TransportError {
    /// An error without a violation: a TLS alert or a reason of our own.
    pub fn new(code: CloseCode, reason: impl Into<String>) -> Self {
        Self { code, frame: None, violation: None, reason: reason.into() }
    }

    /// Names the frame at fault, unless one is named already.
    #[cold]
    pub fn in_frame(mut self, frame_type: u64) -> Self {
        self.frame.get_or_insert(frame_type);
        self
    }
}

impl From<Violation> for TransportError {
    #[cold]
    fn from(v: Violation) -> Self {
        Self { code: v.code(), frame: None, violation: Some(v), reason: v.text().into() }
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        if let Some(frame) = self.frame {
            write!(f, " in frame {frame:#x}")?;
        }
        if !self.reason.is_empty() {
            write!(f, ": {}", self.reason)?;
        }
        Ok(())
    }
}

impl std::error::Error for TransportError {}
