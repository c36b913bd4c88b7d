//! Public keys of OpenSSH, and single signatures by them.

use crate::wire::{Fields, fields};
use crate::{Fault, encode, printable};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA512, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use sha2::{Digest as _, Sha256};

/// Sizes of RSA moduli that count: smaller ones can be factored, larger ones cost time alone.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

/// The bit of a security key's answer that says that somebody touched it.
const USER_PRESENT: u8 = 1;

/// A public key: ed25519, ecdsa on P-256 and P-384, rsa, and security keys' two kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    name: &'static str,
    blob: Vec<u8>,
    parts: Parts,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Parts {
    Ed25519([u8; 32]),
    Ecdsa(Curve, Vec<u8>),
    Rsa { e: Vec<u8>, n: Vec<u8> },
    SkEd25519([u8; 32], Vec<u8>),
    SkEcdsa(Vec<u8>, Vec<u8>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Curve {
    P256,
    P384,
}

impl Curve {
    fn name(self) -> &'static str {
        match self {
            Curve::P256 => "nistp256",
            Curve::P384 => "nistp384",
        }
    }

    fn algorithm(self) -> &'static dyn VerificationAlgorithm {
        match self {
            Curve::P256 => &ECDSA_P256_SHA256_FIXED,
            Curve::P384 => &ECDSA_P384_SHA384_FIXED,
        }
    }

    fn bytes(self) -> usize {
        match self {
            Curve::P256 => 32,
            Curve::P384 => 48,
        }
    }
}

const ED25519_NAME: &str = "ssh-ed25519";
const RSA_NAME: &str = "ssh-rsa";
const P256_NAME: &str = "ecdsa-sha2-nistp256";
const P384_NAME: &str = "ecdsa-sha2-nistp384";
const SK_ED25519_NAME: &str = "sk-ssh-ed25519@openssh.com";
const SK_P256_NAME: &str = "sk-ecdsa-sha2-nistp256@openssh.com";

/// Names of keys that are read here, as they stand in files.
pub(super) const NAMES: [&str; 6] =
    [ED25519_NAME, RSA_NAME, P256_NAME, P384_NAME, SK_ED25519_NAME, SK_P256_NAME];

impl PublicKey {
    /// A key from its binary form.
    ///
    /// # Errors
    /// [`Fault::Unsupported`] for other kinds, [`Fault::WeakKey`] for short RSA keys, else damage.
    pub fn parse(blob: &[u8]) -> Result<Self, Fault> {
        let mut all = Fields::new(blob);
        let name = all.text()?;
        let name = *NAMES.iter().find(|known| **known == name).ok_or_else(|| unknown(name))?;
        let parts = match name {
            ED25519_NAME => Parts::Ed25519(exactly(all.bytes()?)?),
            P256_NAME => Parts::Ecdsa(Curve::P256, point(&mut all, Curve::P256)?),
            P384_NAME => Parts::Ecdsa(Curve::P384, point(&mut all, Curve::P384)?),
            SK_ED25519_NAME => Parts::SkEd25519(exactly(all.bytes()?)?, all.bytes()?.to_vec()),
            SK_P256_NAME => Parts::SkEcdsa(point(&mut all, Curve::P256)?, all.bytes()?.to_vec()),
            _ => Parts::Rsa { e: all.natural()?.to_vec(), n: all.natural()?.to_vec() },
        };
        all.end()?;
        let key = Self { name, blob: blob.to_vec(), parts };
        if let Parts::Rsa { n, .. } = &key.parts {
            let bits = n.len() * 8 - n.first().map_or(0, |first| first.leading_zeros() as usize);
            if !RSA_BITS.contains(&bits) {
                let why = format!("{bits} bits: {} to {} count", RSA_BITS.start(), RSA_BITS.end());
                return Err(Fault::WeakKey { key: key.fingerprint(), why });
            }
        }
        Ok(key)
    }

