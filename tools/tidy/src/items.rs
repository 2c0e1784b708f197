//! Items, as the line that opens them tells: their keyword, name and visibility.

/// What kind of item a line opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keyword {
    /// A function or method.
    Fn,
    /// A struct or union.
    Struct,
    /// An enum.
    Enum,
    /// A trait.
    Trait,
    /// A type alias, or a type of a trait.
    Type,
    /// A constant.
    Const,
    /// A static.
    Static,
    /// A module.
    Mod,
    /// A macro by example.
    Macro,
}

/// Who may name an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// Everybody: `pub` alone.
    Public,
    /// Some modules of the crate, or the item's own alone.
    Crate,
}

/// An item that a line opens.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    /// Its kind.
    pub keyword: Keyword,
    /// Its name.
    pub name: &'a str,
    /// Who may name it.
    pub visibility: Visibility,
}

/// The item that `line` opens, if it opens one.
pub fn item(line: &str) -> Option<Item<'_>> {
    let mut rest = line.trim_start();
    let mut visibility = Visibility::Crate;
    if let Some(after) = rest.strip_prefix("pub ") {
        (rest, visibility) = (after, Visibility::Public);
    } else if rest.starts_with("pub(") {
        rest = rest.split_once(')')?.1.trim_start();
    }
    let mut is_constant = false;
    loop {
        let (word, after) = rest.split_once(' ')?;
        let keyword = match word {
            "async" | "unsafe" | "extern" | "\"C\"" => None,
            "const" => {
                is_constant = true;
                None
            }
            "fn" => Some(Keyword::Fn),
            "struct" | "union" => Some(Keyword::Struct),
            "enum" => Some(Keyword::Enum),
            "trait" => Some(Keyword::Trait),
            "type" => Some(Keyword::Type),
            "static" => Some(Keyword::Static),
            "mod" => Some(Keyword::Mod),
            "macro_rules!" => Some(Keyword::Macro),
            _ if is_constant => {
                return Some(Item { keyword: Keyword::Const, name: first_word(rest), visibility });
            }
            _ => return None,
        };
        if let Some(keyword) = keyword {
            let name = first_word(after.trim_start_matches("mut "));
            return (!name.is_empty()).then_some(Item { keyword, name, visibility });
        }
        rest = after.trim_start();
    }
}

/// The identifier that `text` begins with.
pub fn first_word(text: &str) -> &str {
    &text[..text.find(|c: char| !is_word(c)).unwrap_or(text.len())]
}

/// True for characters of identifiers.
pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// All identifiers and numbers of a line of code.
pub fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !is_word(c)).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_told_by_their_first_line() {
        let of = |line| item(line).map(|i| (i.keyword, i.name, i.visibility));
        assert_eq!(of("    pub const fn a(&self) {"), Some((Keyword::Fn, "a", Visibility::Public)));
        assert_eq!(of("pub(in crate::x) async fn b<T>("), Some((Keyword::Fn, "b", Visibility::Crate)));
        assert_eq!(of("pub const C: usize = 1;"), Some((Keyword::Const, "C", Visibility::Public)));
        assert_eq!(of("pub struct D<'a> {"), Some((Keyword::Struct, "D", Visibility::Public)));
        assert_eq!(of("pub mod e;"), Some((Keyword::Mod, "e", Visibility::Public)));
        assert_eq!(of("macro_rules! f {"), Some((Keyword::Macro, "f", Visibility::Crate)));
        assert_eq!(of("    pub field: usize,"), None);
        assert_eq!(of("// fn in a comment"), None);
        assert_eq!(of("let x = 1;"), None);
    }
}
