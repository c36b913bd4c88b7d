//! Ed25519 by `ring`, which TLS uses too: what minisign signs with, and the SSH keys that we sign
//! with.

use super::Fault;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};

/// An Ed25519 public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey(pub(crate) [u8; 32]);

impl PublicKey {
    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
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
    pub(crate) fn from_seed(seed: &[u8; 32]) -> Result<Self, Fault> {
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

    pub(crate) fn sign(&self, message: &[u8]) -> [u8; 64] {
        let mut signature = [0; 64];
        signature.copy_from_slice(self.pair.sign(message).as_ref());
        signature
    }
}
