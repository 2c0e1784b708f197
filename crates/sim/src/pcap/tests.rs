//! Captures read back, block by block.

use std::net::SocketAddr;

use bytes::BytesMut;
use plait_base::{Ecn, Instant};
use plait_netsim::Datagram;

use super::*;
use crate::run::{Watch, run};
use crate::scenario::{Traces, Tree};

const SHARED: &str = r#"
[[link]]
name = "core"
rate_mbps = 10
delay_ms = 5
queue_packets = 20
[[path]]
via = ["core"]
delay_ms = 2
[[path]]
via = ["core"]
delay_ms = 8
[[cross]]
kind = "flow"
link = "core"
[transfer]
kind = "download"
bytes = 1_000_000
"#;

fn scenario(text: &str) -> Scenario {
    Scenario::read(&Tree::parse("x.toml", text).unwrap(), &Traces::default()).unwrap()
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// Types and bodies of all blocks, padding included.
fn blocks(mut file: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let mut blocks = Vec::new();
    while !file.is_empty() {
        let length = word(file, 4) as usize;
        assert!(length.is_multiple_of(4) && word(file, length - 4) as usize == length, "{length}");
        blocks.push((word(file, 0), file[8..length - 4].to_vec()));
        file = &file[length..];
    }
    blocks
}

/// The time of a packet's block.
fn nanos(body: &[u8]) -> u64 {
    u64::from(word(body, 4)) << 32 | u64::from(word(body, 8))
}

/// The ones' complement sum of a header that carries its checksum is all ones.
fn sums_up(bytes: &[u8]) -> bool {
    let pairs = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let sum: u32 = pairs.sum();
    (sum & 0xffff) + (sum >> 16) == 0xffff
}

#[test]
fn packets_have_sound_headers() {
    let packet = |src: &str, dst: &str, ecn, payload: &[u8]| {
        let [src, dst]: [SocketAddr; 2] = [src, dst].map(|address| address.parse().unwrap());
        packet::ip_packet(&Datagram { src, dst, ecn, payload: BytesMut::from(payload) })
    };
    let v4 = packet("10.0.1.2:5000", "10.9.0.1:4433", Some(Ecn::Ce), b"odd");
    assert_eq!((v4[0], v4[1], v4.len(), usize::from(v4[3])), (0x45, 3, 31, 31));
    assert_eq!((&v4[12..20], &v4[28..]), (&[10, 0, 1, 2, 10, 9, 0, 1][..], &b"odd"[..]));
    assert!(sums_up(&v4[..20]), "{v4:?}");
    assert!(sums_up(&[&v4[12..20], &[0, 17, 0, 11], &v4[20..]].concat()), "{v4:?}");
    for (src, dst) in [("[fd00::1]:1", "[fd00::2]:2"), ("10.0.0.1:1", "[fd00::2]:2")] {
        let v6 = packet(src, dst, Some(Ecn::Ect0), &[0xff; 1000]);
        assert_eq!((v6[0], v6[1], v6[6], v6.len()), (0x60, 0x20, 17, 1048));
        assert_eq!(usize::from(v6[4]) << 8 | usize::from(v6[5]), 1008);
        assert!(sums_up(&[&v6[8..40], &[0, 17], &v6[4..6], &v6[40..]].concat()), "{src}");
    }
}

#[test]
fn links_are_named_as_in_scenarios() {
    let scenario = scenario(SHARED);
    let names = |wanted: &[&str]| {
        let wanted: Vec<String> = wanted.iter().map(ToString::to_string).collect();
        ways(&wanted, &scenario)
            .map(|ways| ways.into_iter().map(|way| format!("{} {:?}", way.name, way.direction)).collect::<Vec<_>>())
    };
    assert_eq!(names(&["path.1"]).unwrap(), ["path1 Up", "path1 Down"]);
    assert_eq!(names(&["link.core.down", "path.0.up", "path.0.up"]).unwrap(), ["path0 Up", "link-core Down"]);
    assert_eq!(names(&["all"]).unwrap().len(), 6);
    for wrong in ["core", "path.2", "path.0.left", "path.0.", "link.core.down.up", ""] {
        let error = names(&["path.0", wrong]).unwrap_err();
        let accepted = "accepted: all, path.0, path.1, link.core, each alone or with .up or .down";
        assert_eq!(error, format!("`{wrong}` is no link to capture; {accepted}"));
    }
}

#[test]
fn captures_hold_what_left_the_queue_and_its_keys() {
    let folder = std::env::temp_dir().join(format!("plait-sim-pcap-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    let scenario = scenario(SHARED);
    let mut captures = Captures::open(&folder, ways(&["all".to_owned()], &scenario).unwrap()).unwrap();
    let outcome = run(&scenario, 1, Watch { captures: Some(&mut captures), ..Watch::default() }).unwrap();
    assert_eq!(outcome.digest, run(&scenario, 1, Watch::default()).unwrap().digest, "watching changes nothing");
    let files = captures.finish().unwrap();
    assert_eq!(files.len(), 4);
    let keys = fs::read_to_string(folder.join(KEYS_FILE)).unwrap();
    assert_eq!(keys.matches("SERVER_HANDSHAKE_TRAFFIC_SECRET ").count(), 2, "ours and that of the flow: {keys}");
    let link = &outcome.around.links[0].traffic.down;
    assert!(link.drops_total() > 0, "something found no room");
    let blocks = blocks(&fs::read(folder.join("link-core.pcapng")).unwrap());
    let bodies = |kind| blocks.iter().filter(move |(is, _)| *is == kind).map(|(_, body)| body);
    assert_eq!((blocks[0].0, word(&blocks[0].1, 0)), (ng::SECTION_HEADER, ng::BYTE_ORDER));
    assert_eq!((blocks[1].0, word(&blocks[1].1, 0)), (ng::INTERFACE, u32::from(ng::LINKTYPE_RAW)));
    let text: String = bodies(ng::DECRYPTION_SECRETS)
        .map(|body| {
            assert_eq!(word(body, 0), ng::TLS_KEY_LOG);
            String::from_utf8(body[8..8 + word(body, 4) as usize].to_vec()).unwrap()
        })
        .collect();
    assert_eq!(text, keys);
    let times: Vec<u64> = bodies(ng::ENHANCED_PACKET).map(|body| nanos(body)).collect();
    assert!(times.is_sorted(), "both directions in the order of time");
    // Between packets is room for as long as each takes to leave at 10 Mbit/s.
    let packets: Vec<(Instant, usize)> = bodies(ng::ENHANCED_PACKET)
        .filter(|body| word(body, body.len() - 8) == ng::INBOUND)
        .map(|body| {
            assert!(sums_up(&body[20..40]) && word(body, 12) == word(body, 16));
            (Instant::from_nanos(nanos(body)), word(body, 12) as usize)
        })
        .collect();
    let apart = |pair: &[(Instant, usize)]| pair[1].0.since(pair[0].0).as_nanos() >= pair[1].1 as u128 * 800;
    assert!(packets.windows(2).all(apart));
    let bytes: u64 = packets.iter().map(|(_, bytes)| *bytes as u64).sum();
    let planned = link.forwarded_bytes - bytes;
    assert!(packets.len() > 700 && planned < 30 * 1500, "{} packets, {planned} bytes are to leave", packets.len());
    fs::remove_dir_all(&folder).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_written_is_told() {
    let scenario = scenario(SHARED);
    let folder = std::env::temp_dir().join(format!("plait-sim-pcap-full-{}", std::process::id()));
    let ways = ways(&["path.0.down".to_owned()], &scenario).unwrap();
    let mut captures = Captures::open(&folder, ways.clone()).unwrap();
    let full = BufWriter::new(File::create("/dev/full").unwrap());
    captures.files[0].writer = ng::Writer::begin(full, "x").unwrap();
    run(&scenario, 1, Watch { captures: Some(&mut captures), ..Watch::default() }).unwrap();
    let error = captures.finish().unwrap_err().to_string();
    assert!(error.contains("path0.pcapng") && error.contains("No space left"), "{error}");
    assert!(!folder.exists() && !folder.with_extension("part").exists());
    assert!(Captures::open(Path::new("/dev/null/x"), ways).is_err());
}
