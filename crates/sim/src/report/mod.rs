//! Reports: one HTML file with its plots inside, nothing fetched from anywhere.

mod campaign;
mod run;

pub use campaign::{campaign_report, groups, table_of_groups};
pub use run::{run_report, series_csv};

use crate::plot::{Plot, STYLE, escape};

/// A page in the making.
#[derive(Debug, Default)]
pub struct Page {
    body: String,
}

impl Page {
    /// An empty page.
    pub fn new() -> Self {
        Self::default()
    }

    /// A heading.
    pub fn heading(&mut self, text: &str) -> &mut Self {
        self.body.push_str(&format!("<h2>{}</h2>\n", escape(text)));
        self
    }

    /// A paragraph.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.body.push_str(&format!("<p>{}</p>\n", escape(text)));
        self
    }

    /// A table; the first cell of each row is its name.
    pub fn table(&mut self, header: &[&str], rows: &[Vec<String>]) -> &mut Self {
        self.body.push_str("<div class=\"w\"><table><thead><tr>");
        header.iter().for_each(|name| self.body.push_str(&format!("<th>{}</th>", escape(name))));
        self.body.push_str("</tr></thead><tbody>");
        for row in rows {
            self.body.push_str("<tr>");
            row.iter().for_each(|cell| self.body.push_str(&format!("<td>{}</td>", escape(cell))));
            self.body.push_str("</tr>");
        }
        self.body.push_str("</tbody></table></div>\n");
        self
    }

    /// Plots side by side where there is room.
    pub fn plots(&mut self, plots: &[Plot]) -> &mut Self {
        self.body.push_str("<div class=\"p\">");
        plots.iter().for_each(|plot| self.body.push_str(&format!("<figure>{}</figure>", plot.svg())));
        self.body.push_str("</div>\n");
        self
    }

    /// The whole file.
    pub fn html(&self, title: &str) -> String {
        format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title>\
             <link rel=\"icon\" href=\"data:,\">\
             <meta name=\"viewport\" content=\"width=device-width\"><style>\
             :root{{color-scheme:light dark}}body{{font:15px/1.5 system-ui,sans-serif;max-width:84rem;margin:2rem auto;\
             padding:0 1rem}}.p{{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(34rem,100%),1fr));gap:1rem}}\
             figure{{margin:0}}.w{{overflow-x:auto}}table{{border-collapse:collapse;font-variant-numeric:tabular-nums}}\
             td,th{{padding:.2rem .7rem;text-align:right;border-bottom:1px solid #8884}}\
             td:first-child,th:first-child{{text-align:left}}{STYLE}</style></head>\n\
             <body><h1>{0}</h1>\n{1}</body></html>\n",
            escape(title),
            self.body
        )
    }
}
