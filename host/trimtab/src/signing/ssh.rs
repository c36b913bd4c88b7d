//! OpenSSH's forms: length-prefixed fields in base64, keys on one line, signatures and private keys
//! between markers. PROTOCOL.sshsig and PROTOCOL.key of OpenSSH describe them.

use super::{Keys, PublicKey, SSH_NAMESPACE, Signer, decode, encode, split};
use sha2::{Digest as _, Sha256, Sha512};

/// The one kind of key that is read.
pub(super) const ED25519: &str = "ssh-ed25519";

const SIGNATURE: Armour =
    Armour { begin: "-----BEGIN SSH SIGNATURE-----", end: "-----END SSH SIGNATURE-----" };
const PRIVATE_KEY: Armour = Armour {
    begin: "-----BEGIN OPENSSH PRIVATE KEY-----",
    end: "-----END OPENSSH PRIVATE KEY-----",
};
const SIGNATURE_MAGIC: &[u8] = b"SSHSIG";
const PRIVATE_KEY_MAGIC: &[u8] = b"openssh-key-v1\0";
const SIGNATURE_VERSION: u32 = 1;
/// Characters of base64 on a line of a signature.
const LINE_CHARS: usize = 70;

/// Markers around base64.
struct Armour {
    begin: &'static str,
    end: &'static str,
}

impl Armour {
    fn open(&self, text: &str) -> Result<Vec<u8>, String> {
        let inner = text.trim().strip_prefix(self.begin).and_then(|it| it.strip_suffix(self.end));
        let inner = inner
            .ok_or_else(|| format!("it is not between {:?} and {:?}", self.begin, self.end))?;
        decode(&inner.split_whitespace().collect::<String>())
    }

    fn close(&self, bytes: &[u8]) -> String {
        let text = encode(bytes);
        let mut lines = vec![self.begin.to_owned()];
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (line, after) = rest.split_at(rest.len().min(LINE_CHARS));
            lines.push(line.to_owned());
            rest = after;
        }
        lines.push(self.end.to_owned());
        lines.join("\n") + "\n"
    }
}

/// Fields, read one after the other.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn number(&mut self) -> Option<u32> {
        let (number, rest) = split::<4>(self.0)?;
        self.0 = rest;
        Some(u32::from_be_bytes(number))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (field, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(field)
    }

    fn is(&mut self, expected: &str) -> Option<()> {
        (self.bytes()? == expected.as_bytes()).then_some(())
    }
}

/// Fields, as they are written.
fn fields(parts: &[&[u8]]) -> Vec<u8> {
    let mut all = Vec::new();
    for part in parts {
        all.extend_from_slice(&u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes());
        all.extend_from_slice(part);
    }
    all
}

/// A public key's blob.
pub(super) fn public_key(blob: &[u8]) -> Option<PublicKey> {
    let mut all = Fields(blob);
    all.is(ED25519)?;
    let key = all.bytes()?.try_into().ok()?;
    all.0.is_empty().then_some(PublicKey(key))
}

fn public_key_blob(key: &PublicKey) -> Vec<u8> {
    fields(&[ED25519.as_bytes(), &key.0])
}

/// Whether this is the text of a private key.
pub(super) fn is_private_key(text: &str) -> bool {
    text.trim_start().starts_with(PRIVATE_KEY.begin)
}

