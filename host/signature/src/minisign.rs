//! minisign's forms: a key or signature is one line of base64 under a line of comment.

use super::{Fault, Pair, decode, ed25519, encode, split};
use blake2::digest::consts::U32;
use blake2::{Blake2b, Blake2b512, Digest as _};

/// Words before the free text of the two comment lines.
const COMMENT: &str = "untrusted comment: ";
const TRUSTED: &str = "trusted comment: ";

/// How a signature covers a file: the bytes themselves (legacy), or their BLAKE2b-512.
const LEGACY: [u8; 2] = *b"Ed";
const PREHASHED: [u8; 2] = *b"ED";
/// A secret key that no password protects, and the checksum that every secret key has.
const NO_PASSWORD: [u8; 2] = [0, 0];
const CHECKSUM: [u8; 2] = *b"B2";
/// Salt and cost of the password, which is not there: zeroes.
const PASSWORD_BYTES: usize = 32 + 8 + 8;

/// The key's number, by which a signature names its key.
pub type KeyId = [u8; 8];

/// As minisign prints it.
pub fn id_text(id: KeyId) -> String {
    format!("{:016X}", u64::from_le_bytes(id))
}

/// Whether this line is the comment that goes before a key or signature.
pub fn is_comment(line: &str) -> bool {
    line.starts_with(COMMENT.trim_end())
}

/// A public key with its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey {
    /// minisign's number of it.
    pub id: KeyId,
    key: ed25519::PublicKey,
}

impl PublicKey {
    /// Reads a public key's line.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(line: &str) -> Result<Self, Fault> {
        let bytes = decode(line)?;
        let parts = || {
            let (algorithm, rest) = split::<2>(&bytes)?;
            let (id, rest) = split::<8>(rest)?;
            let (key, rest) = split::<32>(rest)?;
            let key = ed25519::PublicKey(key);
            (algorithm == LEGACY && rest.is_empty()).then_some(Self { id, key })
        };
        parts().ok_or_else(|| Fault::Damaged("it is no minisign public key".into()))
    }

    fn named(&self) -> String {
        format!("minisign key {}", id_text(self.id))
    }
}

/// A secret key that no password protects.
pub struct SecretKey {
    id: KeyId,
    pair: Pair,
}

impl SecretKey {
    /// Reads a secret key's file.
    ///
    /// # Errors
    /// It is none, or a password protects it: a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        let line = match (lines.next(), lines.next()) {
            (Some(first), Some(line)) if is_comment(first) => line,
            _ => return Err("it is neither a minisign nor an OpenSSH secret key".into()),
        };
        let bytes = decode(line.trim_end()).map_err(|fault| fault.to_string())?;
        let parts = || {
            let (algorithm, rest) = split::<2>(&bytes)?;
            let (password, rest) = split::<2>(rest)?;
            let (checksum, rest) = split::<2>(rest)?;
            let (_, rest) = split::<PASSWORD_BYTES>(rest)?;
            let known = algorithm == LEGACY && checksum == CHECKSUM;
            known.then_some((password, rest))
        };
        let (password, rest) = parts().ok_or("it is no minisign secret key")?;
        if password != NO_PASSWORD {
            return Err(
                "it is protected by a password, which is not asked for here: sign with minisign itself (-S), or make a key without one (`trimtab plugin keygen`, `minisign -G -W`)"
                    .into(),
            );
        }
        let parts = || {
            let (id, rest) = split::<8>(rest)?;
            let (seed, rest) = split::<32>(rest)?;
            let (public, _checksum) = split::<32>(rest)?;
            Some((id, seed, ed25519::PublicKey(public)))
        };
        let (id, seed, public) = parts().ok_or("the minisign secret key is cut off")?;
        let pair = Pair::new(&seed, public)
            .map_err(|_| "its two halves do not belong together: the file is damaged")?;
        Ok(Self { id, pair })
    }

    /// The text of a signature: over the hash of the bytes, and over itself with `about`.
    pub fn sign(&self, bytes: &[u8], about: &str) -> String {
        let signature = self.pair.sign(&Blake2b512::digest(bytes));
        let whole = self.pair.sign(&[&signature[..], about.as_bytes()].concat());
        format!(
            "{COMMENT}signature by minisign key {}\n{}\n{TRUSTED}{about}\n{}\n",
            id_text(self.id),
            encode(&[&PREHASHED[..], &self.id, &signature].concat()),
            encode(&whole),
        )
    }
}

