//! Every way in which a signature does not count, each told apart, with what to do.

use super::time;

/// Why a signature does not count. `key` is a key as people name it: its format and fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// It is cut off, has something before or behind it, or is spelled as nobody would.
    #[error("the signature is damaged ({0})")]
    Damaged(String),
    /// A form or an algorithm that is not read here.
    #[error("the signature is {0}")]
    Unsupported(String),
    /// An SSH signature for another namespace.
    #[error("the signature was made for {found:?} and not for {wanted:?}")]
    OtherPurpose {
        /// The namespace that it was made for.
        found: String,
        /// The one that counts.
        wanted: String,
    },
    /// By a key that nobody allowed. Whether the signature itself is good is not said.
    #[error("the signature is by {key}, which is not among the allowed keys")]
    UnknownKey {
        /// The key that the signature names.
        key: String,
    },
    /// By an allowed key, over something else.
    #[error("the signature names {key} and is not over these bytes")]
    OtherBytes {
        /// The key that the signature names.
        key: String,
    },
    /// Made with a hash for which collisions can be had.
    #[error("the signature of {key} is over {hash}, for which collisions can be made")]
    WeakHash {
        /// The key.
        key: String,
        /// The hash.
        hash: String,
    },
    /// By a key that can be broken.
    #[error("{key} is too weak to count ({why})")]
    WeakKey {
        /// The key.
        key: String,
        /// What is weak.
        why: String,
    },
    /// By a key whose time is over.
    #[error("{key} expired at {}", time(*.at))]
    KeyExpired {
        /// The key.
        key: String,
        /// Seconds since 1970.
        at: u64,
    },
    /// By a key whose time has not come, or before the key was made.
    #[error("{key} is valid from {} on, and the signature or the clock is before", time(*.from))]
    KeyNotYetValid {
        /// The key.
        key: String,
        /// Seconds since 1970.
        from: u64,
    },
    /// By a key that its owner revoked.
    #[error("{key} was revoked")]
    KeyRevoked {
        /// The key.
        key: String,
    },
    /// By a key that its owner, or the list of allowed keys, does not let sign this.
    #[error("{key} is not for signing this ({why})")]
    NotForSigning {
        /// The key.
        key: String,
        /// What is missing.
        why: String,
    },
    /// The signature has a time limit, which is over.
    #[error("the signature of {key} expired at {}", time(*.at))]
    SignatureExpired {
        /// The key.
        key: String,
        /// Seconds since 1970.
        at: u64,
    },
    /// The signature says that it was made in the future.
    #[error("the signature of {key} says that it was made at {}, which is in the future", time(*.at))]
    FromTheFuture {
        /// The key.
        key: String,
        /// Seconds since 1970.
        at: u64,
    },
}

impl Fault {
    /// As scripts see it, in snake case.
    pub fn code(&self) -> &'static str {
        match self {
            Fault::Damaged(_) => "signature_damaged",
            Fault::Unsupported(_) => "signature_unsupported",
            Fault::OtherPurpose { .. } => "signature_for_another_purpose",
            Fault::UnknownKey { .. } => "signature_by_unknown_key",
            Fault::OtherBytes { .. } => "signature_over_other_bytes",
            Fault::WeakHash { .. } => "signature_weak_hash",
            Fault::WeakKey { .. } => "key_weak",
            Fault::KeyExpired { .. } => "key_expired",
            Fault::KeyNotYetValid { .. } => "key_not_yet_valid",
            Fault::KeyRevoked { .. } => "key_revoked",
            Fault::NotForSigning { .. } => "key_not_for_signing",
            Fault::SignatureExpired { .. } => "signature_expired",
            Fault::FromTheFuture { .. } => "signature_from_the_future",
        }
    }

    /// What to do.
    pub fn remedy(&self) -> &'static str {
        match self {
            Fault::Damaged(_) | Fault::OtherBytes { .. } => {
                "find out who changed it, and sign again"
            }
            Fault::Unsupported(_) => {
                "sign with a key and a program of the kinds that docs/trust.md lists"
            }
            Fault::OtherPurpose { .. } => "sign for the right namespace",
            Fault::UnknownKey { .. } => "if the key is a signer's, add it to the allowed signers",
            Fault::WeakHash { .. } => "sign with SHA-256 or SHA-512",
            Fault::WeakKey { .. } | Fault::KeyRevoked { .. } => "sign with another key",
            Fault::KeyExpired { .. } => {
                "extend the key and give its new public part, or sign with another"
            }
            Fault::KeyNotYetValid { .. } | Fault::FromTheFuture { .. } => {
                "look at the clocks of signer and host"
            }
            Fault::NotForSigning { .. } => "sign with a key that may sign",
            Fault::SignatureExpired { .. } => "sign again",
        }
    }
}
