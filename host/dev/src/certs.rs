//! Keys and certificates for one control plane: made new at each start, trusted by nobody else.
//!
//! Takes: a folder that only its owner can enter. Gives: the files that kube-apiserver reads
//! there, and the administrator's credentials in memory. The authority's own key is never written:
//! once the [`Pki`] is made nobody can issue another certificate.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::Error;

/// The names and addresses that the API server is called by; 10.0.0.1 is the first address of
/// the service range in `flags.rs`.
const SERVER_NAMES: [&str; 7] = [
    "127.0.0.1",
    "localhost",
    "10.0.0.1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// What the files in the folder are called.
pub(crate) const CA_CERT: &str = "ca.crt";
pub(crate) const SERVER_CERT: &str = "apiserver.crt";
pub(crate) const SERVER_KEY: &str = "apiserver.key";
pub(crate) const ACCOUNTS_PRIVATE: &str = "service-accounts.key";
pub(crate) const ACCOUNTS_PUBLIC: &str = "service-accounts.pub";

/// What a client needs.
#[derive(Debug)]
pub(crate) struct Pki {
    pub(crate) ca_pem: String,
    pub(crate) ca: CertificateDer<'static>,
    pub(crate) admin: Identity,
}

/// A client certificate and its key.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) cert_pem: String,
    pub(crate) key_pem: String,
    pub(crate) cert: CertificateDer<'static>,
    pub(crate) key: PrivateKeyDer<'static>,
}

impl Pki {
    /// Makes everything and writes what the servers read into `folder`: ECDSA P-256 throughout,
    /// files in PEM and for their owner alone.
    ///
    /// The key pair that signs service-account tokens is kept when `folder` has one from an
    /// earlier start, so that tokens stored in the cluster stay valid.
    pub(crate) fn create(folder: &Path) -> Result<Self, Error> {
        let ca = CertifiedIssuer::self_signed(authority()?, KeyPair::generate()?)?;

        let server_key = KeyPair::generate()?;
        let names = SERVER_NAMES.map(str::to_owned);
        let mut server = leaf("kube-apiserver", ExtendedKeyUsagePurpose::ServerAuth, names)?;
        server.use_authority_key_identifier_extension = true;
        let server = server.signed_by(&server_key, &ca)?;

        let admin_key = KeyPair::generate()?;
        let mut admin = leaf("trimtab-dev-admin", ExtendedKeyUsagePurpose::ClientAuth, [])?;
        // The group that Kubernetes binds to everything before any RBAC object exists.
        admin.distinguished_name.push(DnType::OrganizationName, "system:masters");
        admin.use_authority_key_identifier_extension = true;
        let admin = admin.signed_by(&admin_key, &ca)?;

        write_private(&folder.join(CA_CERT), &ca.pem())?;
        write_private(&folder.join(SERVER_CERT), &server.pem())?;
        write_private(&folder.join(SERVER_KEY), &server_key.serialize_pem())?;
        if !folder.join(ACCOUNTS_PRIVATE).exists() {
            let accounts = KeyPair::generate()?;
            write_private(&folder.join(ACCOUNTS_PUBLIC), &accounts.public_key_pem())?;
            write_private(&folder.join(ACCOUNTS_PRIVATE), &accounts.serialize_pem())?;
        }
        Ok(Self {
            ca_pem: ca.pem(),
            ca: ca.der().clone(),
            admin: Identity {
                cert_pem: admin.pem(),
                key_pem: admin_key.serialize_pem(),
                cert: admin.der().clone(),
                key: PrivatePkcs8KeyDer::from(admin_key.serialize_der()).into(),
            },
        })
    }
}

fn authority() -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "trimtab-dev");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(params)
}

fn leaf(
    name: &str,
    usage: ExtendedKeyUsagePurpose,
    names: impl IntoIterator<Item = String>,
) -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::new(names.into_iter().collect::<Vec<_>>())?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![usage];
    Ok(params)
}

/// Writes a file that only its owner can read, whole or not at all: a reader never sees half.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), Error> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    let unfinished = Path::new(&unfinished);
    let write = || {
        let _ = fs::remove_file(unfinished);
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(unfinished)?;
        file.write_all(text.as_bytes())?;
        fs::rename(unfinished, path)
    };
    write().map_err(Error::io("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn every_file_is_for_its_owner_alone_and_the_authoritys_key_is_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let pki = Pki::create(folder.path()).unwrap();
        let mut names = Vec::new();
        for entry in fs::read_dir(folder.path()).unwrap() {
            let entry = entry.unwrap();
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600);
            names.push(entry.file_name().into_string().unwrap());
        }
        names.sort();
        let expected = [SERVER_CERT, SERVER_KEY, CA_CERT, ACCOUNTS_PRIVATE, ACCOUNTS_PUBLIC];
        assert_eq!(names, expected);
        assert!(pki.ca_pem.starts_with("-----BEGIN CERTIFICATE-----"));
    }

    #[test]
    fn a_second_start_trusts_a_new_authority_and_keeps_the_tokens_key() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = || fs::read_to_string(folder.path().join(ACCOUNTS_PRIVATE)).unwrap();
        let first = (Pki::create(folder.path()).unwrap().ca_pem, tokens());
        let second = (Pki::create(folder.path()).unwrap().ca_pem, tokens());
        assert_ne!(first.0, second.0);
        assert_eq!(first.1, second.1);
    }
}
