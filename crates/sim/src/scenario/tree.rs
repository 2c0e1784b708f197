//! A scenario file as a tree of values that know where they came from, so that every complaint names file and line.

use std::collections::BTreeMap;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use super::error::ScenarioError;
use super::origin::Origin;

/// A TOML value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Float(f64),
    /// A whole number that does not fit.
    Huge(String),
    /// A string, without its quotes.
    Text(String),
    /// A list of values.
    Array(Vec<Node>),
    /// A table of values under keys.
    Table(BTreeMap<String, Node>),
    /// A date or a time, which no scenario uses.
    Time(String),
}

/// A value and where it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What was written.
    pub value: Value,
    /// Where it was written.
    pub origin: Origin,
}

/// A whole scenario file, or one put together by program.
///
/// ```
/// use plait_sim::scenario::{Scenario, Traces, Tree};
///
/// let text = "[[path]]\nrate_mbps = 10\nrtt_ms = 20\n[transfer]\nkind = \"download\"\n";
/// let mut tree = Tree::parse("mine.toml", text)?;
/// tree.set("path.0.loss", "0.01", "--set")?;
/// tree.set("endpoints.scheduler", "blest", "--set")?;
/// let scenario = Scenario::read(&tree, &Traces::default())?;
/// assert_eq!(scenario.endpoints.scheduler.name(), "blest");
///
/// let refused = tree.set("path.1.loss", "0.01", "--set").unwrap_err();
/// assert_eq!(refused.to_string(), "--set: `path.1.loss`: there is no `path.1`; accepted: path.0");
/// # Ok::<(), plait_sim::scenario::ScenarioError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Tree(pub(crate) Node);

impl Tree {
    /// Reads TOML text; `place` is the name of the file.
    ///
    /// # Errors
    /// It is not TOML.
    pub fn parse(place: &str, text: &str) -> Result<Self, ScenarioError> {
        let lines = Lines::new(place, text);
        let table = DeTable::parse(text).map_err(|error| ScenarioError {
            origin: lines.origin(error.span().map_or(0, |span| span.start)),
            key: String::new(),
            problem: error.message().to_owned(),
            accepted: "TOML".into(),
        })?;
        let origin = lines.origin(0);
        Ok(Self(Node { value: read_table(table.get_ref(), &lines), origin }))
    }

    /// Sets `key`, dotted and with numbers for the tables of a list (`path.0.rate_mbps`), to a value written in TOML;
    /// a word without quotes is a string.
    ///
    /// # Errors
    /// There is no such table or the value is not TOML.
    pub fn set(&mut self, key: &str, value: &str, place: &str) -> Result<(), ScenarioError> {
        self.set_at(key, value, &Origin { place: place.into(), line: None })
    }

    /// As [`Tree::set`], for a value that was written there.
    pub(crate) fn set_at(&mut self, key: &str, value: &str, origin: &Origin) -> Result<(), ScenarioError> {
        let refuse = |problem: String, accepted: &str| ScenarioError {
            origin: origin.clone(),
            key: key.to_owned(),
            problem,
            accepted: accepted.to_owned(),
        };
        let mut node = parse_value(value, &origin.place)
            .ok_or_else(|| refuse(format!("`{value}` is not a value"), "a number, word, list or table in TOML"))?;
        node.restamp(origin);
        let mut parts = key.split('.').peekable();
        let mut at = &mut self.0;
        // The key of the table at hand, for people.
        let mut above = String::new();
        while let Some(part) = parts.next() {
            let last = parts.peek().is_none();
            at = match &mut at.value {
                Value::Table(table) if last => {
                    table.insert(part.to_owned(), node);
                    return Ok(());
                }
                Value::Table(table) => table
                    .entry(part.to_owned())
                    .or_insert_with(|| Node { value: Value::Table(BTreeMap::new()), origin: origin.clone() }),
                Value::Array(items) => {
                    let count = items.len();
                    // Written in one way only, so that no table has two keys.
                    let number = part.parse().ok().filter(|i: &usize| i.to_string() == part);
                    let item = number.and_then(|i| items.get_mut(i));
                    item.ok_or_else(|| {
                        let known = match count {
                            0 => "a key of another table".to_owned(),
                            1 => format!("{above}.0"),
                            _ => format!("{above}.0 to {above}.{}", count - 1),
                        };
                        refuse(format!("there is no `{above}.{part}`"), &known)
                    })?
                }
                _ => return Err(refuse(format!("`{part}` is looked for in a plain value"), "the key of a table")),
            };
            if !above.is_empty() {
                above.push('.');
            }
            above.push_str(part);
        }
        Err(refuse("the key is empty".into(), "a dotted key such as path.0.rate_mbps"))
    }

    /// A complaint about a key of the top.
    pub(crate) fn complain(&self, key: &str, problem: String, accepted: String) -> ScenarioError {
        let node = match &self.0.value {
            Value::Table(table) => table.get(key),
            _ => None,
        };
        let origin = node.unwrap_or(&self.0).origin.clone();
        ScenarioError { origin, key: key.to_owned(), problem, accepted }
    }

    /// Takes the table `key` of the top out of the tree.
    pub(crate) fn take(&mut self, key: &str) -> Option<Node> {
        match &mut self.0.value {
            Value::Table(table) => table.remove(key),
            _ => None,
        }
    }

