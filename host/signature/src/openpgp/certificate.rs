//! Certificates: a primary key, who it is, its subkeys, and what its owner says of all that.
//!
//! Everything in a certificate is its owner's claim by a signature of the primary key: expiry, what
//! a key is for, revocation. Claims by others are passed over. Where claims differ the strictest
//! holds: a revocation counts even if it cannot be checked, an expiry if one of the newest claims
//! has it.

use super::signature::Signature;
use super::{expiry, hex, in_force, named, weak_hash, weak_key};
use crate::armour::Armour;
use crate::{CLOCK_SKEW_SECONDS, Fault, printable};
use pgp::packet::{
    Packet, PacketParser, PublicKey, PublicSubkey, Signature as Claim, SignatureType,
    SubpacketData, UserId,
};
use pgp::types::{Fingerprint, KeyDetails, KeyVersion, Tag, VerifyingKey};

const BEGIN: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----";
const ARMOUR: Armour =
    Armour { begin: BEGIN, end: "-----END PGP PUBLIC KEY BLOCK-----", headers: true, line: 64 };

/// A certificate as its file holds it.
#[derive(Clone, Debug)]
pub struct Certificate {
    primary: PublicKey,
    fingerprint: Fingerprint,
    direct: Vec<Claim>,
    users: Vec<(UserId, Vec<Claim>)>,
    subkeys: Vec<Subkey>,
}

#[derive(Clone, Debug)]
pub(super) struct Subkey {
    key: PublicSubkey,
    fingerprint: Fingerprint,
    claims: Vec<Claim>,
}

/// A key of a certificate that a signature names.
#[derive(Clone, Copy)]
pub(super) enum Part<'k> {
    Primary(&'k Certificate),
    Sub(&'k Subkey),
}

impl<'k> Part<'k> {
    pub(super) fn fingerprint(self) -> &'k Fingerprint {
        match self {
            Part::Primary(certificate) => &certificate.fingerprint,
            Part::Sub(subkey) => &subkey.fingerprint,
        }
    }
}

/// The certificates of a file: armoured, in one block or several, or binary.
///
/// # Errors
/// A sentence: it holds none, a private key, or something that cannot be read.
pub fn read(bytes: &[u8]) -> Result<Vec<Certificate>, String> {
    let mut all = Vec::new();
    match std::str::from_utf8(bytes) {
        Ok(text) if text.contains("-----BEGIN ") => {
            let mut rest = text;
            while let Some(at) = rest.find("-----BEGIN ") {
                rest = &rest[at..];
                if !rest.starts_with(BEGIN) {
                    let line = rest.lines().next().unwrap_or_default();
                    return Err(format!(
                        "{:?} is in it: put public keys there alone (`gpg --armor --export KEY`)",
                        printable(line)
                    ));
                }
                let damaged = |fault: Fault| format!("a key block is damaged ({fault})");
                let (body, after) = ARMOUR.first(rest).map_err(damaged)?;
                all.extend(parse(&ARMOUR.body(body).map_err(damaged)?)?);
                rest = after;
            }
        }
        _ => all.extend(parse(bytes)?),
    }
    if all.is_empty() {
        return Err("no OpenPGP public key is in it (`gpg --armor --export KEY`)".into());
    }
    Ok(all)
}

/// Where a signature that follows belongs.
enum Last {
    Primary,
    User,
    Subkey,
    /// A picture of somebody: passed over with what is said of it.
    Attribute,
}

fn parse(bytes: &[u8]) -> Result<Vec<Certificate>, String> {
    let mut all: Vec<Certificate> = Vec::new();
    let mut last = Last::Primary;
    for packet in PacketParser::new(bytes) {
        let packet = packet.map_err(|error| {
            format!("it is no OpenPGP key, or damaged ({})", printable(&error.to_string()))
        })?;
        match (packet, all.last_mut()) {
            (Packet::PublicKey(primary), _) => {
                if !matches!(primary.version(), KeyVersion::V4 | KeyVersion::V6) {
                    return Err("a key of an OpenPGP version other than 4 and 6 is in it".into());
                }
                let fingerprint = primary.fingerprint();
                let (direct, users, subkeys) = (Vec::new(), Vec::new(), Vec::new());
                all.push(Certificate { primary, fingerprint, direct, users, subkeys });
                last = Last::Primary;
            }
            (Packet::SecretKey(_) | Packet::SecretSubkey(_), _) => {
                return Err("a private key is in it: keep it elsewhere, and export its public part (`gpg --armor --export KEY`)".into());
            }
            // What GnuPG notes for itself in its own files.
            (Packet::Trust(_) | Packet::Marker(_) | Packet::Padding(_), _) => {}
            (Packet::UserId(user), Some(key)) => {
                key.users.push((user, Vec::new()));
                last = Last::User;
            }
            (Packet::UserAttribute(_), Some(_)) => last = Last::Attribute,
            (Packet::PublicSubkey(key), Some(certificate)) => {
                let fingerprint = key.fingerprint();
                certificate.subkeys.push(Subkey { key, fingerprint, claims: Vec::new() });
                last = Last::Subkey;
            }
            (Packet::Signature(claim), Some(certificate)) => {
                let claims = match last {
                    Last::Primary => Some(&mut certificate.direct),
                    Last::User => certificate.users.last_mut().map(|(_, claims)| claims),
                    Last::Subkey => certificate.subkeys.last_mut().map(|key| &mut key.claims),
                    Last::Attribute => None,
                };
                claims.into_iter().for_each(|claims| claims.push(claim.clone()));
            }
            _ => return Err("it holds something else than OpenPGP public keys".into()),
        }
    }
    Ok(all)
}

