//! Choices and lines out of an input: so that an input is a text that a person can write as a seed.

/// What is left of an input.
pub(crate) struct Draw<'a>(&'a [u8]);

impl<'a> Draw<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Self {
        Self(data)
    }

    /// The next byte; 0 at the end.
    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// One of these.
    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::from(self.byte()) % of.len()]
    }

    /// Those of these whose bit is set in the next two bytes.
    pub(crate) fn some<T: Copy>(&mut self, of: &[T]) -> Vec<T> {
        let bits = u16::from_be_bytes([self.byte(), self.byte()]);
        let set = |(index, _): &(usize, &T)| bits >> (index % 16) & 1 == 1;
        of.iter().enumerate().filter(set).map(|(_, one)| *one).collect()
    }

    /// The bytes up to the end of the line; `None` at the end of the input.
    pub(crate) fn line(&mut self) -> Option<&'a [u8]> {
        if self.0.is_empty() {
            return None;
        }
        let end = self.0.iter().position(|byte| *byte == b'\n');
        let (line, rest) = match end {
            Some(end) => (&self.0[..end], &self.0[end + 1..]),
            None => (self.0, &[][..]),
        };
        self.0 = rest;
        Some(line)
    }

    /// The line as text; empty at the end of the input.
    pub(crate) fn text(&mut self) -> String {
        String::from_utf8_lossy(self.line().unwrap_or_default()).into_owned()
    }

    /// Everything that is left.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.0
    }
}
