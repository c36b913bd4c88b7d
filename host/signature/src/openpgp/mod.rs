//! OpenPGP: detached signatures over bytes, and the certificates (keys) that may have made them.
//! RFC 9580 describes the forms; the crate `pgp` does packets and arithmetic; what counts is ours.
//!
//! What counts is stricter than the form: a key that is revoked or expired *now* vouches for
//! nothing, also for nothing older, since the time of a signature is its maker's word.

mod certificate;
mod signature;
#[cfg(test)]
mod tests;

pub use certificate::{Certificate, read};
pub use signature::{BEGIN, Signature};

use crate::{CLOCK_SKEW_SECONDS, Fault};
use pgp::packet::{Signature as Packet, SignatureVersion, SubpacketData};
use pgp::types::{Fingerprint, PublicParams};

/// Who signed.
#[derive(Clone, Copy, Debug)]
pub struct Vouched<'k> {
    /// The certificate.
    pub certificate: &'k Certificate,
    key: &'k Fingerprint,
}

impl Vouched<'_> {
    /// Of the key that signed, which may be a subkey: capital hexadecimal digits.
    pub fn fingerprint(&self) -> String {
        hex(self.key.as_bytes())
    }
}

/// Which certificate vouches for exactly these bytes. `now` is seconds since 1970.
///
/// # Errors
/// Every [`Fault`] but [`Fault::OtherPurpose`].
pub fn verify<'k>(
    certificates: &'k [Certificate],
    signature: &Signature,
    bytes: &[u8],
    now: u64,
) -> Result<Vouched<'k>, Fault> {
    let mut verdict = Err(Fault::UnknownKey { key: signature.issuer() });
    for certificate in certificates {
        let Some(key) = certificate.find(signature) else { continue };
        match certificate.vouches(key, signature, bytes, now) {
            Ok(()) => verdict = Ok(Vouched { certificate, key: key.fingerprint() }),
            // An older export of the same key, without the revocation, may lie beside.
            Err(fault @ Fault::KeyRevoked { .. }) => return Err(fault),
            Err(fault) if verdict.is_err() => verdict = Err(fault),
            Err(_) => {}
        }
    }
    verdict
}

/// A key as messages name it.
fn named(fingerprint: &Fingerprint) -> String {
    format!("OpenPGP key {}", hex(fingerprint.as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// The hash, if collisions of it can be had; `None` for the ones that count.
fn weak_hash(signature: &Packet) -> Option<String> {
    use pgp::crypto::hash::HashAlgorithm as Hash;
    match signature.hash_alg() {
        Some(Hash::Sha256 | Hash::Sha384 | Hash::Sha512 | Hash::Sha3_256 | Hash::Sha3_512) => None,
        Some(other) => Some(format!("{other:?}").to_uppercase()),
        None => Some("an unknown hash".into()),
    }
}

/// What is wrong with a key's kind or size, if something is.
fn weak_key(params: &PublicParams) -> Option<String> {
    use pgp::types::EcdsaPublicParams as Ecdsa;
    use rsa_bits::bits;
    match params {
        PublicParams::RSA(rsa) => {
            let bits = bits(rsa);
            (!(2048..=8192).contains(&bits))
                .then(|| format!("RSA of {bits} bits: 2048 to 8192 count"))
        }
        PublicParams::EdDSALegacy(_) | PublicParams::Ed25519(_) | PublicParams::Ed448(_) => None,
        PublicParams::ECDSA(Ecdsa::P256 { .. } | Ecdsa::P384 { .. } | Ecdsa::P521 { .. }) => None,
        PublicParams::ECDSA(_) => Some("a curve other than P-256, P-384 and P-521".into()),
        PublicParams::DSA(_) => Some("DSA".into()),
        _ => Some("it is of no kind that signs here".into()),
    }
}

/// Whether a signature that stands in a certificate, or over bytes, can count at all at this time:
/// its version, what it says that must be understood, and its own time limit.
fn in_force(signature: &Packet, now: u64) -> bool {
    let Some(config) = signature.config() else { return false };
    let known = matches!(config.version(), SignatureVersion::V4 | SignatureVersion::V6);
    let understood = config.hashed_subpackets().all(|part| {
        !part.is_critical
            || !matches!(
                part.data,
                SubpacketData::Other(..)
                    | SubpacketData::Experimental(..)
                    | SubpacketData::Notation(_)
            )
    });
    let Some(made) = signature.created().map(|made| u64::from(made.as_secs())) else {
        return false;
    };
    known
        && understood
        && made <= now + CLOCK_SKEW_SECONDS
        && expiry(made, signature.signature_expiration_time()).is_none_or(|at| now < at)
}

/// When something that was made at `made` ends, if it ends: zero means never.
fn expiry(made: u64, after: Option<pgp::types::Duration>) -> Option<u64> {
    after.map(|after| u64::from(after.as_secs())).filter(|after| *after > 0).map(|it| made + it)
}

mod rsa_bits {
    use pgp::ser::Serialize as _;
    use pgp::types::RsaPublicParams;

    /// Bits of the modulus: the first number of the key's own form says them.
    pub(super) fn bits(rsa: &RsaPublicParams) -> usize {
        match rsa.to_bytes().as_deref() {
            Ok([high, low, ..]) => usize::from(u16::from_be_bytes([*high, *low])),
            _ => 0,
        }
    }
}
