//! Signature files, keys and lists of signers: whatever stands in them, nobody is believed who did
//! not sign.

use crate::MESSAGE_BYTES;
use trimtab_signature::{minisign, openpgp, ssh};

/// What seeds are signatures of, and what they must not count for.
const SIGNED: &[u8] = b"the bytes of a plugin";
const OTHERS: &[u8] = b"the bytes of another";
/// What the SSH signatures among them are for.
const PURPOSE: &str = "trimtab-plugin";
/// Whose keys the others among them are by. Nobody has the secret halves any more.
const MINISIGN: &str = include_str!("../keys/minisign.pub");
const OPENPGP: &[u8] = include_bytes!("../keys/openpgp.asc");
/// A time at which these keys count, in seconds since 1970.
const NOW: u64 = 1_800_000_000;

/// Any text as a signature in each form, as a key, and as a list of signers: what counts for
/// these bytes and this purpose counts for no others, and errors are one line.
pub fn signatures(data: &[u8]) {
    signed(data);
    certificates(data);
    let Ok(text) = std::str::from_utf8(data) else { return };
    signers(text);
    keys(text);
}

/// Whether this is a signature of [`SIGNED`], in any form.
pub(crate) fn signed(data: &[u8]) -> bool {
    let text = &String::from_utf8_lossy(data);
    by_ssh(text) || by_minisign(text) || by_openpgp(text)
}

fn by_ssh(text: &str) -> bool {
    let signature = match ssh::Signature::parse(text) {
        Ok(signature) => signature,
        Err(fault) => {
            shown(&fault.to_string());
            return false;
        }
    };
    let counts = signature.verify(SIGNED, PURPOSE).is_ok();
    if counts {
        assert!(signature.verify(OTHERS, PURPOSE).is_err(), "it counts for other bytes");
        assert!(signature.verify(SIGNED, "git").is_err(), "it counts for another purpose");
    }
    counts
}

fn signers(text: &str) {
    match ssh::AllowedSigners::parse(text) {
        Ok(signers) => {
            for line in signers.lines() {
                assert!(!line.principals.is_empty(), "a key of nobody's");
                if let Ok(found) = signers.find(&line.key, PURPOSE, &[NOW]) {
                    assert_eq!(found.key, line.key);
                    assert!(found.valid_before.is_none_or(|end| NOW < end), "a key of the past");
                }
            }
        }
        Err(problems) => problems.iter().for_each(|problem| shown(problem)),
    }
}

fn keys(text: &str) {
    let _ = minisign::PublicKey::parse(text.lines().last().unwrap_or_default());
    for why in [minisign::SecretKey::parse(text).err(), ssh::private_key(text).err()] {
        why.iter().for_each(|why| shown(why));
    }
}

fn by_minisign(text: &str) -> bool {
    let key = MINISIGN.lines().last().map(minisign::PublicKey::parse);
    let key = key.and_then(Result::ok).expect("the key of the seeds");
    let signature = match minisign::Signature::parse(text) {
        Ok(signature) => signature,
        Err(fault) => {
            shown(&fault.to_string());
            return false;
        }
    };
    let counts = signature.verify(SIGNED, &key).is_ok();
    assert!(!counts || signature.verify(OTHERS, &key).is_err(), "it counts for other bytes");
    counts
}

fn by_openpgp(text: &str) -> bool {
    let keys = openpgp::read(OPENPGP).expect("the key of the seeds");
    let Ok(signature) = openpgp::Signature::parse(text) else { return false };
    let counts = |bytes| openpgp::verify(&keys, &signature, bytes, NOW).is_ok();
    assert!(!counts(SIGNED) || !counts(OTHERS), "it counts for other bytes");
    counts(SIGNED)
}

fn certificates(data: &[u8]) {
    match openpgp::read(data) {
        Ok(found) => {
            for certificate in found {
                assert!(certificate.fingerprint().bytes().all(|byte| byte.is_ascii_hexdigit()));
                let _ = certificate.principals(NOW);
            }
        }
        Err(why) => shown(&why),
    }
}

/// A message is one line, and not without end.
fn shown(message: &str) {
    assert!(message.len() <= MESSAGE_BYTES && !message.contains('\n'), "{message:?}");
}
