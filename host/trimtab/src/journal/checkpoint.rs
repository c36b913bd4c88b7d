//! Checkpoints: the host's signature under all lines before.
//!
//! A checkpoint is a line of the log itself. It covers the line before it, and with that line's
//! `prev` all others. The same line is kept outside the log too: whoever shortens the log, or
//! continues an older copy of it, has no copy of the line that is missing.

use super::lines::CheckpointLine;
use anyhow::Context as _;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::path::Path;
use trimtab_signature::{Pair, PublicKey};

/// What is signed begins with this, so that a signature is good for nothing else.
const CONTEXT: &str = "trimtab-audit-checkpoint/v1";
/// In front of a public key in text.
const PREFIX: &str = "ed25519:";
/// Name of the secret key within the state directory.
const KEY_FILE: &str = "audit.key";

/// The host's key. Made at the first start.
pub(crate) struct HostKey {
    pair: Pair,
    public: String,
}

impl HostKey {
    /// The key of this state directory, made if there is none.
    ///
    /// # Errors
    /// It cannot be read or made.
    pub(crate) fn open(state: &Path) -> anyhow::Result<Self> {
        let seed = crate::state::own_key(&state.join(KEY_FILE))?;
        let pair = Pair::from_seed(&seed)
            .map_err(|error| anyhow::anyhow!("{KEY_FILE} is no key: {error}"))?;
        let public = format!("{PREFIX}{}", BASE64_STANDARD.encode(pair.public().bytes()));
        Ok(Self { pair, public })
    }

    /// The public half, as it is printed: `ed25519:` and base64.
    pub(crate) fn public(&self) -> &str {
        &self.public
    }

    /// Vouches for the line of this hash, which has the number before `seq`.
    pub(super) fn checkpoint(&self, log: &str, seq: u64, prev: &str, time: &str) -> CheckpointLine {
        let signature = self.pair.sign(message(log, &self.public, seq, prev, time).as_bytes());
        CheckpointLine {
            log: log.to_owned(),
            key: self.public.clone(),
            signature: BASE64_STANDARD.encode(signature),
        }
    }
}

impl CheckpointLine {
    /// Whether its key made its signature, over what stands in its line.
    pub(super) fn is_signed(&self, seq: u64, prev: &str, time: &str) -> bool {
        let (Ok(key), Ok(signature)) =
            (public_key(&self.key), BASE64_STANDARD.decode(&self.signature))
        else {
            return false;
        };
        let message = message(&self.log, &self.key, seq, prev, time);
        PublicKey::from_bytes(key).verifies(message.as_bytes(), &signature)
    }
}

/// The bytes of a public key in text.
///
/// # Errors
/// It is none, and what one looks like.
pub(crate) fn public_key(text: &str) -> anyhow::Result<[u8; 32]> {
    text.strip_prefix(PREFIX)
        .and_then(|text| BASE64_STANDARD.decode(text).ok()?.try_into().ok())
        .with_context(|| {
            format!("{text:?} is no public key: `trimtab audit key` prints one as {PREFIX}BASE64")
        })
}

fn message(log: &str, key: &str, seq: u64, prev: &str, time: &str) -> String {
    format!("{CONTEXT}\n{log}\n{key}\n{seq}\n{prev}\n{time}\n")
}