/// A private key's file: seed and public key.
pub(super) fn private_key(text: &str) -> Result<([u8; 32], PublicKey), String> {
    let bytes = PRIVATE_KEY.open(text)?;
    let rest = bytes.strip_prefix(PRIVATE_KEY_MAGIC).ok_or("it is no OpenSSH private key")?;
    let mut all = Fields(rest);
    let cut = || "the OpenSSH private key is cut off".to_owned();
    let cipher = all.bytes().ok_or_else(cut)?;
    if cipher != b"none" {
        return Err(format!(
            "it is protected by a password, which is not asked for here: sign with `ssh-keygen -Y sign -n {SSH_NAMESPACE} -f KEY FILE`, which asks"
        ));
    }
    let mut pair = || {
        let (_kdf, _options) = (all.bytes()?, all.bytes()?);
        let one = all.number()? == 1;
        let _public = all.bytes()?;
        let mut secret = Fields(all.bytes()?);
        let same = secret.number()? == secret.number()?;
        (one && same).then_some(())?;
        secret.is(ED25519)?;
        let public: [u8; 32] = secret.bytes()?.try_into().ok()?;
        let (seed, _) = split::<32>(secret.bytes()?)?;
        Some((seed, PublicKey(public)))
    };
    pair().ok_or_else(|| {
        "it is not one Ed25519 key: other kinds are not read (`ssh-keygen -t ed25519`)".into()
    })
}

/// What is signed: the hash of the file, and what it is signed for.
fn signed(hash_name: &str, hash: &[u8]) -> Vec<u8> {
    let parts = fields(&[SSH_NAMESPACE.as_bytes(), b"", hash_name.as_bytes(), hash]);
    [SIGNATURE_MAGIC, &parts].concat()
}

/// A signature's file.
pub(super) fn sign(key: &PublicKey, sign: impl Fn(&[u8]) -> [u8; 64], bytes: &[u8]) -> String {
    let signature = sign(&signed("sha512", &Sha512::digest(bytes)));
    let parts = fields(&[
        &public_key_blob(key),
        SSH_NAMESPACE.as_bytes(),
        b"",
        b"sha512",
        &fields(&[ED25519.as_bytes(), &signature]),
    ]);
    SIGNATURE.close(&[SIGNATURE_MAGIC, &SIGNATURE_VERSION.to_be_bytes(), &parts].concat())
}

/// Which of the keys this signature of these bytes is by.
pub(super) fn verify<'k>(text: &str, bytes: &[u8], keys: &'k Keys) -> Result<&'k Signer, String> {
    let blob = SIGNATURE.open(text)?;
    let rest = blob.strip_prefix(SIGNATURE_MAGIC).ok_or("it is no SSH signature")?;
    let mut all = Fields(rest);
    let mut parts = || {
        let known = all.number()? == SIGNATURE_VERSION;
        let parts = (all.bytes()?, all.bytes()?, all.bytes()?, all.bytes()?, all.bytes()?);
        (known && all.0.is_empty()).then_some(parts)
    };
    let (key, namespace, _reserved, hash, signature) = parts().ok_or("it is cut off or damaged")?;
    if namespace != SSH_NAMESPACE.as_bytes() {
        return Err(format!(
            "it was made for {:?} and not for {SSH_NAMESPACE:?}: sign with -n {SSH_NAMESPACE}",
            String::from_utf8_lossy(namespace)
        ));
    }
    let key = public_key(key).ok_or("it is by a key that is no Ed25519 key")?;
    let signer = keys.by_key(key).ok_or_else(|| {
        format!("it is by {}, which is not among the required keys", fingerprint(&key))
    })?;
    let message = match hash {
        b"sha512" => signed("sha512", &Sha512::digest(bytes)),
        b"sha256" => signed("sha256", &Sha256::digest(bytes)),
        _ => return Err("it is over a hash that this host does not know".into()),
    };
    let mut all = Fields(signature);
    let signature = all.is(ED25519).and_then(|()| all.bytes()).ok_or("it is cut off or damaged")?;
    if !key.verifies(&message, signature) {
        return Err(format!("it names the key of {}, and is not for this file", signer.name));
    }
    Ok(signer)
}

/// As `ssh-keygen -l` prints it.
pub(super) fn fingerprint(key: &PublicKey) -> String {
    let digest = encode(&Sha256::digest(public_key_blob(key)));
    format!("SSH key SHA256:{}", digest.trim_end_matches('='))
}
