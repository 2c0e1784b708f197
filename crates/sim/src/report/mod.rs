//! Reports: one HTML file with its plots inside, nothing fetched from anywhere; the plots as pictures beside it.

mod campaign;
mod data;
mod groups;
mod run;

use std::fmt::Write;

pub use campaign::{campaign_page, table_of_groups};
pub use data::{decisions_csv, series_csv};
pub use groups::{Group, equals, groups};
pub use run::run_page;

use crate::plot::{Plot, escape};

/// A page in the making.
///
/// ```
/// use plait_sim::plot::{Plot, Style};
/// use plait_sim::report::Page;
///
/// let mut plot = Plot::new("Window of a path", "time, s", "bytes");
/// plot.curve("path 0", vec![(0.0, 12_000.0), (0.1, 24_000.0)], Style::Step);
/// let html = Page::new("My run").text("Two paths.").plots(&[plot]).html();
/// assert!(html.contains("<svg") && html.contains("Window of a path"));
/// ```
#[derive(Debug)]
pub struct Page {
    title: String,
    body: String,
    plots: Vec<(String, String)>,
}

impl Page {
    /// An empty page.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), body: String::new(), plots: Vec::new() }
    }

    /// Adds a heading.
    pub fn heading(&mut self, text: &str) -> &mut Self {
        let _ = writeln!(self.body, "<h2>{}</h2>", escape(text));
        self
    }

    /// Adds a paragraph of text.
    pub fn text(&mut self, text: &str) -> &mut Self {
        let _ = writeln!(self.body, "<p>{}</p>", escape(text));
        self
    }

    /// A list of remarks.
    pub fn notes(&mut self, notes: &[String]) -> &mut Self {
        if notes.is_empty() {
            return self;
        }
        let items = notes.iter().map(|note| format!("<li>{}</li>", escape(note)));
        let _ = writeln!(self.body, "<ul>{}</ul>", items.collect::<String>());
        self
    }

    /// Figures that matter most, large: what it is, and its value with unit.
    pub fn tiles(&mut self, tiles: &[(&str, String)]) -> &mut Self {
        let tile = |(name, value): &(&str, String)| {
            format!("<div><b>{}</b><span>{}</span></div>", escape(value), escape(name))
        };
        let _ = writeln!(self.body, "<div class=\"k\">{}</div>", tiles.iter().map(tile).collect::<String>());
        self
    }

    /// A table; the first cell of each row is its name.
    pub fn table(&mut self, header: &[&str], rows: &[Vec<String>]) -> &mut Self {
        let _ = write!(self.body, "<div class=\"w\"><table><thead><tr>");
        // Words stand left, numbers right.
        let is_words = |cell: &String| cell.len() > 24 && cell.chars().any(char::is_alphabetic);
        let class = |column: usize| match rows.iter().filter_map(|row| row.get(column)).any(is_words) {
            true => " class=\"l\"",
            false => "",
        };
        for (column, name) in header.iter().enumerate() {
            let _ = write!(self.body, "<th{}>{}</th>", class(column), escape(name));
        }
        self.body.push_str("</tr></thead><tbody>");
        for row in rows {
            let cells = row.iter().enumerate();
            let cells = cells.map(|(column, cell)| format!("<td{}>{}</td>", class(column), escape(cell)));
            let _ = write!(self.body, "<tr>{}</tr>", cells.collect::<String>());
        }
        self.body.push_str("</tbody></table></div>\n");
        self
    }

    /// A table that opens when it is asked for.
    pub fn folded_table(&mut self, summary: &str, header: &[&str], rows: &[Vec<String>]) -> &mut Self {
        let _ = write!(self.body, "<details><summary>{}</summary>", escape(summary));
        self.table(header, rows);
        self.body.push_str("</details>\n");
        self
    }

    /// Plots side by side where there is room.
    pub fn plots(&mut self, plots: &[Plot]) -> &mut Self {
        self.body.push_str("<div class=\"p\">");
        for plot in plots {
            let svg = plot.svg();
            let _ = write!(self.body, "<figure>{svg}</figure>");
            self.plots.push((format!("{:02}-{}", self.plots.len() + 1, slug(plot.title())), svg));
        }
        self.body.push_str("</div>\n");
        self
    }

    /// Every plot: a name for its file, and the SVG.
    pub fn pictures(&self) -> &[(String, String)] {
        &self.plots
    }

    /// The whole file.
    pub fn html(&self) -> String {
        format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title>\
             <link rel=\"icon\" href=\"data:,\"><meta name=\"viewport\" content=\"width=device-width\">\
             <style>{STYLE}</style></head>\n<body><h1>{0}</h1>\n{1}</body></html>\n",
            escape(&self.title),
            self.body
        )
    }
}

/// A title as the name of a file.
fn slug(title: &str) -> String {
    let letters = title.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { ' ' });
    letters.collect::<String>().split_whitespace().take(8).collect::<Vec<_>>().join("-")
}

const STYLE: &str = ":root{color-scheme:light}body{font:15px/1.5 system-ui,'DejaVu Sans',sans-serif;color:#222;\
background:#fff;max-width:84rem;margin:2rem auto;padding:0 1rem}h1{font-size:1.6rem;margin:0 0 .4rem}\
h2{font-size:1.15rem;margin:2rem 0 .6rem;border-bottom:1px solid #ddd;padding-bottom:.2rem}p{max-width:70rem}\
.k{display:flex;flex-wrap:wrap;gap:.6rem;margin:1rem 0}.k div{background:#f3f5f8;border-radius:6px;padding:.5rem .9rem;\
min-width:7rem}.k b{display:block;font-size:1.25rem}.k span{color:#555;font-size:.85rem}\
.p{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(34rem,100%),1fr));gap:1rem}\
figure{margin:0;border:1px solid #e4e4e4;border-radius:6px;padding:.3rem}figure svg{display:block;width:100%;height:auto}\
.w{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9rem}\
td,th{padding:.25rem .7rem;text-align:right;border-bottom:1px solid #e4e4e4;vertical-align:top}th{color:#555;\
font-weight:600}td:first-child,th:first-child,td.l,th.l{text-align:left}tbody tr:hover{background:#f6f8fa}\
summary{cursor:pointer;color:#0b5cad;margin:.4rem 0}ul{max-width:70rem;padding-left:1.2rem}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_needs_nothing_from_outside() {
        let mut page = Page::new("a <b>");
        let mut plot = Plot::new("Rate, path 0", "time, s", "Mbit/s");
        plot.bar("x", 1.0);
        page.tiles(&[("time", "3 s".into())]).plots(&[plot]).table(&["", "n"], &[vec!["x & y".into(), "1".into()]]);
        let html = page.html();
        assert!(html.contains("<h1>a &lt;b&gt;</h1>") && html.contains("x &amp; y"));
        let outside = html.replace("http://www.w3.org/2000/svg", "");
        for word in ["http:", "https:", "src=", "<script", "@import", "url("] {
            assert!(!outside.contains(word), "{word}");
        }
        assert_eq!(page.pictures()[0].0, "01-rate-path-0");
    }
}