impl Certificate {
    /// The primary key's fingerprint in capital hexadecimal digits.
    pub fn fingerprint(&self) -> String {
        hex(self.fingerprint.as_bytes())
    }

    /// All user IDs that stand in it, in force or not.
    pub fn users(&self) -> impl Iterator<Item = String> + '_ {
        self.users.iter().map(|(user, _)| printable(&String::from_utf8_lossy(user.id())))
    }

    /// Who it is by its owner's word: user IDs that are in force at this time, as they stand.
    pub fn principals(&self, now: u64) -> Vec<String> {
        self.users
            .iter()
            .filter(|(user, claims)| self.newest_of_user(user, claims, now).is_some())
            .map(|(user, _)| printable(&String::from_utf8_lossy(user.id())))
            .collect()
    }

    /// The key of this certificate that made the signature, by what the signature says.
    pub(super) fn find(&self, signature: &Signature) -> Option<Part<'_>> {
        if signature.names(&self.fingerprint, self.primary.legacy_key_id()) {
            return Some(Part::Primary(self));
        }
        let named =
            |subkey: &&Subkey| signature.names(&subkey.fingerprint, subkey.key.legacy_key_id());
        self.subkeys.iter().find(named).map(Part::Sub)
    }

    /// Whether this key of it vouches for these bytes.
    pub(super) fn vouches(
        &self,
        part: Part<'_>,
        signature: &Signature,
        bytes: &[u8],
        now: u64,
    ) -> Result<(), Fault> {
        let key = named(part.fingerprint());
        if let Some(hash) = weak_hash(&signature.packet) {
            return Err(Fault::WeakHash { key, hash });
        }
        self.primary_counts(signature.made, now)?;
        match part {
            Part::Primary(_) => {
                self.primary_signs(now)?;
                over(&self.primary, signature, bytes, &key)?;
            }
            Part::Sub(subkey) => {
                self.subkey_signs(subkey, signature.made, now)?;
                over(&subkey.key, signature, bytes, &key)?;
            }
        }
        // Said last: what a signature says of its own time is true only if it is good.
        if signature.made > now + CLOCK_SKEW_SECONDS {
            return Err(Fault::FromTheFuture { key, at: signature.made });
        }
        match expiry(signature.made, signature.packet.signature_expiration_time()) {
            Some(at) if now >= at => Err(Fault::SignatureExpired { key, at }),
            _ => Ok(()),
        }
    }

    /// Strength, revocation and time of the primary key, on which everything else rests.
    fn primary_counts(&self, made: u64, now: u64) -> Result<(), Fault> {
        let key = named(&self.fingerprint);
        if let Some(why) = weak_key(self.primary.public_params()) {
            return Err(Fault::WeakKey { key, why });
        }
        if self.direct.iter().any(|claim| claim.typ() == Some(SignatureType::KeyRevocation)) {
            return Err(Fault::KeyRevoked { key });
        }
        let newest = self.newest(now);
        if newest.is_empty() {
            let why = "no claim of its owner about it is in force, or each is over MD5 or SHA-1";
            return Err(Fault::WeakKey { key, why: why.into() });
        }
        let born = u64::from(self.primary.created_at().as_secs());
        let ends =
            newest.iter().filter_map(|claim| expiry(born, claim.key_expiration_time())).min();
        in_time(key, born, ends, made, now)
    }

    fn primary_signs(&self, now: u64) -> Result<(), Fault> {
        let newest = self.newest(now);
        let flags = newest
            .iter()
            .filter(|claim| has_flags(claim))
            .max_by_key(|claim| claim.created().map(|made| made.as_secs()));
        if flags.is_some_and(|claim| claim.key_flags().sign()) {
            return Ok(());
        }
        let why = "its owner says that it is for other uses";
        Err(Fault::NotForSigning { key: named(&self.fingerprint), why: why.into() })
    }

    fn subkey_signs(&self, subkey: &Subkey, made: u64, now: u64) -> Result<(), Fault> {
        let key = named(&subkey.fingerprint);
        if let Some(why) = weak_key(subkey.key.public_params()) {
            return Err(Fault::WeakKey { key, why });
        }
        if subkey.claims.iter().any(|claim| claim.typ() == Some(SignatureType::SubkeyRevocation)) {
            return Err(Fault::KeyRevoked { key });
        }
        let binding = newest_by(&subkey.claims, now, |claim| {
            claim.typ() == Some(SignatureType::SubkeyBinding)
                && claim.verify_subkey_binding(&self.primary, &subkey.key).is_ok()
        });
        let Some(binding) = binding else {
            let why =
                "nothing that is in force and not over MD5 or SHA-1 binds it to its primary key";
            return Err(Fault::WeakKey { key, why: why.into() });
        };
        let born = u64::from(subkey.key.created_at().as_secs());
        let ends = expiry(born, binding.key_expiration_time());
        in_time(key.clone(), born, ends, made, now)?;
        let why = if !binding.key_flags().sign() {
            "its owner says that it is for other uses"
        } else if !binding.embedded_signature().is_some_and(|back| {
            weak_hash(back).is_none()
                && in_force(back, now)
                && back.verify_primary_key_binding(&subkey.key, &self.primary).is_ok()
        }) {
            "it does not say itself that it belongs to its primary key"
        } else {
            return Ok(());
        };
        Err(Fault::NotForSigning { key, why: why.into() })
    }

    /// The newest claim about each thing that speaks for the primary key: itself, and each user.
    fn newest(&self, now: u64) -> Vec<&Claim> {
        let direct = newest_by(&self.direct, now, |claim| {
            claim.typ() == Some(SignatureType::Key) && claim.verify_key(&self.primary).is_ok()
        });
        let users = self.users.iter();
        direct
            .into_iter()
            .chain(users.filter_map(|(user, claims)| self.newest_of_user(user, claims, now)))
            .collect()
    }

    /// `None` if nothing is in force, or if the owner took the user back.
    fn newest_of_user<'c>(
        &self,
        user: &UserId,
        claims: &'c [Claim],
        now: u64,
    ) -> Option<&'c Claim> {
        let own =
            |claim: &Claim| claim.verify_certification(&self.primary, Tag::UserId, user).is_ok();
        let revoked = claims
            .iter()
            .any(|claim| claim.typ() == Some(SignatureType::CertRevocation) && own(claim));
        if revoked {
            return None;
        }
        newest_by(claims, now, |claim| claim.is_certification() && own(claim))
    }
}

