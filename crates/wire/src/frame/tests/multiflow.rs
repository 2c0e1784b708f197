//! Multiflow's frames, byte by byte as draft-deconinck-quic-multipath-07 draws them.

use super::*;

#[test]
fn cids_of_uniflows() {
    let new = NewCid {
        form: CidForm::Uniflow,
        path: PathId(2),
        sequence: 3,
        retire_prior_to: 1,
        cid: ConnectionId::new(&CID).unwrap(),
        token: ResetToken([0xee; 16]),
    };
    let cases = [
        (format!("4040 02 03 01 08 0102030405060708 {}", "ee".repeat(16)), Frame::NewCid(new)),
        (
            "4041 412c 05".to_owned(),
            Frame::RetireCid(RetireCid { form: CidForm::Uniflow, path: PathId(300), sequence: 5 }),
        ),
    ];
    for (text, frame) in cases {
        assert_eq!(encoded(&frame), hex(&text));
        assert_eq!(one(&hex(&text)), frame);
        let frame_type = frame.frame_type();
        assert!(is_multiflow(frame_type) && !is_multipath(frame_type) && is_ack_eliciting(frame_type));
    }
    // Only MP_NEW_CONNECTION_ID is a probing frame.
    assert!(is_probing(0x40) && !(0x41..0x50).any(is_probing));
}

#[test]
fn acks_of_uniflows() {
    let ranges: RangeSet = {
        let mut set = RangeSet::new();
        set.insert(3..6);
        set.insert(8..11);
        set
    };
    let counts = EcnCounts { ect0: 7, ect1: 0, ce: 1 };
    for (text, ecn) in [("4042 01 0a 19 01 02 01 02", None), ("4043 01 0a 19 01 02 01 02 07 00 01", Some(counts))] {
        let mut out = Vec::new();
        let (form, path) = (AckForm::Uniflow, PathId(1));
        let told = OutAck { form, path, ranges: &ranges, delay: 0x19, ecn }.encode(100, &mut out);
        assert_eq!((&out, told), (&hex(text), Some(3..=10)));
        let Frame::Ack(ack) = one(&out) else { panic!() };
        assert_eq!((ack.path, ack.form, ack.delay, ack.ecn), (path, form, 0x19, ecn));
        assert!(ack.ranges().eq([8..=10, 3..=5]));
        assert_eq!(encoded(&Frame::Ack(ack)), out);
        assert!(is_multiflow(ack.frame_type()) && !is_ack_eliciting(ack.frame_type()));
    }
}

#[test]
fn what_multiflow_does_not_allow() {
    for (text, expected) in [
        ("80000040 01 00", Violation::FrameTypeNotMinimal),
        ("4040 01 00 01", Violation::RetirePriorToTooLarge),
        ("4040 01 01 01 00", Violation::CidLength),
        ("4040 01 01 01 15", Violation::CidLength),
        ("4042 01 05 00 00 06", Violation::AckRangeUnderflow),
        // No uniflow id above 2^32 - 1 can be within a maximum that was announced.
        ("4040 c000000100000000", Violation::PathIdAboveLimit),
        ("4041 c000000100000000", Violation::PathIdAboveLimit),
        ("4042 c000000100000000", Violation::PathIdAboveLimit),
    ] {
        assert_eq!(violation(text), expected, "{text}");
    }
    // Only 1-RTT packets carry them.
    for (text, frame_type) in on_uniflow_0().iter().zip([0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46]) {
        for kind in [PacketKind::Initial, PacketKind::ZeroRtt, PacketKind::Handshake] {
            let refused = Frames::in_packet(&hex(text), kind).next().unwrap().unwrap_err();
            assert_eq!((refused.frame_type, refused.violation), (frame_type, Violation::FrameNotAllowedHere));
        }
    }
    assert_eq!(Violation::FrameNotAllowedHere.code(), CloseCode::PROTOCOL_VIOLATION);
}

/// Each frame, of uniflow 0 and of the address of the handshake, whose id is 0: type, then the fields in the draft's order.
fn on_uniflow_0() -> [String; 7] {
    let token = "ee".repeat(16);
    [
        // Uniflow ID, Sequence Number, Retire Prior To, Length, Connection ID, Stateless Reset Token
        &format!("4040 00 01 00 08 0102030405060708 {token}"),
        // Uniflow ID, Sequence Number
        "4041 00 01",
        // Uniflow ID, Largest Acknowledged, ACK Delay, ACK Range Count, First ACK Range, Gap, ACK Range Length
        "4042 00 0a 19 01 02 01 02",
        // and ECT0, ECT1, ECN-CE
        "4043 00 0a 19 01 02 01 02 07 00 01",
        // Reserved, P and IP version, Address ID, Sequence Number, Interface Type, IP address, Port
        "4044 14 00 01 00 c0000201 1151",
        // Address ID, Sequence Number
        "4045 00 01",
        // Sequence, Receiving Uniflows, Active Sending Uniflows, then Uniflow ID and Local Address ID of each
        "4046 00 01 01 00 00 00 00",
    ]
    .map(str::to_owned)
}

#[test]
fn all_seven_on_uniflow_0() {
    for text in on_uniflow_0() {
        let bytes = hex(&text);
        let frame = one(&bytes);
        assert_eq!(encoded(&frame), bytes, "{text}");
        match frame {
            Frame::NewCid(f) => assert_eq!((f.form, f.path, f.sequence), (CidForm::Uniflow, PathId::ZERO, 1)),
            Frame::RetireCid(f) => assert_eq!((f.form, f.path, f.sequence), (CidForm::Uniflow, PathId::ZERO, 1)),
            Frame::Ack(f) => assert_eq!((f.form, f.path, f.delay), (AckForm::Uniflow, PathId::ZERO, 0x19)),
            Frame::AddAddress(f) => {
                assert_eq!((f.form, f.id, f.sequence, f.port), (AddressForm::Multiflow, 0, 1, Some(4433)));
            }
            Frame::RemoveAddress(f) => assert_eq!((f.form, f.id, f.sequence), (AddressForm::Multiflow, 0, 1)),
            Frame::Uniflows(f) => {
                let first = UniflowInfo { uniflow: PathId::ZERO, address: 0 };
                assert!(f.sequence == 0 && f.receiving.iter().eq([first]) && f.sending.iter().eq([first]));
            }
            other => panic!("{other:?}"),
        }
    }
}
