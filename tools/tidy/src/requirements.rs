//! What the RFCs demand, line by line, and where code and tests say that they obey: the requirements' table.
//!
//! The lists are `docs/requirements/rfc*.md`: a line for each MUST, MUST NOT, SHALL and REQUIRED. Citations are comments
//! such as `RFC 9000 8.1` or, for one line of a list, `RFC 9000 8.1-2`.

use std::fmt;
use std::fs;

use crate::{Source, all_sources, root};

/// Crates that speak the protocol; the others simulate, measure or print.
const PROTOCOL: &[&str] = &["base", "wire", "crypto", "stream", "congestion", "schedule", "path", "engine", "plait"];

/// The list of one RFC.
#[derive(Debug)]
pub struct List {
    /// Number of the RFC.
    pub rfc: u32,
    /// Every section that it has, in its order.
    pub sections: Vec<String>,
    /// How many requirements its text holds, as counted in the text.
    pub counted: usize,
    /// A line for each.
    pub requirements: Vec<Requirement>,
}

/// One MUST of an RFC.
#[derive(Debug)]
pub struct Requirement {
    /// Its section.
    pub section: String,
    /// Which one of its section, from 1.
    pub ordinal: usize,
    /// MUST or MUST NOT.
    pub word: String,
    /// Whom it binds.
    pub who: String,
    /// What it asks, in our words.
    pub asks: String,
    /// Why code or test is missing; empty when neither is.
    pub why_not: String,
}

impl Requirement {
    /// Section and ordinal, as citations write it.
    pub fn id(&self) -> String {
        format!("{}-{}", self.section, self.ordinal)
    }
}

/// Whether a citation stands in the product or in a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Part of a crate that speaks the protocol.
    Code,
    /// A test of any crate.
    Test,
    /// A crate that does not speak the protocol.
    Elsewhere,
}

/// A comment that names a rule.
#[derive(Debug)]
pub struct Citation {
    /// Number of the RFC.
    pub rfc: u32,
    /// The section.
    pub section: String,
    /// The line of the RFC's list, if it names one; all of the section otherwise.
    pub ordinal: Option<usize>,
    /// Where it is.
    pub place: Place,
    /// File and line.
    pub at: String,
}

/// A requirement with the citations that answer it.
#[derive(Debug)]
pub struct Row<'a> {
    /// Number of the RFC.
    pub rfc: u32,
    /// What is asked.
    pub requirement: &'a Requirement,
    /// Lines of code that cite it.
    pub code: Vec<&'a str>,
    /// Lines of tests that cite it.
    pub tests: Vec<&'a str>,
}

impl Row<'_> {
    /// True when a line of code and a test cite it.
    pub fn is_held(&self) -> bool {
        !self.code.is_empty() && !self.tests.is_empty()
    }
}

impl fmt::Display for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Requirement { word, who, asks, why_not, .. } = self.requirement;
        write!(f, "RFC {} {} | {who}: {word}: {asks}", self.rfc, self.requirement.id())?;
        write!(f, " | {} | {} | {why_not}", some(&self.code), some(&self.tests))
    }
}

/// At most three, and how many more.
fn some(at: &[&str]) -> String {
    match at {
        [] => "-".to_owned(),
        [a, b, c, more @ ..] if !more.is_empty() => format!("{a}, {b}, {c} and {} more", more.len()),
        few => few.join(", "),
    }
}

/// Reads `docs/requirements/rfc*.md`, in the order of their numbers.
pub fn lists() -> Vec<List> {
    let Ok(entries) = fs::read_dir(root().join("docs/requirements")) else { return Vec::new() };
    let mut lists: Vec<List> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let rfc = name.strip_prefix("rfc")?.strip_suffix(".md")?.parse().ok()?;
            Some(List::parse(rfc, &fs::read_to_string(entry.path()).ok()?))
        })
        .collect();
    lists.sort_by_key(|list| list.rfc);
    lists
}

