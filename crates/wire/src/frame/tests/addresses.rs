//! Frames about addresses, uniflows and paths, byte by byte, and what they may not say.

use std::net::{IpAddr, SocketAddr};

use super::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn addr(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// An address with nothing said of it but its number.
fn added(form: AddressForm, id: u64, text: &str) -> AddAddress {
    AddAddress {
        form,
        id,
        sequence: 0,
        ip: ip(text),
        port: None,
        interface: InterfaceType::Fixed,
        status: PathStatus::Available,
        metered: false,
    }
}

const V6: &str = "20010db8000000000000000000000001";

#[track_caller]
fn same_both_ways(text: &str, frame: Frame<'_>) {
    assert_eq!(encoded(&frame), hex(text), "{text}");
    assert_eq!(one(&hex(text)), frame, "{text}");
    assert!(is_ack_eliciting(frame.frame_type()) && !is_probing(frame.frame_type()));
}

#[test]
fn addresses_of_multiflow() {
    use AddressForm::Multiflow;
    let v4 = added(Multiflow, 7, "192.0.2.1");
    // Rsv, P and IP version in one byte; Address ID, sequence, interface type, address, port
    same_both_ways("4044 04 07 00 00 c0000201", Frame::AddAddress(v4));
    let v4 = AddAddress { sequence: 300, port: Some(4433), interface: InterfaceType::Cellular, ..v4 };
    same_both_ways("4044 14 07 412c 02 c0000201 1151", Frame::AddAddress(v4));
    let v6 = AddAddress { port: Some(1), interface: InterfaceType::Wlan, ..added(Multiflow, 255, "2001:db8::1") };
    same_both_ways(&format!("4044 16 ff 00 01 {V6} 0001"), Frame::AddAddress(v6));
    let odd = AddAddress { interface: InterfaceType::Other(0x99), ..added(Multiflow, 0, "2001:db8::1") };
    same_both_ways(&format!("4044 06 00 00 99 {V6}"), Frame::AddAddress(odd));
    same_both_ways("4045 ff 412c", Frame::RemoveAddress(RemoveAddress { form: Multiflow, id: 255, sequence: 300 }));
    assert!((0x44..=0x46).all(is_multiflow));
}

#[test]
fn addresses_of_plaits_own() {
    use AddressForm::Private;
    // Address ID, sequence, flags, interface type, address, port
    same_both_ways("ad505810 412c 05 00 00 c0000201", {
        Frame::AddAddress(AddAddress { sequence: 5, ..added(Private, 300, "192.0.2.1") })
    });
    same_both_ways(&format!("ad505810 01 00 0f 03 {V6} 1151"), {
        Frame::AddAddress(AddAddress {
            port: Some(4433),
            interface: InterfaceType::Satellite,
            status: PathStatus::Backup,
            metered: true,
            ..added(Private, 1, "2001:db8::1")
        })
    });
    let backup = AddAddress { status: PathStatus::Backup, ..added(Private, 1, "192.0.2.1") };
    same_both_ways("ad505810 01 00 04 00 c0000201", Frame::AddAddress(backup));
    let metered = AddAddress { metered: true, ..added(Private, 1, "192.0.2.1") };
    same_both_ways("ad505810 01 00 08 00 c0000201", Frame::AddAddress(metered));
    let removed = RemoveAddress { form: Private, id: 300, sequence: 6 };
    same_both_ways("ad505811 412c 06", Frame::RemoveAddress(removed));
}

#[test]
fn addresses_of_nat_traversal() {
    use AddressForm::NatTraversal;
    // Sequence number, address, port, as noq-proto 1.4 reads and writes them
    let v4 = AddAddress { port: Some(4433), ..added(NatTraversal, 300, "192.0.2.1") };
    same_both_ways("803d7f90 412c c0000201 1151", Frame::AddAddress(v4));
    let v6 = AddAddress { port: Some(4433), ..added(NatTraversal, 2, "2001:db8::1") };
    same_both_ways(&format!("803d7f91 02 {V6} 1151"), Frame::AddAddress(v6));
    let reach_out = |round, text| Frame::ReachOut(ReachOut { round, addr: addr(text) });
    same_both_ways("803d7f92 03 c0000201 1151", reach_out(3, "192.0.2.1:4433"));
    same_both_ways(&format!("803d7f93 04 {V6} 1151"), reach_out(4, "[2001:db8::1]:4433"));
    let removed = RemoveAddress { form: NatTraversal, id: 300, sequence: 0 };
    same_both_ways("803d7f94 412c", Frame::RemoveAddress(removed));
    // Without a port of its own an address has none that a peer could take.
    assert_eq!(encoded(&Frame::AddAddress(added(NatTraversal, 0, "192.0.2.1"))), hex("803d7f90 00 c0000201 0000"));
}

#[test]
fn a_list_of_additional_addresses() {
    let addresses = [addr("192.0.2.1:4433"), addr("[2001:db8::1]:443")];
    let mut buf = Vec::new();
    let frame = AdditionalAddresses { sequence: 1, addresses: List::of(addresses, &mut buf) };
    let text = format!("c0000009 25adda04 01 02 04 c0000201 1151 06 {V6} 01bb");
    same_both_ways(&text, Frame::AdditionalAddresses(frame));
    assert!(frame.addresses.iter().eq(addresses));
    // The empty set takes all back.
    let mut buf = Vec::new();
    let none = AdditionalAddresses { sequence: 2, addresses: List::of([], &mut buf) };
    assert_eq!(encoded(&Frame::AdditionalAddresses(none)), hex("c0000009 25adda04 02 00"));
}

#[test]
fn uniflows_and_paths() {
    let uniflow = |id, address| UniflowInfo { uniflow: PathId(id), address };
    let (receiving, sending) = ([uniflow(0, 0), uniflow(300, 2)], [uniflow(1, 255)]);
    let (mut some, mut others) = (Vec::new(), Vec::new());
    let frame =
        Uniflows { sequence: 9, receiving: List::of(receiving, &mut some), sending: List::of(sending, &mut others) };
    // Sequence, two counts, then id and address of each
    same_both_ways("4046 09 02 01 00 00 412c 02 01 ff", Frame::Uniflows(frame));
    assert!(frame.receiving.iter().eq(receiving) && frame.sending.iter().eq(sending));

    let path = |path, condition| PathInfo {
        path: PathId(path),
        condition,
        srtt_us: 20_000,
        rttvar_us: 300,
        delivered_bytes_per_s: 1_000_000,
        loss_ppm: 5,
    };
    let paths = [
        path(0, PathCondition::Active),
        path(1, PathCondition::Backup),
        path(2, PathCondition::PotentiallyFailed),
        path(3, PathCondition::Abandoned),
    ];
    let mut buf = Vec::new();
    let frame = PathsInfo { sequence: 1, paths: List::of(paths, &mut buf) };
    let rest = "80004e20 412c 800f4240 05";
    let text = format!("ad505812 01 04 00 00 {rest} 01 01 {rest} 02 02 {rest} 03 03 {rest}");
    same_both_ways(&text, Frame::PathsInfo(frame));
    assert!(frame.paths.iter().eq(paths));
}

#[test]
fn what_announcements_may_not_say() {
    for (text, expected) in [
        // Each of Multiflow's three reserved bits, and IP versions
        ("4044 24 07 00 00 c0000201", Violation::AddressReservedBits),
        ("4044 44 07 00 00 c0000201", Violation::AddressReservedBits),
        ("4044 84 07 00 00 c0000201", Violation::AddressReservedBits),
        ("4044 00 07 00 00 c0000201", Violation::AddressIpVersion),
        ("4044 15 07 00 00 c0000201", Violation::AddressIpVersion),
        ("ad505810 01 00 10 00 c0000201", Violation::AddressReservedBits),
        ("ad505810 01 00 80 00 c0000201", Violation::AddressReservedBits),
        ("c000000925adda04 01 01 05 c0000201 1151", Violation::AddressIpVersion),
        ("ad505812 01 01 00 04 00 00 00 00", Violation::PathConditionUnknown),
        ("ad505812 01 01 c000000100000000 00 00 00 00 00", Violation::PathIdAboveLimit),
        ("4046 00 01 00 c000000100000000 00", Violation::PathIdAboveLimit),
        // Counts for which there are no bytes, and the largest that there are
        ("4046 00 02 00 00 00 00", Violation::TruncatedFrame),
        ("4046 00 01 01 00 00 00", Violation::TruncatedFrame),
        ("4046 00 ffffffffffffffff 00 00 00", Violation::TruncatedFrame),
        ("4046 00 00 ffffffffffffffff 00 00", Violation::TruncatedFrame),
        ("ad505812 01 ffffffffffffffff 00 00 00 00 00 00", Violation::TruncatedFrame),
        ("c000000925adda04 01 ffffffffffffffff 04 c0000201 1151", Violation::TruncatedFrame),
        ("c000000925adda04 01 01 06 c0000201 1151", Violation::TruncatedFrame),
    ] {
        assert_eq!(violation(text), expected, "{text}");
    }
}

proptest! {
    #[test]
    fn announcements_round_trip_and_may_be_cut_anywhere(
        numbers in [varints(), varints(), varints(), varints(), varints()],
        (v4, v6, port, is_v6) in any::<(u32, u128, u16, bool)>(),
        (path, address, condition, flags) in any::<(u32, u8, u8, u8)>(),
        count in 0usize..5,
    ) {
        let [a, b, c, d, e] = numbers;
        let ip = if is_v6 { IpAddr::V6(v6.into()) } else { IpAddr::V4(v4.into()) };
        let (path, addr) = (PathId(path), SocketAddr::new(ip, port));
        let plain = AddAddress { ip, port: Some(port), ..added(AddressForm::NatTraversal, a, "::") };
        let more = AddAddress {
            sequence: b,
            port: (flags & 1 != 0).then_some(port),
            interface: InterfaceType::from(address),
            ..plain
        };
        let status = if flags & 2 != 0 { PathStatus::Backup } else { PathStatus::Available };
        let all = AddAddress { form: AddressForm::Private, status, metered: flags & 4 != 0, ..more };
        for frame in [plain, AddAddress { form: AddressForm::Multiflow, id: a % 256, ..more }, all] {
            round_trips_and_may_be_cut(Frame::AddAddress(frame));
            let AddAddress { form, id, sequence, .. } = frame;
            round_trips_and_may_be_cut(Frame::RemoveAddress(RemoveAddress { form, id, sequence }));
        }
        round_trips_and_may_be_cut(Frame::ReachOut(ReachOut { round: c, addr }));
        let (mut buf, mut second) = (Vec::new(), Vec::new());
        let addresses = List::of(std::iter::repeat_n(addr, count), &mut buf);
        round_trips_and_may_be_cut(Frame::AdditionalAddresses(AdditionalAddresses { sequence: b, addresses }));
        let uniflow = UniflowInfo { uniflow: path, address };
        let receiving = List::of(std::iter::repeat_n(uniflow, count), &mut buf);
        let sending = List::of([uniflow], &mut second);
        round_trips_and_may_be_cut(Frame::Uniflows(Uniflows { sequence: d, receiving, sending }));
        let condition = [PathCondition::Active, PathCondition::Backup, PathCondition::Abandoned][usize::from(condition % 3)];
        let info = PathInfo { path, condition, srtt_us: a, rttvar_us: b, delivered_bytes_per_s: c, loss_ppm: d };
        let paths = List::of(std::iter::repeat_n(info, count), &mut buf);
        round_trips_and_may_be_cut(Frame::PathsInfo(PathsInfo { sequence: e, paths }));
    }
}
