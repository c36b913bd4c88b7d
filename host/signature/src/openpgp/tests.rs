//! What gpg does not make: keys of version 6, and certificates that say less than they should.

use super::*;
use pgp::composed::{
    ArmorOptions, DetachedSignature, KeyType, SecretKeyParamsBuilder, SignedPublicKey,
    SignedSecretKey, SubkeyParamsBuilder,
};
use pgp::crypto::hash::HashAlgorithm;
use pgp::types::{KeyVersion, Password, SigningKey, Timestamp};

const BORN: u64 = 1_700_000_000;
const DAY: u64 = 86_400;
const BYTES: &[u8] = b"a commit's bytes";

struct Random;

impl rand::RngCore for Random {
    fn next_u32(&mut self) -> u32 {
        rand::Rng::r#gen::<[u8; 4]>(self)
            .into_iter()
            .fold(0, |all, byte| all << 8 | u32::from(byte))
    }

    fn next_u64(&mut self) -> u64 {
        u64::from(self.next_u32()) << 32 | u64::from(self.next_u32())
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        getrandom::fill(bytes).unwrap();
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), rand::Error> {
        self.fill_bytes(bytes);
        Ok(())
    }
}

impl rand::CryptoRng for Random {}

fn key(
    version: KeyVersion,
    user: Option<&str>,
    signs: bool,
    subkey_signs: Option<bool>,
) -> SignedSecretKey {
    let born = Timestamp::from_secs(BORN as u32);
    let kind = if version == KeyVersion::V6 { KeyType::Ed25519 } else { KeyType::Ed25519Legacy };
    let mut params = SecretKeyParamsBuilder::default();
    params
        .version(version)
        .key_type(kind.clone())
        .can_certify(true)
        .can_sign(signs)
        .created_at(born);
    if let Some(user) = user {
        params.primary_user_id(user.to_owned());
    }
    if let Some(signs) = subkey_signs {
        let mut subkey = SubkeyParamsBuilder::default();
        subkey.version(version).key_type(kind).can_sign(signs).created_at(born);
        params.subkey(subkey.build().unwrap());
    }
    params.build().unwrap().generate(Random).unwrap()
}

fn signed(by: &impl SigningKey) -> Signature {
    let password = Password::empty();
    let made =
        DetachedSignature::sign_binary_data(Random, by, &password, HashAlgorithm::Sha256, BYTES)
            .unwrap();
    let text = made.to_armored_string(ArmorOptions::default()).unwrap();
    Signature::parse(&text).unwrap()
}

fn certificates(key: &SignedPublicKey) -> Vec<Certificate> {
    read(key.to_armored_string(ArmorOptions::default()).unwrap().as_bytes()).unwrap()
}

/// Signatures carry the time of the machine: the clock that judges is the machine's too.
fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.unwrap().as_secs()
}

#[test]
fn keys_of_version_6_count_with_a_user_or_without() {
    for user in [None, Some("alice <alice@example.com>")] {
        let key = key(KeyVersion::V6, user, true, Some(true));
        let public = certificates(&key.to_public_key());
        for signature in [signed(&key.primary_key), signed(&key.secret_subkeys[0].key)] {
            let vouched = verify(&public, &signature, BYTES, now()).unwrap();
            assert_eq!(vouched.certificate.principals(now()), Vec::from_iter(user));
            assert_eq!(vouched.fingerprint().len(), 64);
            let other = verify(&public, &signature, b"other bytes", now()).unwrap_err();
            assert_eq!(other.code(), "signature_over_other_bytes");
        }
    }
}

#[test]
fn a_key_signs_only_if_its_owner_says_so_and_a_subkey_says_it_too() {
    let code = |public: &SignedPublicKey, signature: &Signature| {
        verify(&certificates(public), signature, BYTES, now())
            .map_or_else(|fault| fault.code(), |_| "ok")
    };
    for version in [KeyVersion::V4, KeyVersion::V6] {
        let key = key(version, Some("a"), false, Some(true));
        let public = key.to_public_key();
        let by_subkey = signed(&key.secret_subkeys[0].key);
        assert_eq!(code(&public, &signed(&key.primary_key)), "key_not_for_signing");
        assert_eq!(code(&public, &by_subkey), "ok");

        let mut unbound = public.clone();
        unbound.public_subkeys[0].signatures.clear();
        assert_eq!(code(&unbound, &by_subkey), "key_weak");

        // Taken from another certificate, whose owner never said that it was theirs.
        let mut thief = self::key(version, Some("thief"), true, None).to_public_key();
        thief.public_subkeys = public.public_subkeys.clone();
        assert_eq!(code(&thief, &by_subkey), "key_weak");

        let mut unsaid = public.clone();
        unsaid.details.users.clear();
        unsaid.details.direct_signatures.clear();
        assert_eq!(code(&unsaid, &by_subkey), "key_weak");
    }
    let encrypts = key(KeyVersion::V4, Some("a"), true, Some(false));
    let signature = signed(&encrypts.secret_subkeys[0].key);
    assert_eq!(code(&encrypts.to_public_key(), &signature), "key_not_for_signing");
}

#[test]
fn a_key_that_is_not_born_yet_signs_nothing() {
    let key = key(KeyVersion::V4, Some("a"), true, None);
    let public = certificates(&key.to_public_key());
    let early = verify(&public, &signed(&key.primary_key), BYTES, BORN - DAY).unwrap_err();
    assert!(matches!(early.code(), "key_weak" | "key_not_yet_valid"), "{early}");
}

/// What a stranger writes is parsed before anything is known of it.
#[test]
fn no_bytes_make_the_parser_of_signatures_panic() {
    let key = key(KeyVersion::V6, None, true, None);
    let password = Password::empty();
    let made = DetachedSignature::sign_binary_data(
        Random,
        &key.primary_key,
        &password,
        HashAlgorithm::Sha512,
        BYTES,
    );
    let packet = pgp::packet::Packet::from(made.unwrap().signature);
    let good = pgp::ser::Serialize::to_bytes(&packet).unwrap();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    };
    let mut parsed = 0;
    for _ in 0..20_000 {
        let mut bytes = good.clone();
        for _ in 0..1 + next(4) {
            let at = next(bytes.len());
            match next(3) {
                0 => bytes[at] = next(256) as u8,
                1 => bytes.truncate(at + 1),
                _ => bytes.insert(at, next(256) as u8),
            }
        }
        let text = format!("{BEGIN}\n\n{}\n-----END PGP SIGNATURE-----\n", crate::encode(&bytes));
        parsed += usize::from(Signature::parse(&text).is_ok());
    }
    assert!(parsed > 0, "some are well-formed, so that what is behind the parser is reached too");
}