    /// The whole content as people write it: plain values, then tables.
    pub fn document(&self) -> String {
        let Value::Table(top) = &self.0.value else { return String::new() };
        let is_list = |node: &Node| match &node.value {
            Value::Array(items) => items.iter().all(|item| matches!(item.value, Value::Table(_))) && !items.is_empty(),
            _ => false,
        };
        let lines = |table: &BTreeMap<String, Node>| -> String {
            table.iter().map(|(key, node)| format!("{} = {}\n", bare(key), node.text())).collect()
        };
        let (mut plain, mut tables) = (String::new(), String::new());
        for (key, node) in top {
            match &node.value {
                Value::Table(table) => tables.push_str(&format!("[{}]\n{}", bare(key), lines(table))),
                Value::Array(items) if is_list(node) => {
                    for item in items {
                        if let Value::Table(table) = &item.value {
                            tables.push_str(&format!("[[{}]]\n{}", bare(key), lines(table)));
                        }
                    }
                }
                _ => plain.push_str(&format!("{} = {}\n", bare(key), node.text())),
            }
        }
        plain + &tables
    }

    /// The whole content in one canonical line per value: equal trees have equal text.
    pub fn canonical(&self) -> String {
        let mut out = String::new();
        self.0.write(&mut out);
        out
    }

    /// Every value under its dotted key, such as `path.0.rate_mbps`; strings without quotes.
    pub fn leaves(&self) -> BTreeMap<String, String> {
        let mut leaves = BTreeMap::new();
        self.0.leaves("", &mut leaves);
        leaves
    }
}

impl Node {
    fn leaves(&self, key: &str, leaves: &mut BTreeMap<String, String>) {
        let under = |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
        let is_table = |item: &Self| matches!(item.value, Value::Table(_));
        match &self.value {
            Value::Table(table) => table.iter().for_each(|(name, item)| item.leaves(&under(name), leaves)),
            Value::Array(items) if items.iter().any(is_table) => {
                items.iter().enumerate().for_each(|(i, item)| item.leaves(&under(&i.to_string()), leaves));
            }
            Value::Text(text) => _ = leaves.insert(key.to_owned(), text.clone()),
            _ => _ = leaves.insert(key.to_owned(), self.text()),
        }
    }

    fn restamp(&mut self, origin: &Origin) {
        self.origin = origin.clone();
        match &mut self.value {
            Value::Array(items) => items.iter_mut().for_each(|item| item.restamp(origin)),
            Value::Table(table) => table.values_mut().for_each(|item| item.restamp(origin)),
            _ => {}
        }
    }

    /// As TOML, on one line.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        match &self.value {
            Value::Bool(b) => out.push_str(&b.to_string()),
            Value::Integer(i) => out.push_str(&i.to_string()),
            Value::Float(x) => out.push_str(&format!("{x:?}")),
            Value::Text(text) => out.push_str(&format!("{text:?}")),
            Value::Time(text) | Value::Huge(text) => out.push_str(text),
            Value::Array(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    out.push_str(if i > 0 { ", " } else { "" });
                    item.write(out);
                }
                out.push(']');
            }
            Value::Table(table) => {
                out.push_str("{ ");
                for (i, (key, item)) in table.iter().enumerate() {
                    out.push_str(if i > 0 { ", " } else { "" });
                    out.push_str(&format!("{} = ", bare(key)));
                    item.write(out);
                }
                out.push_str(" }");
            }
        }
    }

    /// What it is, for complaints.
    pub(crate) fn kind(&self) -> &'static str {
        match self.value {
            Value::Bool(_) => "true or false",
            Value::Integer(_) => "a whole number",
            Value::Float(_) => "a number",
            Value::Huge(_) => "too large a number",
            Value::Text(_) => "a string",
            Value::Array(_) => "a list",
            Value::Table(_) => "a table",
            Value::Time(_) => "a time",
        }
    }
}

/// A key, in quotes where it needs them.
fn bare(key: &str) -> String {
    let plain = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    if plain { key.to_owned() } else { format!("{key:?}") }
}

/// A value alone, in TOML; a bare word is a string.
fn parse_value(text: &str, place: &str) -> Option<Node> {
    let document = format!("v = {text}");
    let parsed = Tree::parse(place, &document).or_else(|error| {
        let word = text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c)) && !text.is_empty();
        if word { Tree::parse(place, &format!("v = {text:?}")) } else { Err(error) }
    });
    parsed.ok()?.take("v")
}

/// Byte offsets to lines.
struct Lines {
    place: Arc<str>,
    starts: Vec<usize>,
}

impl Lines {
    fn new(place: &str, text: &str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect();
        Self { place: place.into(), starts }
    }

    fn origin(&self, offset: usize) -> Origin {
        Origin { place: self.place.clone(), line: Some(self.starts.partition_point(|start| *start <= offset).max(1)) }
    }
}

fn read_table(table: &DeTable<'_>, lines: &Lines) -> Value {
    let read = |(key, value): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
        let key: &toml::Spanned<std::borrow::Cow<'_, str>> = key;
        let node = Node { value: read_value(value.get_ref(), lines), origin: lines.origin(key.span().start) };
        (key.get_ref().to_string(), node)
    };
    Value::Table(table.iter().map(read).collect())
}

fn read_value(value: &DeValue<'_>, lines: &Lines) -> Value {
    match value {
        DeValue::Boolean(b) => Value::Bool(*b),
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or_else(|_| Value::Huge(number.as_str().to_owned()), Value::Integer),
        DeValue::Float(number) => {
            number.as_str().parse().map_or_else(|_| Value::Text(number.as_str().to_owned()), Value::Float)
        }
        DeValue::Datetime(time) => Value::Time(time.to_string()),
        DeValue::Array(items) => {
            let node = |item: &toml::Spanned<DeValue<'_>>| Node {
                value: read_value(item.get_ref(), lines),
                origin: lines.origin(item.span().start),
            };
            Value::Array(items.iter().map(node).collect())
        }
        DeValue::Table(table) => read_table(table, lines),
    }
}