    /// The kind's name, such as `ssh-ed25519`.
    pub fn kind(&self) -> &'static str {
        self.name
    }

    /// As `ssh-keygen -l` prints it: `SHA256:` and 43 characters of base64.
    pub fn fingerprint(&self) -> String {
        format!("SHA256:{}", encode(&Sha256::digest(&self.blob)).trim_end_matches('='))
    }

    pub(super) fn ed25519(key: crate::PublicKey) -> Self {
        Self {
            name: ED25519_NAME,
            blob: fields(&[ED25519_NAME.as_bytes(), &key.0]),
            parts: Parts::Ed25519(key.0),
        }
    }

    pub(super) fn blob(&self) -> &[u8] {
        &self.blob
    }

    /// Whether this signature field is this key's over the message.
    pub(super) fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), Fault> {
        let mut all = Fields::new(signature);
        let form = all.text()?;
        let value = all.bytes()?;
        let good = match &self.parts {
            Parts::Rsa { e, n } => {
                all.end()?;
                let algorithm = match form {
                    "rsa-sha2-256" => &RSA_PKCS1_2048_8192_SHA256,
                    "rsa-sha2-512" => &RSA_PKCS1_2048_8192_SHA512,
                    RSA_NAME => {
                        return Err(Fault::WeakHash { key: self.named(), hash: "SHA-1".into() });
                    }
                    _ => return Err(other_form(form)),
                };
                RsaPublicKeyComponents { n, e }.verify(algorithm, message, value).is_ok()
            }
            _ if form != self.name => return Err(other_form(form)),
            Parts::Ed25519(key) => {
                all.end()?;
                UnparsedPublicKey::new(&ED25519, key).verify(message, value).is_ok()
            }
            Parts::Ecdsa(curve, key) => {
                all.end()?;
                ecdsa(*curve, key, message, value)?
            }
            Parts::SkEd25519(key, application) => {
                let touched = touched(all, application, message)?;
                UnparsedPublicKey::new(&ED25519, key).verify(&touched, value).is_ok()
            }
            Parts::SkEcdsa(key, application) => {
                let touched = touched(all, application, message)?;
                ecdsa(Curve::P256, key, &touched, value)?
            }
        };
        if good { Ok(()) } else { Err(Fault::OtherBytes { key: self.named() }) }
    }

    /// As messages name it.
    pub fn named(&self) -> String {
        format!("SSH key {}", self.fingerprint())
    }
}

fn ecdsa(curve: Curve, key: &[u8], message: &[u8], signature: &[u8]) -> Result<bool, Fault> {
    let mut pair = Fields::new(signature);
    let mut fixed = Vec::with_capacity(2 * curve.bytes());
    for _ in 0..2 {
        let number = pair.natural()?;
        let zeros = curve.bytes().checked_sub(number.len());
        let zeros = zeros.ok_or_else(|| Fault::Damaged("a number in it is too long".into()))?;
        fixed.extend(std::iter::repeat_n(0, zeros));
        fixed.extend_from_slice(number);
    }
    pair.end()?;
    Ok(UnparsedPublicKey::new(curve.algorithm(), key).verify(message, &fixed).is_ok())
}

/// What a security key signs: who asked, that it was touched, how often it signed, and the message.
fn touched(mut rest: Fields<'_>, application: &[u8], message: &[u8]) -> Result<Vec<u8>, Fault> {
    let [flags] = rest.fixed::<1>()?;
    let counter = rest.fixed::<4>()?;
    rest.end()?;
    if flags & USER_PRESENT == 0 {
        return Err(Fault::Unsupported("by a security key that nobody touched".into()));
    }
    let (application, message) = (Sha256::digest(application), Sha256::digest(message));
    Ok([&application[..], &[flags], &counter, &message[..]].concat())
}

fn point(all: &mut Fields<'_>, curve: Curve) -> Result<Vec<u8>, Fault> {
    let same = all.text()? == curve.name();
    let point = all.bytes()?;
    if same && point.len() == 1 + 2 * curve.bytes() && point.first() == Some(&4) {
        Ok(point.to_vec())
    } else {
        Err(Fault::Damaged(format!("its key is no point of {}", curve.name())))
    }
}

fn exactly(bytes: &[u8]) -> Result<[u8; 32], Fault> {
    bytes.try_into().map_err(|_| Fault::Damaged("its key has a wrong length".into()))
}

fn other_form(form: &str) -> Fault {
    Fault::Unsupported(format!("of the form {:?}, which is not read here", printable(form)))
}

fn unknown(name: &str) -> Fault {
    let name = printable(name);
    Fault::Unsupported(if name.contains("-cert-v01@") {
        format!("by a certificate ({name}): list the key itself among the allowed signers")
    } else {
        format!("by a key of the kind {name:?}: {} are read", NAMES.join(", "))
    })
}