/// A new key pair: the texts of its secret and its public file.
///
/// # Errors
/// The machine gives no random numbers: a sentence.
pub fn generate() -> Result<(String, String), String> {
    let (mut id, mut seed) = ([0; 8], [0; 32]);
    for bytes in [&mut id[..], &mut seed[..]] {
        getrandom::fill(bytes).map_err(|error| format!("no random numbers: {error}"))?;
    }
    let pair = Pair::from_seed(&seed).map_err(|fault| fault.to_string())?;
    let public = pair.public().0;
    let halves = [&id[..], &seed, &public].concat();
    let mut sum = Blake2b::<U32>::new();
    sum.update(LEGACY);
    sum.update(&halves);
    let head = [&LEGACY[..], &NO_PASSWORD, &CHECKSUM, &[0; PASSWORD_BYTES]].concat();
    let secret = encode(&[&head[..], &halves, &sum.finalize()[..]].concat());
    let public = encode(&[&LEGACY[..], &id, &public].concat());
    Ok((
        format!("{COMMENT}minisign secret key, without a password\n{secret}\n"),
        format!("{COMMENT}minisign public key {}\n{public}\n", id_text(id)),
    ))
}

/// A signature as it stands in a file, before anything of it is believed.
pub struct Signature<'t> {
    /// The number of the key that it names.
    pub key: KeyId,
    algorithm: [u8; 2],
    value: [u8; 64],
    comment: &'t str,
    whole: Vec<u8>,
}

impl<'t> Signature<'t> {
    /// Reads a signature's four lines.
    ///
    /// # Errors
    /// It is damaged, or of a form that is not read here.
    pub fn parse(text: &'t str) -> Result<Self, Fault> {
        let damaged = |what: &str| Fault::Damaged(what.to_owned());
        let mut lines = text.lines();
        let mut next =
            || lines.next().ok_or_else(|| damaged("a minisign signature has four lines"));
        if !is_comment(next()?) {
            return Err(damaged("it is no minisign signature"));
        }
        let signature = decode(next()?)?;
        let comment = next()?;
        let comment =
            comment.strip_prefix(TRUSTED).ok_or_else(|| damaged("it has no trusted comment"))?;
        let whole = decode(next()?)?;
        if lines.any(|line| !line.is_empty()) {
            return Err(damaged("something is behind its four lines"));
        }
        let parts = || {
            let (algorithm, rest) = split::<2>(&signature)?;
            let (key, rest) = split::<8>(rest)?;
            let (value, rest) = split::<64>(rest)?;
            rest.is_empty().then_some((algorithm, key, value))
        };
        let (algorithm, key, value) = parts().ok_or_else(|| damaged("it has a wrong length"))?;
        if algorithm != LEGACY && algorithm != PREHASHED {
            return Err(Fault::Unsupported("of a form that is not read here".into()));
        }
        Ok(Self { key, algorithm, value, comment, whole })
    }

    /// Whether this key signed these bytes, and the trusted comment.
    ///
    /// # Errors
    /// [`Fault::UnknownKey`] for another key, [`Fault::OtherBytes`], and damage of the comment.
    pub fn verify(&self, bytes: &[u8], by: &PublicKey) -> Result<(), Fault> {
        if by.id != self.key {
            let key = format!("minisign key {}", id_text(self.key));
            return Err(Fault::UnknownKey { key });
        }
        let good = if self.algorithm == LEGACY {
            by.key.verifies(bytes, &self.value)
        } else {
            by.key.verifies(&Blake2b512::digest(bytes), &self.value)
        };
        if !good {
            return Err(Fault::OtherBytes { key: by.named() });
        }
        if !by.key.verifies(&[&self.value[..], self.comment.as_bytes()].concat(), &self.whole) {
            return Err(Fault::Damaged("its trusted comment was altered".into()));
        }
        Ok(())
    }
}
