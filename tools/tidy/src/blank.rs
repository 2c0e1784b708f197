//! Source text without its comments and without what stands inside literals.

/// Where the reader is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Code,
    LineComment,
    /// Block comments nest.
    BlockComment(usize),
    Text,
    /// A raw string that ends with so many `#`.
    RawText(usize),
}

/// The same text with blanks for comments and for the insides of strings and characters. Lines keep their numbers.
pub fn blank(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut state = State::Code;
    let mut at = 0;
    while at < chars.len() {
        let (next, len) = step(&chars, at, state);
        let is_character = chars[at] == '\'' && len > 1;
        for &c in &chars[at..(at + len).min(chars.len())] {
            let seen = state == State::Code && next == State::Code && !is_character || c == '\n';
            out.push(if seen { c } else { ' ' });
        }
        state = next;
        at += len;
    }
    out
}

/// The state after the next few characters, and how many those are.
fn step(chars: &[char], at: usize, state: State) -> (State, usize) {
    let c = chars[at];
    let next = chars.get(at + 1).copied().unwrap_or(' ');
    match state {
        State::Code => in_code(chars, at),
        State::LineComment if c == '\n' => (State::Code, 1),
        State::LineComment => (state, 1),
        State::BlockComment(depth) => match (c, next) {
            ('/', '*') => (State::BlockComment(depth + 1), 2),
            ('*', '/') if depth == 1 => (State::Code, 2),
            ('*', '/') => (State::BlockComment(depth - 1), 2),
            _ => (state, 1),
        },
        State::Text => match c {
            '\\' => (state, 2),
            '"' => (State::Code, 1),
            _ => (state, 1),
        },
        State::RawText(hashes) => {
            let ends = c == '"' && chars[at + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes;
            if ends { (State::Code, 1 + hashes) } else { (state, 1) }
        }
    }
}

fn in_code(chars: &[char], at: usize) -> (State, usize) {
    let c = chars[at];
    let next = chars.get(at + 1).copied().unwrap_or(' ');
    let follows_word = at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_');
    match (c, next) {
        ('/', '/') => (State::LineComment, 2),
        ('/', '*') => (State::BlockComment(1), 2),
        ('"', _) => (State::Text, 1),
        ('r', '"' | '#') if !follows_word || chars[at - 1] == 'b' => {
            let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
            // `r#match` is a name.
            let is_text = chars.get(at + 1 + hashes) == Some(&'"');
            if is_text { (State::RawText(hashes), 2 + hashes) } else { (State::Code, 1) }
        }
        // A character, as against a lifetime: it ends after one character or an escape.
        ('\'', '\\') => {
            let len = chars[at + 3..].iter().position(|c| *c == '\'').map_or(1, |n| n + 4);
            (State::Code, len)
        }
        ('\'', _) if chars.get(at + 2) == Some(&'\'') => (State::Code, 3),
        _ => (State::Code, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::blank;

    #[test]
    fn comments_and_literals_are_blank() {
        let text =
            "let a = \"x // y\"; // z\nlet c = ['\\'', '\"', 'q']; /* j /* c */ d */ f::<'a>(r#\"g\"h\"#, br\"i\");\n";
        let out = blank(text);
        assert_eq!(out.lines().count(), 2);
        assert!(!out.contains(['x', 'y', 'z', 'q', 'j', 'd', 'g', 'h', 'i']), "{out}");
        assert!(out.contains("f::<'a>("), "{out}");
    }
}
