//! JSON as text: a cursor that knows the grammar and nothing of columns.
//!
//! `None` means "not sure", never "malformed": whatever is rare, or read in different ways by
//! different parsers, is left to the reference.

const DEEPEST: usize = 64;
const LONGEST_NUMBER: usize = 32;

pub struct Cursor<'a> {
    text: &'a [u8],
    place: usize,
}

/// A string as it stands between its quotes.
#[derive(Clone, Copy)]
pub struct Quoted<'a> {
    pub inside: &'a [u8],
    pub escaped: bool,
}

impl<'a> Cursor<'a> {
    pub fn new(text: &'a [u8]) -> Self {
        Self { text, place: 0 }
    }

    pub fn peek(&self) -> Option<u8> {
        self.text.get(self.place).copied()
    }

    pub fn blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.place += 1;
        }
    }

    /// The next byte, behind blanks.
    pub fn next(&mut self) -> Option<u8> {
        self.blanks();
        let byte = self.peek()?;
        self.place += 1;
        Some(byte)
    }

    pub fn expect(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then_some(())
    }

    pub fn end(&mut self) -> Option<()> {
        self.blanks();
        self.peek().is_none().then_some(())
    }

    pub fn word(&mut self, word: &[u8]) -> Option<()> {
        let found = self.text[self.place..].starts_with(word);
        self.place += word.len();
        found.then_some(())
    }

    /// A string, its first quote included.
    pub fn string(&mut self) -> Option<Quoted<'a>> {
        self.expect(b'"')?;
        let rest = &self.text[self.place..];
        let (mut at, mut escaped) = (0, false);
        loop {
            at += ordinary(rest.get(at..)?);
            match *rest.get(at)? {
                b'"' => break,
                b'\\' => {
                    escaped = true;
                    at += 2;
                }
                0..0x20 => return None,
                _ => at += 1,
            }
        }
        self.place += at + 1;
        Some(Quoted { inside: &rest[..at], escaped })
    }

    /// A number's text, and whether it is whole.
    pub fn number(&mut self) -> Option<(&'a str, bool)> {
        let start = self.place;
        let mut whole = true;
        if self.peek() == Some(b'-') {
            self.place += 1;
        }
        let (first, digits) = (self.peek()?, self.digits());
        if digits == 0 || (first == b'0' && digits > 1) {
            return None;
        }
        if self.peek() == Some(b'.') {
            (whole, self.place) = (false, self.place + 1);
            if self.digits() == 0 {
                return None;
            }
        }
        if let Some(b'e' | b'E') = self.peek() {
            (whole, self.place) = (false, self.place + 1);
            if let Some(b'+' | b'-') = self.peek() {
                self.place += 1;
            }
            if !(1..=2).contains(&self.digits()) {
                return None;
            }
        }
        let found = &self.text[start..self.place];
        (found.len() <= LONGEST_NUMBER).then(|| (unsafe { str::from_utf8_unchecked(found) }, whole))
    }

    /// Any value, only looked at for whether it is one.
    pub fn skip(&mut self) -> Option<()> {
        let mut open: [u8; DEEPEST] = [0; DEEPEST];
        let mut depth = 0;
        loop {
            self.blanks();
            match self.peek()? {
                b'{' if depth < DEEPEST => {
                    self.place += 1;
                    self.blanks();
                    if self.peek() == Some(b'}') {
                        self.place += 1;
                    } else {
                        (open[depth], depth) = (b'}', depth + 1);
                        self.name()?;
                        continue;
                    }
                }
                b'[' if depth < DEEPEST => {
                    self.place += 1;
                    self.blanks();
                    if self.peek() == Some(b']') {
                        self.place += 1;
                    } else {
                        (open[depth], depth) = (b']', depth + 1);
                        continue;
                    }
                }
                b'"' => self.string()?.sound()?,
                b't' => self.word(b"true")?,
                b'f' => self.word(b"false")?,
                b'n' => self.word(b"null")?,
                b'-' | b'0'..=b'9' => drop(self.number()?),
                _ => return None,
            }
            loop {
                if depth == 0 {
                    return Some(());
                }
                match self.next()? {
                    b',' => {
                        if open[depth - 1] == b'}' {
                            self.name()?;
                        }
                        break;
                    }
                    close if close == open[depth - 1] => depth -= 1,
                    _ => return None,
                }
            }
        }
    }

    fn name(&mut self) -> Option<()> {
        self.blanks();
        self.string()?.sound()?;
        self.expect(b':')
    }

    fn digits(&mut self) -> usize {
        let start = self.place;
        while let Some(b'0'..=b'9') = self.peek() {
            self.place += 1;
        }
        self.place - start
    }
}

/// How many bytes in front are neither quotes, backslashes nor control characters, looked at by
/// eight: the last few may be as well.
fn ordinary(text: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let below = |word: u64, least: u64| word.wrapping_sub(ONES * least) & !word & (ONES << 7);
    let mut found = 0;
    for eight in text.chunks_exact(8) {
        let word = u64::from_le_bytes(eight.try_into().unwrap());
        let same_as = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
        let special = same_as(b'"') | same_as(b'\\') | below(word, 0x20);
        if special != 0 {
            return found + special.trailing_zeros() as usize / 8; // the first one is always right
        }
        found += 8;
    }
    found
}

impl<'a> Quoted<'a> {
    /// The text where it stands there as it is.
    pub fn plain(&self) -> Option<&'a str> {
        if self.escaped { None } else { str::from_utf8(self.inside).ok() }
    }

    /// Adds the text that is meant to `out`.
    pub fn unescape(&self, out: &mut String) -> Option<()> {
        let mut rest = str::from_utf8(self.inside).ok()?;
        while let Some(at) = rest.find('\\') {
            out.push_str(&rest[..at]);
            let (meant, length) = escape(&rest.as_bytes()[at..])?;
            out.push(meant);
            rest = &rest[at + length..];
        }
        out.push_str(rest);
        Some(())
    }

    fn sound(&self) -> Option<()> {
        match self.escaped {
            false => self.plain().map(drop),
            true => self.unescape(&mut String::new()),
        }
    }
}

/// The character that an escape means, and the length of the escape. Half a pair, zero: not sure.
fn escape(text: &[u8]) -> Option<(char, usize)> {
    let simple = match *text.get(1)? {
        b'u' => {
            let first = unit(text)?;
            if !(0xd800..0xdc00).contains(&first) {
                return Some((char::from_u32(first).filter(|&meant| meant != '\0')?, 6));
            }
            let second = unit(text.get(6..)?).filter(|unit| (0xdc00..0xe000).contains(unit))?;
            let meant = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            return Some((char::from_u32(meant)?, 12));
        }
        same @ (b'"' | b'\\' | b'/') => same as char,
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        _ => return None,
    };
    Some((simple, 2))
}

/// The number in `\uXXXX`.
fn unit(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u32::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}
