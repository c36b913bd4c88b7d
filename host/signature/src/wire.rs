//! OpenSSH's binary form: fields with their length before them.

use super::{Fault, split};

/// Fields, read one after the other. A field that is not there is damage.
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (value, rest) = split::<N>(self.0).ok_or_else(cut)?;
        self.0 = rest;
        Ok(value)
    }

    pub(crate) fn number(&mut self) -> Result<u32, Fault> {
        self.fixed().map(u32::from_be_bytes)
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Fault> {
        let length = usize::try_from(self.number()?).map_err(|_| cut())?;
        let (field, rest) = self.0.split_at_checked(length).ok_or_else(cut)?;
        self.0 = rest;
        Ok(field)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, Fault> {
        std::str::from_utf8(self.bytes()?)
            .map_err(|_| Fault::Damaged("a name in it is no text".into()))
    }

    /// A whole number above zero, in its one spelling: no needless zero before it.
    pub(crate) fn natural(&mut self) -> Result<&'a [u8], Fault> {
        let bytes = self.bytes()?;
        let odd = || Fault::Damaged("a number in it has another spelling".into());
        match bytes {
            [0, next, ..] if next & 0x80 != 0 => Ok(&bytes[1..]),
            [first, ..] if *first != 0 && first & 0x80 == 0 => Ok(bytes),
            _ => Err(odd()),
        }
    }

    /// Nothing may be left.
    pub(crate) fn end(self) -> Result<(), Fault> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Fault::Damaged("something is behind its last field".into()))
        }
    }
}

fn cut() -> Fault {
    Fault::Damaged("it is cut off".into())
}

/// Fields, as they are written.
pub(crate) fn fields(parts: &[&[u8]]) -> Vec<u8> {
    let mut all = Vec::new();
    for part in parts {
        all.extend_from_slice(&u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes());
        all.extend_from_slice(part);
    }
    all
}
