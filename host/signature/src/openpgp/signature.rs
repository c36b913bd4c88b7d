//! A detached OpenPGP signature: one armoured block with one packet in it.

use super::hex;
use crate::armour::Armour;
use crate::{Fault, SIGNATURE_BYTES_AT_MOST};
use pgp::packet::{Packet, PacketParser, SignatureType, SignatureVersion, SubpacketData};
use pgp::ser::Serialize as _;
use pgp::types::{Fingerprint, KeyId};

/// The line that a signature begins with.
pub const BEGIN: &str = "-----BEGIN PGP SIGNATURE-----";

const ARMOUR: Armour =
    Armour { begin: BEGIN, end: "-----END PGP SIGNATURE-----", headers: true, line: 64 };

/// A signature as it stands in a file, before anything of it is believed.
#[derive(Debug)]
pub struct Signature {
    pub(super) packet: pgp::packet::Signature,
    pub(super) made: u64,
}

impl Signature {
    /// Reads a signature.
    ///
    /// # Errors
    /// It is damaged, more than one, or of a kind that is not read here.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        if text.len() > SIGNATURE_BYTES_AT_MOST {
            return Err(Fault::Damaged(format!("more than {SIGNATURE_BYTES_AT_MOST} bytes")));
        }
        let bytes = ARMOUR.open(text)?;
        let damaged = |what: &str| Fault::Damaged(what.to_owned());
        let mut packets = PacketParser::new(&bytes[..]);
        let first = packets.next().ok_or_else(|| damaged("it is empty"))?;
        let packet = first.map_err(|error| Fault::Damaged(crate::printable(&error.to_string())))?;
        let again = packet.to_bytes().map_err(|error| Fault::Damaged(error.to_string()))?;
        let Packet::Signature(packet) = packet else {
            return Err(damaged("it holds something else than a signature"));
        };
        if packets.next().is_some() {
            return Err(damaged("it holds more than one signature"));
        }
        // What was read is written again: another spelling of the same is refused, and so is
        // anything behind the packet.
        if again != bytes {
            return Err(damaged("it has another spelling than it should"));
        }
        Self::check(packet)
    }

    fn check(packet: pgp::packet::Signature) -> Result<Self, Fault> {
        let unsupported = |what: &str| Fault::Unsupported(what.to_owned());
        let config = match packet.config() {
            Some(config)
                if matches!(config.version(), SignatureVersion::V4 | SignatureVersion::V6) =>
            {
                config
            }
            _ => return Err(unsupported("of an OpenPGP version other than 4 and 6")),
        };
        if config.typ() != SignatureType::Binary {
            return Err(unsupported("of an OpenPGP type other than one over a document's bytes"));
        }
        // What is not signed may name the key and nothing else.
        for part in config.unhashed_subpackets() {
            let names_key = matches!(
                part.data,
                SubpacketData::IssuerKeyId(_) | SubpacketData::IssuerFingerprint(_)
            );
            if !names_key || part.is_critical {
                return Err(Fault::Damaged("it says something that it does not sign".into()));
            }
        }
        for part in config.hashed_subpackets().filter(|part| part.is_critical) {
            if matches!(
                part.data,
                SubpacketData::Other(..)
                    | SubpacketData::Experimental(..)
                    | SubpacketData::Notation(_)
            ) {
                return Err(unsupported("bound to a condition that is not known here"));
            }
        }
        let made = packet.created().ok_or_else(|| Fault::Damaged("it has no time".into()))?;
        let made = u64::from(made.as_secs());
        let signature = Self { packet, made };
        if signature.fingerprints().is_empty() && signature.ids().is_empty() {
            return Err(unsupported("by a key that it does not name"));
        }
        Ok(signature)
    }

    /// The key that it names.
    pub fn issuer(&self) -> String {
        match (self.fingerprints().first(), self.ids().first()) {
            (Some(fingerprint), _) => super::named(fingerprint),
            (None, Some(id)) => format!("OpenPGP key {}", hex(id.as_ref())),
            (None, None) => "a key that it does not name".to_owned(),
        }
    }

    /// Whether everything that it says of its key is true of this one.
    pub(super) fn names(&self, fingerprint: &Fingerprint, id: KeyId) -> bool {
        self.fingerprints().into_iter().all(|named| named == fingerprint)
            && self.ids().into_iter().all(|named| *named == id)
    }

    fn fingerprints(&self) -> Vec<&Fingerprint> {
        self.packet.issuer_fingerprint()
    }

    fn ids(&self) -> Vec<&KeyId> {
        self.packet.issuer_key_id()
    }
}
