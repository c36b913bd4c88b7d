//! The `allowed_signers` form (ssh-keygen(1)): on each line who, under which conditions, which key.

use super::PublicKey;
use super::key::NAMES;
use crate::{Fault, decode, pattern, printable};

/// Keys that may sign, each with its conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedSigners {
    lines: Vec<Line>,
    skipped: Vec<String>,
}

/// Why a line has no key that counts.
enum Unread {
    /// Nothing is wrong with it, and nothing here checks such signatures.
    OfNoUse(String),
    /// It is a slip.
    Wrong(String),
}

impl Unread {
    fn words(self) -> String {
        let (Self::OfNoUse(why) | Self::Wrong(why)) = self;
        why
    }
}

impl From<String> for Unread {
    fn from(why: String) -> Self {
        Self::Wrong(why)
    }
}

const NO_CERTIFICATES: &str = "cert-authority is not supported, since nothing here would know of a certificate that was revoked: list the keys themselves";

/// One key of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Patterns of who the key's owner is, as they stand there.
    pub principals: String,
    /// The key.
    pub key: PublicKey,
    /// Patterns of what it may sign for; `None`: for anything.
    pub namespaces: Option<String>,
    /// First second since 1970 at which it counts.
    pub valid_after: Option<u64>,
    /// First second since 1970 at which it counts no more.
    pub valid_before: Option<u64>,
}

impl AllowedSigners {
    /// Reads the file's text. A line whose key is of a kind that is not checked here, or vouches for
    /// certificates, lets nobody sign and takes nothing from the others: it is [skipped](Self::skipped).
    ///
    /// # Errors
    /// Every other line that cannot be read, as `LINE: what is wrong`. One spoils the whole.
    pub fn parse(text: &str) -> Result<Self, Vec<String>> {
        let mut all = Self::default();
        let mut problems = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match Line::read(line) {
                Ok(line) => all.lines.push(line),
                Err(Unread::OfNoUse(why)) => all.skipped.push(format!("{}: {why}", index + 1)),
                Err(Unread::Wrong(problem)) => problems.push(format!("{}: {problem}", index + 1)),
            }
        }
        if problems.is_empty() { Ok(all) } else { Err(problems) }
    }

    /// Its lines.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Lines that count for nothing, as `LINE: why`.
    pub fn skipped(&self) -> &[String] {
        &self.skipped
    }

    /// Which line lets this key sign for this purpose at each of these times (seconds since 1970).
    ///
    /// # Errors
    /// [`Fault::UnknownKey`], or why no line of this key holds.
    pub fn find(&self, key: &PublicKey, namespace: &str, times: &[u64]) -> Result<&Line, Fault> {
        let mut why = Fault::UnknownKey { key: key.named() };
        for line in self.lines.iter().filter(|line| line.key == *key) {
            match line.holds(namespace, times) {
                Ok(()) => return Ok(line),
                Err(fault) => why = fault,
            }
        }
        Err(why)
    }
}

impl Line {
    /// Reads one line: `PRINCIPALS [OPTIONS] KIND KEY [COMMENT]`.
    ///
    /// # Errors
    /// A sentence.
    pub fn parse(line: &str) -> Result<Self, String> {
        Self::read(line).map_err(Unread::words)
    }

    fn read(line: &str) -> Result<Self, Unread> {
        let (principals, rest) = word(line)?;
        let (next, after) = word(rest)?;
        let (options, (kind, rest)) =
            if is_kind(&next) { (String::new(), (next, after)) } else { (next, word(after)?) };
        if !is_kind(&kind) {
            return Err(format!(
                "{:?} is no kind of key: a line is PRINCIPALS [OPTIONS] KIND KEY",
                printable(&kind)
            )
            .into());
        }
        let is_authority = |option: &str| option.to_ascii_lowercase().starts_with("cert-authority");
        if split_options(&options).any(is_authority) {
            return Err(Unread::OfNoUse(NO_CERTIFICATES.into()));
        }
        let (key, _comment) = key_of(&kind, rest)?;
        let mut line = Line {
            principals: unquoted(&principals).to_owned(),
            key,
            namespaces: None,
            valid_after: None,
            valid_before: None,
        };
        if line.principals.split(',').all(|one| one.is_empty() || one.starts_with('!')) {
            return Err(Unread::Wrong("it names nobody before the key".into()));
        }
        for option in split_options(&options) {
            line.option(option)?;
        }
        Ok(line)
    }

    /// A condition that we would not keep would be a promise that nobody keeps: refused.
    fn option(&mut self, option: &str) -> Result<(), String> {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let value = unquoted(value);
        let twice = |is: bool| if is { Err(format!("{name} is stated twice")) } else { Ok(()) };
        match name.to_ascii_lowercase().as_str() {
            "namespaces" if !value.is_empty() => {
                twice(self.namespaces.is_some())?;
                self.namespaces = Some(value.to_owned());
            }
            "valid-after" => {
                twice(self.valid_after.is_some())?;
                self.valid_after = Some(moment(value)?);
            }
            "valid-before" => {
                twice(self.valid_before.is_some())?;
                self.valid_before = Some(moment(value)?);
            }
            _ => {
                return Err(format!(
                    "the option {:?} is not known: namespaces, valid-after and valid-before are",
                    printable(option)
                ));
            }
        }
        if let (Some(after), Some(before)) = (self.valid_after, self.valid_before)
            && after >= before
        {
            return Err("valid-before is not after valid-after".into());
        }
        Ok(())
    }