/// The newest claim that is in force, not over a weak hash, and passes.
fn newest_by(claims: &[Claim], now: u64, passes: impl Fn(&Claim) -> bool) -> Option<&Claim> {
    claims
        .iter()
        .filter(|claim| weak_hash(claim).is_none() && in_force(claim, now) && passes(claim))
        .max_by_key(|claim| claim.created().map(|made| made.as_secs()))
}

fn has_flags(claim: &Claim) -> bool {
    claim.config().is_some_and(|config| {
        config.hashed_subpackets().any(|part| matches!(part.data, SubpacketData::KeyFlags(_)))
    })
}

/// A key counts while it is valid both when the signature says that it was made, and now.
fn in_time(key: String, born: u64, ends: Option<u64>, made: u64, now: u64) -> Result<(), Fault> {
    if made < born || now + CLOCK_SKEW_SECONDS < born {
        return Err(Fault::KeyNotYetValid { key, from: born });
    }
    match ends {
        Some(at) if now >= at || made >= at => Err(Fault::KeyExpired { key, at }),
        _ => Ok(()),
    }
}

fn over(
    by: &impl VerifyingKey,
    signature: &Signature,
    bytes: &[u8],
    key: &str,
) -> Result<(), Fault> {
    let same = signature.packet.config().is_some_and(|it| it.pub_alg == by.algorithm());
    if same && signature.packet.verify(by, bytes).is_ok() {
        Ok(())
    } else {
        Err(Fault::OtherBytes { key: key.to_owned() })
    }
}
