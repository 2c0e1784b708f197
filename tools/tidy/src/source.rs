//! Source files as lines, with what is only for tests told apart from the product.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::blank::blank;
use crate::items::{Keyword, item};

/// One Rust source file.
#[derive(Debug)]
pub struct Source {
    /// Path below the workspace root, with `/`.
    pub path: String,
    /// Its lines.
    pub lines: Vec<String>,
    /// Its lines without comments, and with nothing inside its literals; as many as `lines`.
    pub code: Vec<String>,
    product: Vec<String>,
    is_test: bool,
}

/// A function or struct with its size.
#[derive(Debug)]
pub struct Room {
    /// Its first line.
    pub name: String,
    /// Line it starts on, from 1.
    pub line: usize,
    /// Lines of a function, fields of a struct.
    pub size: usize,
}

/// The workspace's root folder.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every `.rs` file below `crates/*/src` and `tools/*/src`, sorted by path.
pub fn sources() -> Vec<Source> {
    let mut found = all_sources();
    found.retain(|s| s.path.contains("/src/"));
    found
}

/// Every `.rs` file below `crates` and `tools`, tests and examples too, sorted by path.
pub fn all_sources() -> Vec<Source> {
    let root = root();
    let mut found = Vec::new();
    let mut pending = vec![root.join("crates"), root.join("tools")];
    while let Some(dir) = pending.pop() {
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        for path in entries.flatten().map(|e| e.path()) {
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let Ok(text) = fs::read_to_string(&path) else { continue };
                let name = path.strip_prefix(&root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
                found.push(Source::new(name, &text));
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    let test_modules: HashSet<String> = found.iter().flat_map(Source::test_modules).collect();
    for source in &mut found {
        let stem = source.path.trim_end_matches(".rs");
        let mut folders = stem.match_indices('/').map(|(at, _)| &stem[..at]).chain([stem]);
        source.is_test |= folders.any(|folder| test_modules.contains(folder));
    }
    found
}

impl Source {
    /// A file at `path` below the root that holds `text`.
    pub fn new(path: String, text: &str) -> Self {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let code: Vec<String> = blank(text).lines().map(str::to_owned).collect();
        let product = without_tests(&lines);
        let is_test = path.ends_with("tests.rs") || path.contains("/tests/") || path.contains("_tests");
        Self { path, lines, code, product, is_test }
    }

    /// The crate's folder name, as `base` in `crates/base/src/lib.rs`.
    pub fn krate(&self) -> &str {
        self.path.split('/').nth(1).unwrap_or("")
    }

    /// True for files that hold tests only: by their name, or because their module is declared under `#[cfg(test)]`.
    pub fn is_test(&self) -> bool {
        self.is_test
    }

    /// All lines, where those of items under `#[cfg(test)]` are empty.
    pub fn product(&self) -> &[String] {
        &self.product
    }

    /// The product's lines, with their numbers from 1, without comments and with nothing inside literals.
    pub fn product_code(&self) -> impl Iterator<Item = (usize, &str)> {
        let kept = self.code.iter().zip(&self.product).enumerate();
        kept.filter(|(_, (_, product))| !product.trim().is_empty()).map(|(i, (code, _))| (i + 1, code.as_str()))
    }

    /// Functions of the product part, by brace depth as rustfmt lays them out.
    pub fn functions(&self) -> Vec<Room> {
        self.blocks(Keyword::Fn, |body| body.len())
    }

    /// Structs of the product part with their number of fields.
    pub fn structs(&self) -> Vec<Room> {
        self.blocks(Keyword::Struct, |body| {
            let field = |l: &&String| {
                let l = l.trim();
                !l.starts_with("//") && !l.starts_with('#') && l.ends_with(',') && l.contains(':')
            };
            body.iter().filter(field).count()
        })
    }

    /// Modules that exist only in tests, as paths of files without `.rs`.
    fn test_modules(&self) -> Vec<String> {
        let folder = match self.path.rsplit_once('/') {
            Some((folder, "mod.rs" | "lib.rs" | "main.rs")) => folder,
            _ => self.path.trim_end_matches(".rs"),
        };
        let only =
            self.lines.iter().zip(&self.product).filter(|(line, product)| product.is_empty() && !line.is_empty());
        let module = only.filter_map(|(line, _)| item(line).filter(|i| i.keyword == Keyword::Mod));
        module.map(|i| format!("{folder}/{}", i.name)).collect()
    }

    fn blocks(&self, keyword: Keyword, measure: impl Fn(&[String]) -> usize) -> Vec<Room> {
        let lines = &self.product;
        let mut rooms = Vec::new();
        for (i, line) in lines.iter().enumerate().filter(|(_, l)| item(l).is_some_and(|i| i.keyword == keyword)) {
            let indent = line.len() - line.trim_start().len();
            let close = format!("{}}}", " ".repeat(indent));
            let Some(open) = lines[i..].iter().position(|l| l.ends_with('{') || l.ends_with(';') || l.ends_with('}'))
            else {
                continue;
            };
            if !lines[i + open].ends_with('{') {
                continue;
            }
            let Some(len) = lines[i + open..].iter().position(|l| *l == close) else { continue };
            let name = line.trim().trim_end_matches('{').trim().to_owned();
            rooms.push(Room { name, line: i + 1, size: measure(&lines[i..=i + open + len]) });
        }
        rooms
    }
}

/// The lines, with those of each item that `#[cfg(test)]` stands before made empty.
fn without_tests(lines: &[String]) -> Vec<String> {
    let mut product = lines.to_vec();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at].trim_start();
        if !line.starts_with("#[cfg(test)]") && !line.starts_with("#[cfg(all(test,") {
            at += 1;
            continue;
        }
        let indent = " ".repeat(lines[at].len() - line.len());
        let head = |l: &String| l.ends_with(['{', ';', ',', '}']) && !l.trim_start().starts_with("#[");
        let first = lines[at..].iter().position(head).map_or(lines.len() - 1, |n| at + n);
        let last = if lines[first].ends_with('{') {
            let closes = |l: &String| l.strip_prefix(&indent).is_some_and(|l| l.starts_with(['}', ')']));
            lines[first + 1..].iter().position(closes).map_or(lines.len() - 1, |n| first + 1 + n)
        } else {
            first
        };
        product[at..=last].iter_mut().for_each(String::clear);
        at = last + 1;
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_product_goes_on_after_a_test_module_in_the_middle() {
        let text = "//! Caption.\n\nmod a;\n#[cfg(test)]\nmod tests;\n\npub fn f() {\n    g();\n}\n\n#[cfg(test)]\nmod more {\n    fn h() {}\n}\n\nfn i() {\n}\n";
        let source = Source::new("crates/x/src/y/mod.rs".to_owned(), text);
        let names: Vec<_> = source.functions().into_iter().map(|f| (f.name, f.line)).collect();
        assert_eq!(names, [("pub fn f()".to_owned(), 7), ("fn i()".to_owned(), 16)]);
        assert_eq!(source.test_modules(), ["crates/x/src/y/tests", "crates/x/src/y/more"]);
    }

    #[test]
    fn functions_are_found_whatever_stands_before_them() {
        let text =
            "pub(crate) async fn a() {\n}\npub(in crate::b) const fn b() {\n}\nunsafe extern \"C\" fn c() {\n}\n";
        let source = Source::new("crates/x/src/lib.rs".to_owned(), text);
        assert_eq!(source.functions().len(), 3);
    }
}
