//! What tests of the command read of its output.

use std::process::Output;

use serde_json::Value;

/// Standard error as text.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Every field of a summary stands on the page for those who read it.
pub(crate) fn assert_described(summary: &Value) {
    let page = include_str!("../../../../../docs/json.md");
    if let Value::Object(fields) = summary {
        for (name, value) in fields {
            assert!(page.contains(&format!("`{name}`")), "docs/json.md does not describe {name}");
            assert_described(value);
        }
    }
    summary.as_array().into_iter().flatten().for_each(assert_described);
}

/// The last line of standard output as JSON.
pub(crate) fn summary(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().unwrap_or_else(|| panic!("nothing printed; {}", stderr(output)));
    serde_json::from_str(last).expect("the last line is JSON")
}
