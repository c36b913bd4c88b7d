//! SSHSIG: a signature over the hash of some bytes, for a purpose that it names.

use super::PublicKey;
use crate::armour::Armour;
use crate::wire::{Fields, fields};
use crate::{Fault, Pair, SIGNATURE_BYTES_AT_MOST, printable};
use sha2::{Digest as _, Sha256, Sha512};

/// The line that a signature begins with.
pub const BEGIN: &str = "-----BEGIN SSH SIGNATURE-----";

const ARMOUR: Armour =
    Armour { begin: BEGIN, end: "-----END SSH SIGNATURE-----", headers: false, line: 70 };
const MAGIC: &[u8] = b"SSHSIG";
const VERSION: u32 = 1;

/// A signature as it stands in a file, before anything of it is believed.
pub struct Signature {
    key: PublicKey,
    namespace: String,
    hash: Hash,
    value: Vec<u8>,
}

#[derive(Clone, Copy)]
enum Hash {
    Sha256,
    Sha512,
}

impl Hash {
    fn name(self) -> &'static str {
        match self {
            Hash::Sha256 => "sha256",
            Hash::Sha512 => "sha512",
        }
    }

    fn of(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Hash::Sha256 => Sha256::digest(bytes).to_vec(),
            Hash::Sha512 => Sha512::digest(bytes).to_vec(),
        }
    }
}

impl Signature {
    /// Reads a signature.
    ///
    /// # Errors
    /// It is damaged, or of a kind that is not read here.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        if text.len() > SIGNATURE_BYTES_AT_MOST {
            return Err(Fault::Damaged(format!("more than {SIGNATURE_BYTES_AT_MOST} bytes")));
        }
        let blob = ARMOUR.open(text)?;
        let mut all = Fields::new(
            blob.strip_prefix(MAGIC).ok_or_else(|| Fault::Damaged("it has no magic".into()))?,
        );
        let version = all.number()?;
        if version != VERSION {
            return Err(Fault::Unsupported(format!("of version {version} of SSH's form")));
        }
        let key = all.bytes()?;
        let namespace = all.text()?.to_owned();
        // Kept free by the form, and not signed: it holds nothing today.
        if !all.bytes()?.is_empty() {
            return Err(Fault::Damaged("its reserved field is not empty".into()));
        }
        let hash = match all.text()? {
            "sha256" => Hash::Sha256,
            "sha512" => Hash::Sha512,
            other => {
                return Err(Fault::Unsupported(format!("over the hash {:?}", printable(other))));
            }
        };
        let value = all.bytes()?.to_vec();
        all.end()?;
        Ok(Self { key: PublicKey::parse(key)?, namespace, hash, value })
    }

    /// The key that it names.
    pub fn key(&self) -> &PublicKey {
        &self.key
    }

    /// Whether the key that it names signed these bytes for this purpose.
    ///
    /// # Errors
    /// [`Fault::OtherPurpose`], [`Fault::OtherBytes`], [`Fault::WeakHash`], and damage.
    pub fn verify(&self, bytes: &[u8], namespace: &str) -> Result<(), Fault> {
        if self.namespace != namespace {
            let found = printable(&self.namespace);
            return Err(Fault::OtherPurpose { found, wanted: namespace.to_owned() });
        }
        self.key.verify(&signed(namespace, self.hash, bytes), &self.value)
    }
}

/// What is signed: what it is for, and the hash of the bytes.
fn signed(namespace: &str, hash: Hash, bytes: &[u8]) -> Vec<u8> {
    let parts = [namespace.as_bytes(), b"", hash.name().as_bytes(), &hash.of(bytes)];
    [MAGIC, &fields(&parts)].concat()
}

/// The text of a signature of these bytes for this purpose.
pub fn sign(pair: &Pair, namespace: &str, bytes: &[u8]) -> String {
    let key = PublicKey::ed25519(pair.public());
    let value = pair.sign(&signed(namespace, Hash::Sha512, bytes));
    let parts = fields(&[
        key.blob(),
        namespace.as_bytes(),
        b"",
        Hash::Sha512.name().as_bytes(),
        &fields(&[key.kind().as_bytes(), &value]),
    ]);
    ARMOUR.close(&[MAGIC, &VERSION.to_be_bytes(), &parts].concat())
}
