//! Reads the keys of one table, each with its accepted range, and refuses the keys that nobody asked for.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::error::ScenarioError;
use super::origin::Origin;
use super::tree::{Node, Value};

/// Longest run, virtual seconds.
pub(super) const SECONDS_MAX: f64 = 1e6;

/// One table under its dotted key.
pub(crate) struct Reader<'a> {
    table: &'a BTreeMap<String, Node>,
    origin: &'a Origin,
    key: String,
    asked: RefCell<Vec<&'static str>>,
}

type Read<T> = Result<T, ScenarioError>;

impl<'a> Reader<'a> {
    /// The table `node`.
    pub(crate) fn new(node: &'a Node, key: &str) -> Read<Self> {
        match &node.value {
            Value::Table(table) => {
                Ok(Self { table, origin: &node.origin, key: key.to_owned(), asked: RefCell::default() })
            }
            _ => Err(refuse(node, key, format!("is {}", node.kind()), "a table")),
        }
    }

    fn full(&self, key: &str) -> String {
        if self.key.is_empty() { key.to_owned() } else { format!("{}.{key}", self.key) }
    }

    fn get(&self, key: &'static str) -> Option<&'a Node> {
        self.asked.borrow_mut().push(key);
        self.table.get(key)
    }

    /// A complaint about `key` in this table.
    pub(crate) fn complain(&self, key: &str, problem: impl Into<String>, accepted: impl Into<String>) -> ScenarioError {
        let (node, mut problem) = (self.table.get(key), problem.into());
        // A key that is missing is often there, with a slip.
        let slip = self.table.iter().find(|(other, _)| node.is_none() && is_slip_of(key, other));
        if let Some((other, _)) = slip {
            problem += &format!(", and `{other}` looks like it");
        }
        let origin = node.or(slip.map(|(_, node)| node)).map_or(self.origin, |node| &node.origin);
        ScenarioError { origin: origin.clone(), key: self.full(key), problem, accepted: accepted.into() }
    }

    /// Whether the key is there.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Whether the key is there and holds a table.
    pub(crate) fn has_table(&self, key: &str) -> bool {
        matches!(self.table.get(key), Some(Node { value: Value::Table(_), .. }))
    }

    /// A number within `range`.
    pub(crate) fn number(&self, key: &'static str, range: RangeInclusive<f64>, unit: &str) -> Read<Option<f64>> {
        let Some(node) = self.get(key) else { return Ok(None) };
        number_of(node, &self.full(key), &range, unit).map(Some)
    }

    /// Two numbers in order within `range`, or one that stands for both.
    pub(crate) fn span(&self, key: &'static str, range: RangeInclusive<f64>, unit: &str) -> Read<Option<(f64, f64)>> {
        let Some(node) = self.get(key) else { return Ok(None) };
        let full = self.full(key);
        let span = match &node.value {
            Value::Array(items) => match &items[..] {
                [low, high] => (number_of(low, &full, &range, unit)?, number_of(high, &full, &range, unit)?),
                _ => return Err(refuse(node, &full, format!("has {} values", items.len()), "[lowest, highest]")),
            },
            _ => {
                let one = number_of(node, &full, &range, unit)?;
                (one, one)
            }
        };
        if span.0 > span.1 {
            return Err(refuse(node, &full, format!("{} is above {}", span.0, span.1), "[lowest, highest]"));
        }
        Ok(Some(span))
    }

    /// A whole number within `range`.
    pub(crate) fn whole(&self, key: &'static str, range: RangeInclusive<u64>, unit: &str) -> Read<Option<u64>> {
        let Some(node) = self.get(key) else { return Ok(None) };
        let accepted = format!("{} to {}{}", range.start(), range.end(), spaced(unit));
        match node.value {
            Value::Integer(i) if u64::try_from(i).is_ok_and(|i| range.contains(&i)) => Ok(u64::try_from(i).ok()),
            Value::Integer(i) => Err(refuse(node, &self.full(key), format!("{i} is out of range"), accepted)),
            _ => Err(refuse(node, &self.full(key), format!("is {}", node.kind()), accepted)),
        }
    }

    /// Milliseconds within `range`.
    pub(crate) fn millis(&self, key: &'static str, range: RangeInclusive<f64>) -> Read<Option<Duration>> {
        Ok(self.number(key, range, "ms")?.map(|ms| Duration::from_nanos((ms * 1e6).round() as u64)))
    }

    /// Seconds within `range`.
    pub(crate) fn seconds(&self, key: &'static str, range: RangeInclusive<f64>) -> Read<Option<Duration>> {
        Ok(self.number(key, range, "s")?.map(|s| Duration::from_nanos((s * 1e9).round() as u64)))
    }

    /// One word of `allowed`.
    pub(crate) fn word(&self, key: &'static str, allowed: &[&'static str]) -> Read<Option<&'static str>> {
        let Some(node) = self.get(key) else { return Ok(None) };
        let accepted = allowed.join(", ");
        match &node.value {
            Value::Text(text) => match allowed.iter().find(|word| *word == text) {
                Some(word) => Ok(Some(word)),
                None => Err(refuse(node, &self.full(key), format!("`{text}` is not known"), accepted)),
            },
            _ => Err(refuse(node, &self.full(key), format!("is {}", node.kind()), accepted)),
        }
    }

    /// What one word of `choices` stands for. Each word has its value beside it, so that none is read as another's.
    pub(crate) fn choice<T: Clone>(&self, key: &'static str, choices: &[(&'static str, T)]) -> Read<Option<T>> {
        let words: Vec<&'static str> = choices.iter().map(|(word, _)| *word).collect();
        let word = self.word(key, &words)?;
        Ok(choices.iter().find(|(known, _)| Some(*known) == word).map(|(_, value)| value.clone()))
    }

    /// As [`Reader::choice`], for keys that have to be there.
    pub(crate) fn required_choice<T: Clone>(&self, key: &'static str, choices: &[(&'static str, T)]) -> Read<T> {
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        self.choice(key, choices)?.ok_or_else(|| self.complain(key, "is missing", words.join(", ")))
    }

    /// One or several of `known`, as a word or a list of words: their places in `known`.
    pub(crate) fn names(&self, key: &'static str, known: &[&str]) -> Read<Option<Vec<usize>>> {
        let Some(node) = self.get(key) else { return Ok(None) };
        let accepted = if known.is_empty() { "nothing, there is no [[link]]".into() } else { known.join(", ") };
        let place = |item: &Node| match &item.value {
            Value::Text(text) => known.iter().position(|name| name == text).ok_or_else(|| {
                refuse(item, &self.full(key), format!("`{text}` is not the name of a link"), accepted.clone())
            }),
            _ => Err(refuse(item, &self.full(key), format!("is {}", item.kind()), accepted.clone())),
        };
        let places = match &node.value {
            Value::Array(items) => items.iter().map(place).collect::<Read<Vec<_>>>()?,
            _ => vec![place(node)?],
        };
        let twice = places.iter().enumerate().find(|(i, place)| places.iter().take(*i).any(|before| before == *place));
        match twice {
            Some((_, place)) => {
                let name = known.get(*place).unwrap_or(&"");
                Err(refuse(node, &self.full(key), format!("`{name}` is there twice"), "each link once"))
            }
            None => Ok(Some(places)),
        }
    }

    /// Text of any kind.
    pub(crate) fn text(&self, key: &'static str) -> Read<Option<&'a str>> {
        let Some(node) = self.get(key) else { return Ok(None) };
        match &node.value {
            Value::Text(text) => Ok(Some(text)),
            _ => Err(refuse(node, &self.full(key), format!("is {}", node.kind()), "a string")),
        }
    }

    /// `true` or `false`.
    pub(crate) fn flag(&self, key: &'static str) -> Read<Option<bool>> {
        let Some(node) = self.get(key) else { return Ok(None) };
        match node.value {
            Value::Bool(b) => Ok(Some(b)),
            _ => Err(refuse(node, &self.full(key), format!("is {}", node.kind()), "true or false")),
        }
    }

    /// The table under a key.
    pub(crate) fn table(&self, key: &'static str) -> Read<Option<Reader<'a>>> {
        self.get(key).map(|node| Reader::new(node, &self.full(key))).transpose()
    }

    /// A list of tables.
    pub(crate) fn tables(&self, key: &'static str) -> Read<Vec<Reader<'a>>> {
        let Some(node) = self.get(key) else { return Ok(Vec::new()) };
        let Value::Array(items) = &node.value else {
            return Err(refuse(node, &self.full(key), format!("is {}", node.kind()), format!("tables [[{key}]]")));
        };
        items.iter().enumerate().map(|(i, item)| Reader::new(item, &format!("{}.{i}", self.full(key)))).collect()
    }

    /// Everything in the table, for tables whose keys are free.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'a String, &'a Node)> {
        self.table.iter()
    }

    /// Refuses what nobody asked for.
    pub(crate) fn finish(&self) -> Read<()> {
        let mut asked = self.asked.borrow().clone();
        let Some((key, node)) = self.table.iter().find(|(key, _)| !asked.contains(&key.as_str())) else {
            return Ok(());
        };
        asked.sort_unstable();
        asked.dedup();
        Err(refuse(node, &self.full(key), "there is no such key", asked.join(", ")))
    }
}

/// True where `typed` differs from `key` by two letters that changed places, or by one that is wrong, missing or too much.
fn is_slip_of(key: &str, typed: &str) -> bool {
    let same = key.bytes().zip(typed.bytes()).take_while(|(a, b)| a == b).count();
    let rests = (&key.as_bytes()[same..], &typed.as_bytes()[same..]);
    let swapped = matches!(rests, ([a, b, x @ ..], [c, d, y @ ..]) if (a, b, x) == (d, c, y));
    let wrong = matches!(rests, ([_, x @ ..], [_, y @ ..]) if x == y);
    let missing = matches!(rests, ([_, x @ ..], y) if x == y);
    let too_much = matches!(rests, (x, [_, y @ ..]) if x == y);
    key != typed && key.len() > 2 && (swapped || wrong || missing || too_much)
}

fn spaced(unit: &str) -> String {
    if unit.is_empty() { String::new() } else { format!(" {unit}") }
}

/// A complaint about `node`.
pub(crate) fn refuse(node: &Node, key: &str, problem: impl Into<String>, accepted: impl Into<String>) -> ScenarioError {
    ScenarioError {
        origin: node.origin.clone(),
        key: key.to_owned(),
        problem: problem.into(),
        accepted: accepted.into(),
    }
}

/// A number within `range`.
pub(crate) fn number_of(node: &Node, key: &str, range: &RangeInclusive<f64>, unit: &str) -> Read<f64> {
    let accepted = format!("{} to {}{}", range.start(), range.end(), spaced(unit));
    let number = match node.value {
        Value::Integer(i) => i as f64,
        Value::Float(x) => x,
        _ => return Err(refuse(node, key, format!("is {}", node.kind()), accepted)),
    };
    if range.contains(&number) {
        Ok(number)
    } else {
        Err(refuse(node, key, format!("{number} is out of range"), accepted))
    }
}
