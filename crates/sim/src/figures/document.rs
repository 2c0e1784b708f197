//! Figures inside a Markdown document: blocks between marks, which are made again in place.

use super::claim::{Claim, sources};
use super::{FigureFiles, cell};

/// A block of a document that a figure fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    /// Claims, tables, notes and the command.
    Figure,
    /// The first table alone.
    Table,
}

const BLOCKS: [(Block, &str); 2] = [(Block::Figure, "figure"), (Block::Table, "table")];

/// Marks around a block: its content stands on the lines between them.
fn marks(word: &str, name: &str) -> [String; 2] {
    [format!("<!-- {word} {name} -->\n"), format!("<!-- end {name} -->")]
}

/// Names of the figures that a document has blocks for.
pub fn wanted_by(document: &str) -> impl Iterator<Item = &str> {
    let name = |line: &'_ str| -> Option<usize> {
        let (word, _) = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?.split_once(' ')?;
        BLOCKS.iter().any(|(_, known)| *known == word).then_some(word.len())
    };
    let words = document.lines().filter_map(move |line| Some((line, name(line)?)));
    words.map(|(line, word)| &line["<!-- ".len() + word + 1..line.len() - " -->".len()])
}

/// The document with each of the figure's blocks made again; `command` is what makes the figure.
///
/// # Errors
/// What is wrong with a block: a mark without its end.
pub fn fill(document: &str, made: &FigureFiles, command: &str) -> Result<String, String> {
    let mut text = document.to_owned();
    for (block, word) in BLOCKS {
        let [begin, end] = marks(word, made.name);
        let Some((before, rest)) = text.split_once(&begin) else { continue };
        let Some((_, after)) = rest.split_once(&end) else {
            return Err(format!("`{}` has no `{end}`", begin.trim_end()));
        };
        text = format!("{before}{begin}{}{end}{after}", made.block(block, command));
    }
    Ok(text)
}

impl FigureFiles {
    fn block(&self, block: Block, command: &str) -> String {
        let mut tables = self.figure.tables.iter().map(|table| format!("\n{}", table.markdown()));
        if block == Block::Table {
            return tables.next().unwrap_or_default() + "\n";
        }
        let mut text = format!("\n`{command}`\n");
        let said = sources(&self.figure.claims);
        self.settings.iter().for_each(|settings| text.push_str(&format!("\nRan with {settings}.\n")));
        if !self.figure.claims.is_empty() {
            let names: String = said.iter().map(|source| format!("{} | ", source.name())).collect();
            text.push_str(&format!("\n| | {names}here |\n|---|{}---|\n", "---|".repeat(said.len())));
        }
        for Claim { what, reference, ours } in &self.figure.claims {
            let said: String = said.iter().map(|source| format!("{} | ", cell(source.of(reference)))).collect();
            text.push_str(&format!("| {} | {said}{} |\n", cell(what), cell(ours)));
        }
        text.extend(tables);
        if !self.figure.notes.is_empty() {
            text.push('\n');
        }
        self.figure.notes.iter().for_each(|note| text.push_str(&format!("- {note}\n")));
        text.push('\n');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::claim::Reference;
    use super::super::{Figure, Table};
    use super::*;

    fn made() -> FigureFiles {
        let mut figure = Figure::default();
        figure.claim("time | of two", Reference::published("1.2 s"), "1.1 s");
        figure.tables.push(Table { head: vec!["a".into(), "b".into()], rows: vec![vec!["1".into(), "2".into()]] });
        figure.notes.push("one seed".into());
        FigureFiles { name: "ns3-fig9", title: "A title", settings: Some("cubic".into()), figure, files: Vec::new() }
    }

    #[test]
    fn blocks_are_made_again_in_place() {
        let document = "# Title\n<!-- figure ns3-fig9 -->\nold\n<!-- end ns3-fig9 -->\nbetween\n\
                        <!-- figure ns3-fig10 -->\nkept\n<!-- end ns3-fig10 -->\n\
                        <!-- table ns3-fig9 -->\n<!-- end ns3-fig9 -->\nafter\n";
        assert_eq!(wanted_by(document).collect::<Vec<_>>(), ["ns3-fig9", "ns3-fig10", "ns3-fig9"]);
        let once = fill(document, &made(), "plait sim figure ns3-fig9").unwrap();
        let figure = "<!-- figure ns3-fig9 -->\n\n`plait sim figure ns3-fig9`\n\nRan with cubic.\n\n| | published | here |\n\
                      |---|---|---|\n| time \\| of two | 1.2 s | 1.1 s |\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n\
                      - one seed\n\n<!-- end ns3-fig9 -->";
        let table = "<!-- table ns3-fig9 -->\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n<!-- end ns3-fig9 -->";
        assert!(once.contains(figure) && once.contains(table) && once.contains("kept"), "{once}");
        assert!(once.starts_with("# Title\n") && once.ends_with("-->\nafter\n") && !once.contains("old"), "{once}");
        assert_eq!(fill(&once, &made(), "plait sim figure ns3-fig9").unwrap(), once, "a second time changes nothing");
        assert_eq!(fill("no marks\n", &made(), "").unwrap(), "no marks\n");
        let problem = fill("<!-- figure ns3-fig9 -->\nrest\n", &made(), "").unwrap_err();
        assert!(problem.contains("no `<!-- end ns3-fig9 -->`"), "{problem}");
    }
}