    /// Whether the patterns of this line name this principal.
    pub fn names(&self, principal: &str) -> bool {
        pattern::list_matches(&self.principals, principal)
            || self.principals.split(',').any(|one| one == principal)
    }

    /// Whether it may sign for this purpose at all these times.
    ///
    /// # Errors
    /// Which condition does not hold.
    pub fn holds(&self, namespace: &str, times: &[u64]) -> Result<(), Fault> {
        let key = self.key.named();
        if let Some(list) = &self.namespaces
            && !pattern::list_matches(list, namespace)
        {
            let why = format!("the allowed signers list it for {list:?}");
            return Err(Fault::NotForSigning { key, why });
        }
        if let Some(from) = self.valid_after
            && times.iter().any(|time| *time < from)
        {
            return Err(Fault::KeyNotYetValid { key, from });
        }
        match self.valid_before {
            Some(at) if times.iter().any(|time| *time >= at) => Err(Fault::KeyExpired { key, at }),
            _ => Ok(()),
        }
    }
}

impl PublicKey {
    /// Reads a line of a public key's file, `KIND KEY [COMMENT]`: the key and its comment. `None`:
    /// the line begins with something else than a kind.
    ///
    /// # Errors
    /// A sentence: the key is damaged, or of a kind that is not read.
    pub fn from_line(line: &str) -> Result<Option<(Self, &str)>, String> {
        let (kind, rest) = word(line)?;
        if !is_kind(&kind) {
            return Ok(None);
        }
        key_of(&kind, rest).map(Some).map_err(Unread::words)
    }
}

fn is_kind(word: &str) -> bool {
    let base = word.strip_prefix("sk-").unwrap_or(word);
    NAMES.contains(&word)
        || ["ssh-", "ecdsa-sha2-"].iter().any(|begin| base.starts_with(begin))
            && !word.contains(['=', ',', '*'])
            && (!word.contains('@') || word.ends_with("@openssh.com"))
}

/// The key that follows its kind, and its comment.
fn key_of<'l>(kind: &str, rest: &'l str) -> Result<(PublicKey, &'l str), Unread> {
    let (blob, comment) = word(rest)?;
    let key =
        decode(&blob).and_then(|blob| PublicKey::parse(&blob)).map_err(|fault| match fault {
            Fault::Unsupported(what) => {
                Unread::OfNoUse(format!("the key cannot be used: it signs {what}"))
            }
            Fault::WeakKey { key, why } => format!("{key} is too weak ({why})").into(),
            other => format!("the key is damaged ({other})").into(),
        })?;
    if key.kind() != kind {
        return Err(format!("the line says {kind:?}, and its key is {:?}", key.kind()).into());
    }
    Ok((key, comment.trim()))
}

/// The next word of a line, quotes included, and what follows it. Blanks between quotes belong to
/// the word.
fn word(line: &str) -> Result<(String, &str), String> {
    let line = line.trim_start();
    let mut quoted = false;
    let end = line.find(|c: char| {
        quoted ^= c == '"';
        c.is_whitespace() && !quoted
    });
    let (word, rest) = line.split_at(end.unwrap_or(line.len()));
    if word.matches('"').count() % 2 != 0 {
        return Err("a quote is not closed".into());
    }
    if word.is_empty() {
        return Err("it is cut off: a line is PRINCIPALS [OPTIONS] KIND KEY".into());
    }
    Ok((word.to_owned(), rest))
}

/// Options between commas that stand outside quotes.
fn split_options(options: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    options
        .split(move |c: char| {
            quoted ^= c == '"';
            c == ',' && !quoted
        })
        .filter(|option| !option.is_empty())
}

fn unquoted(text: &str) -> &str {
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text)
}

/// `YYYYMMDD`, `YYYYMMDDHHMM` or `YYYYMMDDHHMMSS`, with `Z` or without: always UTC, since a host
/// has no time zone that a signer would know of.
fn moment(text: &str) -> Result<u64, String> {
    let wrong = || format!("{:?} is no time: write YYYYMMDD[HHMM[SS]]Z", printable(text));
    let digits = text.strip_suffix('Z').unwrap_or(text);
    if !matches!(digits.len(), 8 | 12 | 14) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    let part = |from: usize, length: usize| -> i16 {
        digits.get(from..from + length).and_then(|part| part.parse().ok()).unwrap_or(0)
    };
    let small = |from: usize| i8::try_from(part(from, 2)).unwrap_or(-1);
    jiff::civil::DateTime::new(part(0, 4), small(4), small(6), small(8), small(10), small(12), 0)
        .ok()
        .and_then(|time| time.to_zoned(jiff::tz::TimeZone::UTC).ok())
        .and_then(|time| u64::try_from(time.timestamp().as_second()).ok())
        .ok_or_else(wrong)
}
