//! Moves that only uniflows know: send flows are bound and let go, packets come from anywhere, hosts name addresses.

use plait_base::limits::{MAX_HOST_ADDRESSES, MAX_PATHS};
use plait_base::{PathId, Violation};
use plait_engine::congestion::{ControllerFactory, NewRenoFactory};
use plait_path::table::Admission;
use plait_path::{Feedback, PathAddresses, Paths, Validation};
use plait_wire::frame::{
    AckForm, AddAddress, AddressForm, InterfaceType, List, PathStatus, RemoveAddress, UniflowInfo, Uniflows,
};

use super::{Driver, path, times, tuple};
use crate::ArbitraryInput;
use crate::puppet::frames::path_id;

/// One move of a kind that is another with uniflows than with paths.
pub(super) fn step(driver: &mut Driver, input: &mut ArbitraryInput<'_>, kind: u8) -> Result<(), Violation> {
    match kind {
        7 => bind(driver, input),
        8 => driver.table.unbind(driver.now, path_id(input), &mut Feedback::default()),
        10 => packet_from_elsewhere(driver, input),
        12 => return address(driver, input),
        _ => return report(driver, input),
    }
    check(driver);
    Ok(())
}

/// The frame of an ack as Multiflow writes it.
pub(super) fn on_ack(table: &mut Paths, of: PathId, form: AckForm) -> Result<(), Violation> {
    let form = if form == AckForm::Path { AckForm::Uniflow } else { form };
    table.on_ack(of, form).map(drop)
}

fn bind(driver: &mut Driver, input: &mut ArbitraryInput<'_>) {
    let to = tuple(input.byte() % 9);
    let Ok(id) = driver.table.next_uniflow(to.local) else { return };
    if driver.table.lacks_path(id) {
        driver.table.put_path(path(id, PathAddresses::opened(to)));
    }
    let now = driver.now;
    driver.table.bind(now, id, PathAddresses::opened(to), times(), || NewRenoFactory::default().build(id, now, 1_200));
    let bound = driver.table.path(id).expect("a flow that was bound");
    assert!(bound.tuple() == to && driver.table.slot(id).is_some_and(|slot| slot.is_open()));
}

fn packet_from_elsewhere(driver: &mut Driver, input: &mut ArbitraryInput<'_>) {
    let (id, from) = (path_id(input), tuple(input.byte() % 9));
    let place = driver.table.place(id);
    driver.table.on_received_from(&from, 1_200);
    if driver.table.admission_at(place) == Admission::New {
        driver.table.put_path(path(id, PathAddresses::new(from, Validation::Unvalidated)));
    }
    if driver.table.path_mut(id).is_some_and(|path| path.on_heard_from(&from))
        && let Some(hosts) = driver.table.hosts_mut()
    {
        hosts.on_heard(id, from.remote);
        hosts.on_flows_changed();
    }
}

/// ADD_ADDRESS or REMOVE_ADDRESS; what is gone is not offered any more.
fn address(driver: &mut Driver, input: &mut ArbitraryInput<'_>) -> Result<(), Violation> {
    let (id, sequence, at) = (u64::from(input.byte() % 40), input.number() % 64, tuple(input.byte() % 9).remote);
    let Some(hosts) = driver.table.hosts_mut() else { return Ok(()) };
    let form = AddressForm::Multiflow;
    let gone = if input.flag() {
        let (ip, port, interface) = (at.ip(), input.flag().then_some(at.port()), InterfaceType::Fixed);
        let status = PathStatus::Available;
        hosts.on_add_address(&AddAddress { form, id, sequence, ip, port, interface, status, metered: false }, 443)?
    } else {
        hosts.on_remove_address(&RemoveAddress { form, id, sequence }, at)?
    };
    assert!(gone.len() <= 3);
    if input.flag() {
        hosts.theirs.offer(driver.now);
    }
    let flows: Vec<PathId> =
        driver.table.open_paths().filter(|path| gone.contains(&path.tuple().remote)).map(|path| path.id()).collect();
    flows.into_iter().for_each(|id| driver.table.unbind(driver.now, id, &mut Feedback::default()));
    check(driver);
    Ok(())
}

/// UNIFLOWS, and now and then other addresses of ours.
fn report(driver: &mut Driver, input: &mut ArbitraryInput<'_>) -> Result<(), Violation> {
    let sequence = input.number() % 64;
    let flows: Vec<UniflowInfo> =
        (0..input.below(6)).map(|_| UniflowInfo { uniflow: path_id(input), address: input.byte() % 40 }).collect();
    let (receiving, sending) = flows.split_at(flows.len() / 2);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let receiving = List::of(receiving.iter().copied(), &mut first);
    let sending = List::of(sending.iter().copied(), &mut second);
    driver.table.on_uniflows(&Uniflows { sequence, receiving, sending })?;
    if input.one_in(3)
        && let Some(hosts) = driver.table.hosts_mut()
    {
        let local: Vec<_> = (0..input.below(4)).map(|n| tuple(n as u8 * 4 + 1).local).collect();
        hosts.set_local(&local);
    }
    check(driver);
    Ok(())
}

fn check(driver: &Driver) {
    assert!(driver.table.open_paths().count() <= MAX_PATHS);
    let addresses = driver.table.hosts().map_or(0, |hosts| hosts.peer_addresses().count());
    assert!(addresses <= 2 * MAX_HOST_ADDRESSES, "{addresses} addresses of a peer");
}

/// Every send flow lets its addresses go; then none is open, and time brings nothing more.
pub(super) fn shut_down(driver: &mut Driver) {
    let open: Vec<PathId> = driver.table.open_paths().map(|path| path.id()).collect();
    open.into_iter().for_each(|id| driver.table.unbind(driver.now, id, &mut Feedback::default()));
    driver.pass(std::time::Duration::from_secs(600));
    driver.check();
    assert_eq!(driver.table.open_paths().count(), 0, "let go, and still open");
}

/// Ids exchanged, flows bound, answered and let go, packets from new addresses, words on addresses.
pub(super) fn seed(side: u8) -> Vec<u8> {
    let new_cid = |path: u8, sequence: u8| [0, 2, 1, path, 1, sequence, 0, 100 + path * 8 + sequence, 1, 0, 0];
    let mut bytes = vec![side, 0x87, 30, 4, 5, 6, 4, 0, 2];
    bytes.extend((1..4).flat_map(|path| [new_cid(path, 0), new_cid(path, 1)]).flatten());
    let turn = |i: u8| {
        [
            7,
            i,
            11,
            i % 4,
            1,
            10,
            i % 4,
            i,
            12,
            i,
            i,
            i,
            i & 1,
            1,
            13,
            i,
            2,
            i % 4,
            i,
            i % 4,
            0,
            6,
            4,
            0,
            i,
            9,
            i,
            8,
            i % 4,
            5,
        ]
    };
    bytes.extend((0..20).flat_map(turn));
    bytes
}
