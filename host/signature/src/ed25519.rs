//! Ed25519 by `ring`, which TLS uses too: what minisign signs with, and the SSH keys that we sign
//! with.

use super::Fault;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};

/// An Ed25519 public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey(pub(crate) [u8; 32]);

impl PublicKey {
    /// The key of these bytes, as RFC 8032 has them.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its bytes, as RFC 8032 has them.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Whether this key's holder signed this message.
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.0).verify(message, signature).is_ok()
    }
}

/// A key pair that signs.
pub struct Pair {
    pair: Ed25519KeyPair,
    public: PublicKey,
}

impl Pair {
    /// From a seed and the public key that must belong to it.
    pub(crate) fn new(seed: &[u8; 32], public: PublicKey) -> Result<Self, Fault> {
        let pair = Ed25519KeyPair::from_seed_and_public_key(seed, &public.0)
            .map_err(|_| Fault::Damaged("its two halves do not belong together".into()))?;
        Ok(Self { pair, public })
    }

    /// From a seed alone.
    ///
    /// # Errors
    /// It is none.
    pub fn from_seed(seed: &[u8; 32]) -> Result<Self, Fault> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed)
            .map_err(|error| Fault::Damaged(error.to_string()))?;
        let mut public = [0; 32];
        public.copy_from_slice(pair.public_key().as_ref());
        Ok(Self { pair, public: PublicKey(public) })
    }

    /// Its public half.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    /// The signature of this message.
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        let mut signature = [0; 64];
        signature.copy_from_slice(self.pair.sign(message).as_ref());
        signature
    }
}
