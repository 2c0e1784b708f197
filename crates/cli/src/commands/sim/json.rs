//! Rows as JSON: the type of a value goes by its column, never by what it looks like.

use plait_sim::campaign::Row;
use serde_json::{Map, Value, json};

/// Inputs and outcomes that are words.
const WORDS: &str = "commit name kind end error faults digest trace state aqm via link mapping filtering interface \
                     rebind action direction header extension scheduler congestion ack_path protection reinjection path_policy";
/// Those that are true or false.
const FLAGS: &str = "duplicate_until_rtt whole_ms";
/// Those that are whole numbers, besides all that end with `_bytes`.
const COUNTS: &str = "run seed bytes requests unanswered stalls count path initial_path skip every packets \
                      device_packets queues queue_packets scheduler_waits_faster scheduler_waits_busy \
                      scheduler_waits_no_path scheduler_copies datagrams_sent datagrams_arrived datagrams_lost \
                      packets_sent packets_lost probe_timeouts mtu_falls down_dropped";

/// A row as an object.
pub(crate) fn row(row: &Row) -> Value {
    let cells = row.cells.iter().map(|(column, text)| (column.clone(), cell(column, text)));
    Value::Object(cells.collect::<Map<_, _>>())
}

fn cell(column: &str, text: &str) -> Value {
    let name = last_part(column);
    let is_one_of = |names: &str| names.split_whitespace().any(|one| one == name);
    if is_one_of(WORDS) {
        return if text.is_empty() && name != "name" { Value::Null } else { json!(text) };
    }
    let counts = is_one_of(COUNTS) || name.ends_with("_bytes");
    let value = match text {
        "" => Some(Value::Null),
        text if is_one_of(FLAGS) => text.parse().ok().map(Value::Bool),
        text if counts => text.parse::<u64>().ok().map(|count| json!(count)),
        // A span, as `[1, 2]`.
        text if text.starts_with('[') => serde_json::from_str(text).ok(),
        text => text.parse::<f64>().ok().filter(|number| number.is_finite()).map(|number| json!(number)),
    };
    value.unwrap_or_else(|| json!(text))
}

/// What a column is called within its table, path, link or source of cross traffic.
fn last_part(column: &str) -> &str {
    let key = column.rsplit('.').next().unwrap_or(column);
    let numbered = |prefix: &str| {
        let (number, name) = key.strip_prefix(prefix)?.split_once('_')?;
        number.parse::<usize>().ok().map(|_| name)
    };
    let of_link = || {
        let ends = ["up_bytes", "down_bytes", "down_queue_max_ms", "down_dropped"];
        key.strip_prefix("link_").and_then(|_| ends.into_iter().find(|end| key.ends_with(end)))
    };
    numbered("path").or_else(|| numbered("cross")).or_else(of_link).unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_go_by_column() {
        let cells = [
            ("name", "1e5", json!("1e5")),
            ("name", "", json!("")),
            ("seed", "9223372036854775807", json!(9_223_372_036_854_775_807_u64)),
            ("path.0.rate_mbps", "10", json!(10.0)),
            ("path.0.rate_mbps", "10.5", json!(10.5)),
            ("path.1.vary.delay_ms", "[1, 2.5]", json!([1, 2.5])),
            ("path.0.up.mtu_bytes", "1500", json!(1500)),
            ("transfer.bytes", "20000000", json!(20_000_000)),
            ("endpoints.duplicate_until_rtt", "true", json!(true)),
            ("first_byte_ms", "", Value::Null),
            ("error", "", Value::Null),
            ("digest", "0000000000000123", json!("0000000000000123")),
            ("path12_packets_lost", "3", json!(3)),
            ("path0_rtt_ms", "20.000", json!(20.0)),
            ("link_a_b_down_dropped", "0", json!(0)),
            ("cross0_goodput_mbps", "1.000000", json!(1.0)),
        ];
        for (column, text, value) in cells {
            assert_eq!(cell(column, text), value, "{column} {text}");
        }
    }
}
