//! What the rounds gave: a table to read, and rows for a file.

use std::fmt::Write as _;

/// One figure of a round.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// As a reader has it.
    pub title: &'static str,
    /// As a program has it.
    pub key: &'static str,
    pub decimals: usize,
}

/// The figures of each contestant, round by round.
pub struct Table {
    columns: &'static [Column],
    names: Vec<&'static str>,
    /// By contestant; none for a round that failed.
    rounds: Vec<Vec<Option<Vec<f64>>>>,
}

impl Table {
    pub fn new(columns: &'static [Column], names: Vec<&'static str>) -> Self {
        let rounds = vec![Vec::new(); names.len()];
        Self { columns, names, rounds }
    }

    /// Adds what a contestant did in its next round.
    pub fn add(&mut self, contestant: usize, figures: Option<Vec<f64>>) {
        self.rounds[contestant].push(figures);
    }

    /// Medians with least and most, as a table in Markdown. `what` names the load.
    pub fn markdown(&self, what: &str) -> String {
        let mut text = format!("| {what} |");
        for column in self.columns {
            let _ = write!(text, " {} |", column.title);
        }
        let _ = writeln!(text, "\n|---|{}", "---|".repeat(self.columns.len()));
        for (name, rounds) in self.names.iter().zip(&self.rounds) {
            let good: Vec<_> = rounds.iter().flatten().collect();
            let _ = match rounds.len() - good.len() {
                0 => write!(text, "| {name} |"),
                failed => write!(text, "| {name} ({failed} failed) |"),
            };
            for (at, column) in self.columns.iter().enumerate() {
                let values = good.iter().map(|figures| figures[at]).collect();
                let _ = write!(text, " {} |", spread(values, column.decimals));
            }
            text.push('\n');
        }
        text
    }

    /// A line for each round of each contestant, with `fields` of the load in each.
    pub fn csv(&self, fields: &[(&str, String)]) -> String {
        let mut text = "round,contestant".to_owned();
        let keys = fields.iter().map(|(key, _)| *key).chain(self.columns.iter().map(|column| column.key));
        for key in keys {
            let _ = write!(text, ",{key}");
        }
        text.push('\n');
        let count = self.rounds.iter().map(Vec::len).max().unwrap_or(0);
        for round in 0..count {
            for (name, rounds) in self.names.iter().zip(&self.rounds) {
                let Some(figures) = rounds.get(round) else { continue };
                let _ = write!(text, "{},{name}", round + 1);
                for (_, value) in fields {
                    let _ = write!(text, ",{value}");
                }
                for at in 0..self.columns.len() {
                    let _ = match figures {
                        Some(figures) => write!(text, ",{:.4}", figures[at]),
                        None => write!(text, ","),
                    };
                }
                text.push('\n');
            }
        }
        text
    }
}

/// Median, least and most.
fn spread(mut values: Vec<f64>, decimals: usize) -> String {
    if values.is_empty() {
        return "-".to_owned();
    }
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let median = if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 };
    format!("{median:.decimals$} ({:.decimals$}-{:.decimals$})", values[0], values[values.len() - 1])
}

#[cfg(test)]
mod tests {
    use super::{Column, Table, spread};

    const COLUMNS: [Column; 2] =
        [Column { title: "Gbit/s", key: "gbits", decimals: 2 }, Column { title: "CPU", key: "cpu", decimals: 1 }];

    #[test]
    fn a_spread_is_median_least_and_most() {
        assert_eq!(spread(vec![3.0, 1.0, 2.0], 2), "2.00 (1.00-3.00)");
        assert_eq!(spread(vec![4.0, 1.0, 2.0, 3.0], 1), "2.5 (1.0-4.0)");
        assert_eq!(spread(Vec::new(), 2), "-");
    }

    #[test]
    fn failures_are_counted_and_keep_their_line() {
        let mut table = Table::new(&COLUMNS, vec!["a", "b"]);
        table.add(0, Some(vec![1.0, 2.0]));
        table.add(0, Some(vec![3.0, 4.0]));
        table.add(1, None);
        table.add(1, Some(vec![5.0, 6.0]));
        let text = table.markdown("1 byte");
        assert!(text.contains("| a | 2.00 (1.00-3.00) | 3.0 (2.0-4.0) |"), "{text}");
        assert!(text.contains("| b (1 failed) | 5.00 (5.00-5.00) | 6.0 (6.0-6.0) |"), "{text}");
        let csv = table.csv(&[("bytes", "1".to_owned())]);
        let lines: Vec<_> = csv.lines().collect();
        assert_eq!(lines[0], "round,contestant,bytes,gbits,cpu");
        assert_eq!(lines[1..3], ["1,a,1,1.0000,2.0000", "1,b,1,,"]);
        assert_eq!(lines.len(), 5);
    }
}
