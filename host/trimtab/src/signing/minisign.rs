//! minisign's forms: a key or signature is one line of base64 under a line of comment.

use super::{Keys, PublicKey, Signer, decode, encode, split};
use blake2::digest::consts::U32;
use blake2::{Blake2b, Blake2b512, Digest as _};

/// Words before the free text of the two comment lines.
pub(super) const COMMENT: &str = "untrusted comment: ";
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
pub(crate) type KeyId = [u8; 8];

/// As minisign prints it.
pub(super) fn id_text(id: KeyId) -> String {
    format!("{:016X}", u64::from_le_bytes(id))
}

/// A public key's line.
pub(super) fn public_key(line: &str) -> Result<(KeyId, PublicKey), String> {
    let bytes = decode(line)?;
    let parts = || {
        let (algorithm, rest) = split::<2>(&bytes)?;
        let (id, rest) = split::<8>(rest)?;
        let (key, rest) = split::<32>(rest)?;
        (algorithm == LEGACY && rest.is_empty()).then_some((id, PublicKey(key)))
    };
    parts().ok_or_else(|| "it is no minisign public key".into())
}

/// A public key's file.
pub(super) fn public_key_text(id: KeyId, key: &PublicKey) -> String {
    let bytes = [&LEGACY[..], &id, &key.0].concat();
    format!("{COMMENT}minisign public key {}\n{}\n", id_text(id), encode(&bytes))
}

/// A secret key's line: number and seed.
pub(super) fn secret_key(line: &str) -> Result<(KeyId, [u8; 32], PublicKey), String> {
    let bytes = decode(line)?;
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
        Some((id, seed, PublicKey(public)))
    };
    parts().ok_or_else(|| "the minisign secret key is cut off".into())
}

/// A secret key's file.
pub(super) fn secret_key_text(id: KeyId, seed: &[u8; 32], key: &PublicKey) -> String {
    let pair = [&id[..], seed, &key.0].concat();
    let mut sum = Blake2b::<U32>::new();
    sum.update(LEGACY);
    sum.update(&pair);
    let head = [&LEGACY[..], &NO_PASSWORD, &CHECKSUM, &[0; PASSWORD_BYTES]].concat();
    let bytes = [&head[..], &pair, &sum.finalize()[..]].concat();
    format!("{COMMENT}minisign secret key, without a password\n{}\n", encode(&bytes))
}

/// A signature's file: over the hash of the bytes, and over itself with the trusted comment.
pub(super) fn sign(
    id: KeyId,
    sign: impl Fn(&[u8]) -> [u8; 64],
    bytes: &[u8],
    about: &str,
) -> String {
    let signature = sign(&Blake2b512::digest(bytes));
    let whole = sign(&[&signature[..], about.as_bytes()].concat());
    format!(
        "{COMMENT}signature by minisign key {}\n{}\n{TRUSTED}{about}\n{}\n",
        id_text(id),
        encode(&[&PREHASHED[..], &id, &signature].concat()),
        encode(&whole),
    )
}

/// Which of the keys this signature of these bytes is by.
pub(super) fn verify<'k>(text: &str, bytes: &[u8], keys: &'k Keys) -> Result<&'k Signer, String> {
    let mut lines = text.lines();
    let mut next = || lines.next().ok_or("it is cut off: a minisign signature has four lines");
    if !next()?.starts_with(COMMENT.trim_end()) {
        return Err("it is no minisign signature".into());
    }
    let signature = decode(next()?.trim_end())?;
    let comment = next()?.strip_prefix(TRUSTED).ok_or("it has no trusted comment")?;
    let whole = decode(next()?.trim_end())?;
    let parts = || {
        let (algorithm, rest) = split::<2>(&signature)?;
        let (id, rest) = split::<8>(rest)?;
        let (signature, rest) = split::<64>(rest)?;
        rest.is_empty().then_some((algorithm, id, signature))
    };
    let (algorithm, id, signature) = parts().ok_or("its signature has a wrong length")?;
    let signer = keys.by_id(id).ok_or_else(|| {
        format!("it is by minisign key {}, which is not among the required keys", id_text(id))
    })?;
    let good = match algorithm {
        LEGACY => signer.key.verifies(bytes, &signature),
        PREHASHED => signer.key.verifies(&Blake2b512::digest(bytes), &signature),
        _ => return Err("it is of a form that this host does not know".into()),
    };
    if !good {
        return Err(format!("it names the key of {}, and is not for this file", signer.name));
    }
    if !signer.key.verifies(&[&signature[..], comment.as_bytes()].concat(), &whole) {
        return Err("its trusted comment was altered".into());
    }
    Ok(signer)
}
