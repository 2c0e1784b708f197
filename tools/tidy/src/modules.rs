//! Which file of a crate names items of which other file, by its paths and `use` lines.
//!
//! A re-export is looked through: who names `crate::http::Server` depends on the file that defines `Server`, and not on
//! `http/mod.rs`, which only passes the name on.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::Source;
use crate::items::{Keyword, is_word, item, words};

/// How many re-exports are followed for one name.
const MAX_HOPS: usize = 8;

/// A name that a `use` line brings into a file.
struct Import {
    alias: String,
    path: Vec<String>,
    is_reexport: bool,
}

/// One file as a module.
struct Module {
    path: Vec<String>,
    file: String,
    defined: BTreeSet<String>,
    imports: Vec<Import>,
    /// Code without its `use` lines.
    body: String,
}

/// The files of one crate, and how they name each other.
pub struct Modules {
    modules: Vec<Module>,
    by_path: HashMap<Vec<String>, usize>,
}

impl Modules {
    /// The product files of `krate`, but for the programs in `src/bin` and `main.rs`, which are crates of their own.
    pub fn of(krate: &str, sources: &[Source]) -> Self {
        let own = |s: &&Source| {
            let inner = s.path.split("/src/").nth(1).unwrap_or("");
            s.krate() == krate && !s.is_test() && !inner.is_empty() && inner != "main.rs" && !inner.starts_with("bin/")
        };
        let modules: Vec<Module> = sources.iter().filter(own).map(Module::read).collect();
        let by_path = modules.iter().enumerate().map(|(i, m)| (m.path.clone(), i)).collect();
        Self { modules, by_path }
    }

    /// For each file those whose items it names, but for `mod.rs` of the folders that hold it: a folder states the terms
    /// of its files, and may name them too.
    pub fn edges(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let edges = self.modules.iter().map(|module| {
            let mut to: BTreeSet<usize> =
                module.named_paths().iter().filter_map(|p| self.resolve(module, p, 0)).collect();
            let used = module.imports.iter().filter(|i| !i.is_reexport || words(&module.body).any(|w| w == i.alias));
            to.extend(
                used.filter(|i| !self.is_module(module, &i.path)).filter_map(|i| self.resolve(module, &i.path, 0)),
            );
            let others = to.into_iter().map(|i| &self.modules[i]).filter(|other| !module.path.starts_with(&other.path));
            (module.file.as_str(), others.map(|other| other.file.as_str()).collect())
        });
        edges.collect()
    }

    /// The path from the crate's root of what `path` begins with in `module`; none for what other crates define.
    fn absolute(&self, module: &Module, path: &[String]) -> Option<Vec<String>> {
        let mut base = module.path.clone();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => {
                base.clear();
                rest = &path[1..];
            }
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|s| s == "super") {
                    base.pop()?;
                    rest = &rest[1..];
                }
            }
            first => {
                base.push(first.to_owned());
                if !self.by_path.contains_key(&base) {
                    return None;
                }
                return Some([&base[..], &path[1..]].concat());
            }
        }
        base.extend_from_slice(rest);
        Some(base)
    }

    fn is_module(&self, module: &Module, path: &[String]) -> bool {
        self.absolute(module, path).is_some_and(|path| self.by_path.contains_key(&path))
    }

    /// The file that defines what `path` names in `module`.
    fn resolve(&self, module: &Module, path: &[String], hops: usize) -> Option<usize> {
        if hops > MAX_HOPS {
            return None;
        }
        let full = match self.absolute(module, path) {
            Some(full) => full,
            // The path may begin with a name that was imported.
            None => {
                let import = module.imports.iter().find(|i| i.alias == path[0] && i.path != path)?;
                return self.resolve(module, &[&import.path[..], &path[1..]].concat(), hops + 1);
            }
        };
        let depth = (0..=full.len()).rev().find(|&n| self.by_path.contains_key(&full[..n]))?;
        let at = self.by_path[&full[..depth]];
        let found = &self.modules[at];
        let Some(name) = full.get(depth) else { return Some(at) };
        if found.defined.contains(name) {
            return Some(at);
        }
        if let Some(import) = found.imports.iter().find(|i| i.alias == *name) {
            return self.resolve(found, &[&import.path[..], &full[depth + 1..]].concat(), hops + 1);
        }
        let globs = found.imports.iter().filter(|i| i.alias == "*");
        let through =
            globs.filter_map(|i| self.resolve(found, &[&i.path[..], &full[depth..]].concat(), hops + 1)).next();
        Some(through.unwrap_or(at))
    }
}