impl List {
    /// Reads the text of a list.
    pub fn parse(rfc: u32, text: &str) -> Self {
        let field = |name: &str| text.lines().find_map(|l| l.strip_prefix(name)).unwrap_or("").trim().to_owned();
        let rows = text.lines().filter_map(|line| {
            let mut cells = line.strip_prefix('|')?.trim_end().trim_end_matches('|').split('|').map(str::trim);
            let (section, ordinal) = cells.next()?.rsplit_once('-')?;
            let mut cell = || cells.next().unwrap_or("").to_owned();
            Some(Requirement {
                section: section.to_owned(),
                ordinal: ordinal.parse().ok()?,
                word: cell(),
                who: cell(),
                asks: cell(),
                why_not: cell(),
            })
        });
        Self {
            rfc,
            sections: field("Sections:").split_whitespace().map(str::to_owned).collect(),
            counted: field("Counted:").parse().unwrap_or(0),
            requirements: rows.collect(),
        }
    }

    /// Lines that are no good: wrong numbers, unknown sections, a count that differs from the RFC's.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.counted != self.requirements.len() {
            faults.push(format!("RFC {}: {} counted, {} listed", self.rfc, self.counted, self.requirements.len()));
        }
        let mut before = ("", 0);
        for requirement in &self.requirements {
            let Requirement { section, ordinal, word, who, asks, .. } = requirement;
            let expected = if before.0 == section { before.1 + 1 } else { 1 };
            if !self.sections.contains(section) || *ordinal != expected {
                faults.push(format!("RFC {} {}: not in the order of the RFC", self.rfc, requirement.id()));
            }
            if !["MUST", "MUST NOT", "SHALL", "SHALL NOT", "REQUIRED"].contains(&word.as_str())
                || who.is_empty()
                || asks.is_empty()
            {
                faults.push(format!("RFC {} {}: incomplete", self.rfc, requirement.id()));
            }
            before = (section, *ordinal);
        }
        faults
    }

    fn has(&self, section: &str, ordinal: Option<usize>) -> bool {
        let listed = |n| self.requirements.iter().any(|r| r.section == section && r.ordinal == n);
        self.sections.iter().any(|s| s == section) && ordinal.is_none_or(listed)
    }

    fn is_alone(&self, section: &str) -> bool {
        self.requirements.iter().filter(|r| r.section == section).count() == 1
    }
}

/// Every citation of a listed RFC in the tree; this crate's own examples are none.
pub fn citations(lists: &[List]) -> Vec<Citation> {
    let sources = all_sources();
    let cited = |source: &Source| source.krate() != "tidy";
    sources.iter().filter(|s| cited(s)).flat_map(|source| citations_of(source, lists)).collect()
}

fn citations_of(source: &Source, lists: &[List]) -> Vec<Citation> {
    let tests_from = if source.is_test() { 0 } else { tests_from(source) };
    let mut found = Vec::new();
    for (i, line) in source.lines.iter().enumerate() {
        let place = match i >= tests_from {
            true => Place::Test,
            false if PROTOCOL.contains(&source.krate()) => Place::Code,
            false => Place::Elsewhere,
        };
        for list in lists {
            for (section, ordinal) in cited_in(line, list) {
                let at = format!("{}:{}", source.path, i + 1);
                found.push(Citation { rfc: list.rfc, section, ordinal, place, at });
            }
        }
    }
    found
}

/// The line on which the module of tests begins; one in a file of its own takes no line.
fn tests_from(source: &Source) -> usize {
    let begins =
        |pair: &[String]| pair[0].trim() == "#[cfg(test)]" && pair[1].ends_with('{') && pair[1].contains("mod ");
    source.lines.windows(2).position(begins).unwrap_or(source.lines.len())
}

/// Sections of `list` that a line cites: `RFC 9000 8.1, 8.2-3 and 9.1` or `RFC 9000 19.4 to 19.10`.
pub fn cited_in(line: &str, list: &List) -> Vec<(String, Option<usize>)> {
    let mut found: Vec<(String, Option<usize>)> = Vec::new();
    let mark = format!("RFC {} ", list.rfc);
    for after in line.split(&mark).skip(1) {
        let mut rest = after;
        let mut link = "";
        while let Some((section, ordinal, left)) = item(rest) {
            // What follows a comma is a section only where a list ends or goes on: "8.1, 3 times" names one.
            let goes_on = left.is_empty()
                || left.starts_with([',', '.', ':', ';', ')', '`', '"'])
                || LINKS.iter().any(|l| left.starts_with(l));
            if !link.is_empty() && !goes_on {
                break;
            }
            if link == " to " {
                let place = |s: &str| list.sections.iter().position(|x| x == s);
                if let (Some(from), Some(to)) = (found.last().and_then(|(s, _)| place(s)), place(&section)) {
                    found.extend(list.sections[(from + 1).min(to)..to].iter().map(|s| (s.clone(), None)));
                }
            }
            found.push((section, ordinal));
            let Some(next) = LINKS.iter().find(|l| left.starts_with(**l)) else { break };
            (link, rest) = (next, &left[next.len()..]);
        }
    }
    found
}

