//! OpenSSH's private keys: Ed25519 without a password, to sign with.

use crate::armour::Armour;
use crate::wire::Fields;
use crate::{Fault, Pair, PublicKey, split};

const ARMOUR: Armour = Armour {
    begin: "-----BEGIN OPENSSH PRIVATE KEY-----",
    end: "-----END OPENSSH PRIVATE KEY-----",
    headers: false,
    line: 70,
};
const MAGIC: &[u8] = b"openssh-key-v1\0";
const ED25519: &[u8] = b"ssh-ed25519";

/// Whether this is the text of a private key.
pub fn is_private_key(text: &str) -> bool {
    text.trim_start().starts_with(ARMOUR.begin)
}

/// Reads a private key's file.
///
/// # Errors
/// It is damaged, has a password, or is of another kind: a sentence that says which.
pub fn private_key(text: &str) -> Result<Pair, String> {
    let bytes = ARMOUR.open(text.trim_start()).map_err(damaged)?;
    let rest = bytes.strip_prefix(MAGIC).ok_or("it is no OpenSSH private key")?;
    let mut all = Fields::new(rest);
    if all.bytes().map_err(damaged)? != b"none" {
        return Err(
            "it is protected by a password, which is not asked for here: sign with `ssh-keygen -Y sign`, which asks"
                .into(),
        );
    }
    let mut pair = || -> Result<Option<Pair>, Fault> {
        let (_kdf, _options) = (all.bytes()?, all.bytes()?);
        let one = all.number()? == 1;
        let _public = all.bytes()?;
        let mut secret = Fields::new(all.bytes()?);
        let same = secret.number()? == secret.number()?;
        if !one || !same || secret.bytes()? != ED25519 {
            return Ok(None);
        }
        let public: [u8; 32] = match secret.bytes()?.try_into() {
            Ok(public) => public,
            Err(_) => return Ok(None),
        };
        match split::<32>(secret.bytes()?) {
            Some((seed, _)) => Pair::new(&seed, PublicKey(public)).map(Some),
            None => Ok(None),
        }
    };
    pair().map_err(damaged)?.ok_or_else(|| {
        "it is not one Ed25519 key: other kinds are not signed with here (`ssh-keygen -t ed25519`)"
            .into()
    })
}

fn damaged(fault: Fault) -> String {
    match fault {
        Fault::Damaged(what) => format!("the OpenSSH private key is damaged ({what})"),
        other => other.to_string(),
    }
}