impl Module {
    fn read(source: &Source) -> Self {
        let inner = source.path.split("/src/").nth(1).unwrap_or("").trim_end_matches(".rs");
        let mut path: Vec<String> = inner.split('/').map(str::to_owned).collect();
        if matches!(path.last().map(String::as_str), Some("mod" | "lib")) {
            path.pop();
        }
        let mut module = Self {
            path,
            file: source.path.clone(),
            defined: BTreeSet::new(),
            imports: Vec::new(),
            body: String::new(),
        };
        let mut statement = String::new();
        for (_, line) in source.product_code() {
            if statement.is_empty() && !is_use(line) {
                if let Some(item) = item(line).filter(|i| i.keyword != Keyword::Mod && !line.starts_with(' ')) {
                    module.defined.insert(item.name.to_owned());
                }
                module.body.push_str(line);
                module.body.push('\n');
                continue;
            }
            statement.push_str(line.trim());
            statement.push(' ');
            if line.trim_end().ends_with(';') {
                module.imports.extend(imports(&std::mem::take(&mut statement)));
            }
        }
        module
    }

    /// Paths of two and more names in the code.
    fn named_paths(&self) -> BTreeSet<Vec<String>> {
        let mut found = BTreeSet::new();
        for chunk in self.body.split(|c: char| !is_word(c) && c != ':') {
            let path: Vec<String> = chunk
                .split("::")
                .take_while(|name| !name.is_empty() && name.chars().all(is_word))
                .map(str::to_owned)
                .collect();
            if path.len() > 1 {
                found.insert(path);
            }
        }
        found
    }
}

fn is_use(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("use ") || line.starts_with("pub use ") || line.starts_with("pub(") && line.contains(") use ")
}

/// The names that one `use` statement brings.
fn imports(statement: &str) -> Vec<Import> {
    let is_reexport = statement.starts_with("pub");
    let tree = statement.split_once("use ").map_or("", |(_, tree)| tree).trim().trim_end_matches(';');
    let mut found = Vec::new();
    expand(tree, &[], &mut |path: Vec<String>, alias| found.push(Import { alias, path, is_reexport }));
    found
}

/// Calls `each` with the path and the name of every leaf of a tree such as `a::{b, c as d}`.
fn expand(tree: &str, before: &[String], each: &mut impl FnMut(Vec<String>, String)) {
    let tree = tree.trim();
    if let Some((head, group)) = tree.split_once('{') {
        let head: Vec<String> = head.split("::").map(str::trim).filter(|s| !s.is_empty()).map(str::to_owned).collect();
        let path = [before, &head].concat();
        let inside = group.rsplit_once('}').map_or(group, |(inside, _)| inside);
        let (mut depth, mut from) = (0, 0);
        for (i, c) in inside.char_indices().chain([(inside.len(), ',')]) {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    expand(&inside[from..i], &path, each);
                    from = i + 1;
                }
                _ => {}
            }
        }
        return;
    }
    let (path, alias) = tree.split_once(" as ").map_or((tree, None), |(path, alias)| (path, Some(alias.trim())));
    let names = path.split("::").map(|s| s.trim().to_owned()).filter(|s| !s.is_empty());
    let mut path: Vec<String> = before.iter().cloned().chain(names).collect();
    if path.len() > 1 && path.last().is_some_and(|s| s == "self" || s == "*") {
        let is_glob = path.pop().is_some_and(|s| s == "*");
        let alias = if is_glob { "*" } else { alias.unwrap_or(path.last().map_or("", String::as_str)) }.to_owned();
        return each(path, alias);
    }
    let Some(last) = path.last().cloned() else { return };
    each(path, alias.map_or(last, str::to_owned));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(files: &[(&str, &str)]) -> Vec<(String, String)> {
        let sources: Vec<Source> =
            files.iter().map(|(path, text)| Source::new(format!("crates/x/src/{path}"), text)).collect();
        let modules = Modules::of("x", &sources);
        let short = |path: &str| path.trim_start_matches("crates/x/src/").to_owned();
        modules.edges().iter().flat_map(|(a, to)| to.iter().map(|b| (short(a), short(b))).collect::<Vec<_>>()).collect()
    }

    #[test]
    fn a_reexport_is_looked_through() {
        let found = edges(&[
            ("lib.rs", "mod a;\nmod b;\n"),
            ("a/mod.rs", "mod inner;\npub use inner::{Deep as Renamed, Other};\npub struct Own;\n"),
            ("a/inner.rs", "pub struct Deep;\npub struct Other;\n"),
            ("b.rs", "use crate::a::{self, Renamed};\nfn f(_: Renamed, _: a::Other) {}\n"),
        ]);
        assert_eq!(found, [("b.rs".to_owned(), "a/inner.rs".to_owned())]);
    }

    #[test]
    fn a_folder_and_its_file_are_no_circle() {
        let found = edges(&[
            ("lib.rs", "mod a;\nmod b;\n"),
            ("a/mod.rs", "mod child;\npub struct Own { c: child::Child }\n"),
            ("a/child.rs", "use super::Own;\nuse crate::b::Peer;\npub struct Child(Box<Own>, Peer);\n"),
            ("b.rs", "pub struct Peer(Option<crate::a::Own>);\n"),
        ]);
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(found, [pair("a/child.rs", "b.rs"), pair("a/mod.rs", "a/child.rs"), pair("b.rs", "a/mod.rs")]);
    }
}