const LINKS: [&str; 3] = [", ", " and ", " to "];

/// Reads `8.1` or `8.1-2`, and gives what comes after it.
fn item(text: &str) -> Option<(String, Option<usize>, &str)> {
    let digits = |t: &str| t.bytes().take_while(u8::is_ascii_digit).count();
    let mut end = match text.bytes().next()? {
        b'A'..=b'Z' if !text[1..].starts_with(|c: char| c.is_ascii_alphanumeric()) => 1,
        b'0'..=b'9' => digits(text),
        _ => return None,
    };
    while text[end..].starts_with('.') && digits(&text[end + 1..]) > 0 {
        end += 1 + digits(&text[end + 1..]);
    }
    let (section, mut rest) = text.split_at(end);
    let mut ordinal = None;
    if let Some(after) = rest.strip_prefix('-') {
        let len = digits(after);
        ordinal = after[..len].parse().ok();
        rest = if len > 0 { &after[len..] } else { rest };
    }
    Some((section.to_owned(), ordinal, rest))
}

/// Each requirement with what cites it. A section that holds one requirement may be cited as a whole; in a section with
/// several, a test has to say which it shows.
pub fn rows<'a>(lists: &'a [List], citations: &'a [Citation]) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    for list in lists {
        for requirement in &list.requirements {
            let alone = list.is_alone(&requirement.section);
            let of = |place| {
                let meant = move |c: &&Citation| {
                    let same = c.rfc == list.rfc && c.section == requirement.section && c.place == place;
                    let whole = c.ordinal.is_none() && (alone || place == Place::Code);
                    same && (whole || c.ordinal == Some(requirement.ordinal))
                };
                let mut all: Vec<&Citation> = citations.iter().filter(meant).collect();
                // Those that name the line come first.
                all.sort_by_key(|c| c.ordinal.is_none());
                all.iter().map(|c| c.at.as_str()).collect()
            };
            rows.push(Row { rfc: list.rfc, requirement, code: of(Place::Code), tests: of(Place::Test) });
        }
    }
    rows
}

/// Requirements without code, test or reason, and citations of what no RFC holds.
pub fn faults(lists: &[List], citations: &[Citation]) -> Vec<String> {
    let mut faults: Vec<String> = lists.iter().flat_map(List::faults).collect();
    for row in rows(lists, citations).iter().filter(|row| row.requirement.why_not.is_empty() && !row.is_held()) {
        let missing = match (row.code.is_empty(), row.tests.is_empty()) {
            (true, true) => "code and test",
            (true, false) => "code",
            _ => "test",
        };
        faults.push(format!("no {missing} for {row}"));
    }
    for citation in citations {
        let list = lists.iter().find(|l| l.rfc == citation.rfc);
        if !list.is_some_and(|l| l.has(&citation.section, citation.ordinal)) {
            let ordinal = citation.ordinal.map_or(String::new(), |n| format!("-{n}"));
            faults.push(format!("{}: no RFC {} {}{ordinal}", citation.at, citation.rfc, citation.section));
        }
    }
    faults
}

/// One line for each RFC: how many requirements, how many held by code and test, how many explained.
pub fn summary(rows: &[Row<'_>]) -> String {
    let mut out = String::new();
    let mut rfcs: Vec<u32> = rows.iter().map(|r| r.rfc).collect();
    rfcs.dedup();
    for rfc in rfcs {
        let mine: Vec<&Row<'_>> = rows.iter().filter(|r| r.rfc == rfc).collect();
        let held = mine.iter().filter(|r| r.is_held()).count();
        let explained = mine.iter().filter(|r| !r.is_held() && !r.requirement.why_not.is_empty()).count();
        out.push_str(&format!(
            "RFC {rfc}: {} requirements, {held} cited by code and test, {explained} explained, {} open\n",
            mine.len(),
            mine.len() - held - explained
        ));
    }
    out
}
