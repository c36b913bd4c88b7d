//! Signature formats: bytes and keys in, "by this key" or the reason why not out.
//!
//! - [`ssh`]: SSHSIG signatures, OpenSSH keys, and the `allowed_signers` form.
//! - [`openpgp`]: detached signatures and certificates.
//! - [`minisign`]: its keys and signatures.
//!
//! Invariants: only what was signed counts, and a text that says the same in other bytes is
//! refused, so that a signature has one spelling. No file is read, no clock is asked; what is
//! trusted, and for what, is the caller's to say. Nothing here panics on any input.
//!
//! Start reading at `fault.rs`: every way in which a signature does not count.

#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod armour;
mod ed25519;
mod fault;
pub mod minisign;
pub mod openpgp;
mod pattern;
pub mod ssh;
mod wire;

pub use ed25519::{Pair, PublicKey};
pub use fault::Fault;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Bytes of one signature's text. The largest in use (RSA 8192, OpenPGP) has some 2 KiB.
pub const SIGNATURE_BYTES_AT_MOST: usize = 16 << 10;

/// How far a signer's clock may be ahead of ours, in seconds.
pub const CLOCK_SKEW_SECONDS: u64 = 300;

fn decode(text: &str) -> Result<Vec<u8>, Fault> {
    STANDARD.decode(text).map_err(|error| Fault::Damaged(format!("its base64: {error}")))
}

fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// The next `N` bytes, and what follows.
fn split<const N: usize>(bytes: &[u8]) -> Option<([u8; N], &[u8])> {
    bytes.split_first_chunk::<N>().map(|(head, rest)| (*head, rest))
}

/// A time as people read it: seconds since 1970 as `2026-01-31T12:00:00Z`.
fn time(seconds: u64) -> String {
    i64::try_from(seconds)
        .ok()
        .and_then(|seconds| jiff::Timestamp::from_second(seconds).ok())
        .map_or_else(|| format!("{seconds} s after 1970"), |time| time.to_string())
}

/// Text of others as one line of bounded length.
pub(crate) fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}
