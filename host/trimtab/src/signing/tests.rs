//! Signatures against the programs and libraries that others use.

use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::process::Command;
use trimtab_signature::minisign::generate;

const BYTES: &[u8] = b"a plugin's bytes";

fn room() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let plugin = dir.path().join("web.wasm");
    std::fs::write(&plugin, BYTES).unwrap();
    (dir, plugin)
}

fn keys(text: &str) -> Keys {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("alice.pub");
    std::fs::write(&file, text).unwrap();
    Keys::read(&file).unwrap()
}

fn sign(secret: &str, plugin: &Path, bytes: &[u8]) {
    let (file, text) = SecretKey::parse(secret).unwrap().sign(plugin, bytes, 1);
    std::fs::write(file, text).unwrap();
}

#[test]
fn a_file_is_verified_by_the_key_that_signed_it_and_by_no_other() {
    let (_dir, plugin) = room();
    let (secret, public) = generate().unwrap();
    assert!(verify(&plugin, BYTES, &keys(&public)).unwrap_err().contains("not signed"));
    sign(&secret, &plugin, BYTES);
    assert_eq!(verify(&plugin, BYTES, &keys(&public)).unwrap().name, "alice");
    let other = generate().unwrap().1;
    assert!(verify(&plugin, BYTES, &keys(&other)).unwrap_err().contains("not among"));
}

#[test]
fn one_altered_byte_of_file_signature_or_comment_is_refused() {
    let (_dir, plugin) = room();
    let (secret, public) = generate().unwrap();
    let keys = keys(&public);
    sign(&secret, &plugin, BYTES);
    for at in 0..BYTES.len() {
        let mut altered = BYTES.to_vec();
        altered[at] ^= 1;
        assert!(verify(&plugin, &altered, &keys).unwrap_err().contains("not for this file"));
    }
    let [file, _] = files(&plugin);
    let good = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, good.replace("web.wasm", "wed.wasm")).unwrap();
    assert!(verify(&plugin, BYTES, &keys).unwrap_err().contains("trusted comment was altered"));
    for length in 0..good.len() - 4 {
        std::fs::write(&file, &good[..length]).unwrap();
        assert!(verify(&plugin, BYTES, &keys).is_err(), "{length}");
    }
}

/// The two are implementations of the same form by other people.
#[test]
fn what_is_signed_here_verifies_with_minisign_verify() {
    let (_dir, plugin) = room();
    let (secret, public) = generate().unwrap();
    sign(&secret, &plugin, BYTES);
    let [file, _] = files(&plugin);
    let theirs = minisign_verify::PublicKey::decode(&public).unwrap();
    let signature =
        minisign_verify::Signature::decode(&std::fs::read_to_string(file).unwrap()).unwrap();
    theirs.verify(BYTES, &signature, false).unwrap();
    assert!(theirs.verify(b"another", &signature, false).is_err());
}

/// By minisign itself: the example of its own documentation, in the legacy form.
#[test]
fn a_legacy_signature_by_minisign_verifies() {
    let dir = tempfile::tempdir().unwrap();
    let plugin = dir.path().join("test");
    let [file, _] = files(&plugin);
    std::fs::write(
        file,
        "untrusted comment: signature from minisign secret key
RWQf6LRCGA9i59SLOFxz6NxvASXDJeRtuZykwQepbDEGt87ig1BNpWaVWuNrm73YiIiJbq71Wi+dP9eKL8OC351vwIasSSbXxwA=
trusted comment: timestamp:1555779966\tfile:test
QtKMXWyYcwdpZAlPF7tE2ENJkRd1ujvKjlj1m9RtHTBnZPa5WKU5uWRs5GoP5M/VqE81QFuMKI5k/SfNQUaOAA==
",
    )
    .unwrap();
    let keys = keys("RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3\n");
    assert_eq!(verify(&plugin, b"test", &keys).unwrap().name, "alice");
    assert!(verify(&plugin, b"Test", &keys).is_err());
}

fn ssh_keygen(arguments: &[&std::ffi::OsStr], input: &[u8]) -> Option<bool> {
    use std::io::Write as _;
    let mut child = Command::new("ssh-keygen")
        .args(arguments)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .ok()?;
    child.stdin.take()?.write_all(input).ok()?;
    Some(child.wait().ok()?.success())
}

#[test]
fn ssh_keygen_and_this_host_verify_each_others_signatures() {
    let (dir, plugin) = room();
    let key = dir.path().join("key");
    let made = ssh_keygen(
        &["-q", "-t", "ed25519", "-N", "", "-C", "bob", "-f"]
            .map(std::ffi::OsStr::new)
            .into_iter()
            .chain([key.as_os_str()])
            .collect::<Vec<_>>(),
        b"",
    );
    if made.is_none() {
        eprintln!("skipped: ssh-keygen is not installed");
        return;
    }
    let public = std::fs::read_to_string(dir.path().join("key.pub")).unwrap();
    let keys = keys(&public);
    assert_eq!(keys.names(), ["bob"]);
    let by_them = |namespace: &str| {
        let [_, file] = files(&plugin);
        let _ = std::fs::remove_file(file);
        let arguments = ["-Y", "sign", "-n", namespace, "-f"].map(std::ffi::OsStr::new);
        let all: Vec<_> =
            arguments.into_iter().chain([key.as_os_str(), plugin.as_os_str()]).collect();
        assert_eq!(ssh_keygen(&all, b""), Some(true));
    };
    by_them(SSH_NAMESPACE);
    assert_eq!(verify(&plugin, BYTES, &keys).unwrap().name, "bob");
    assert!(verify(&plugin, b"another", &keys).unwrap_err().contains("not for this file"));
    by_them("file");
    assert!(verify(&plugin, BYTES, &keys).unwrap_err().contains("was made for \"file\""));

    sign(&std::fs::read_to_string(&key).unwrap(), &plugin, BYTES);
    let allowed = dir.path().join("allowed");
    std::fs::write(&allowed, format!("bob@example.com namespaces=\"{SSH_NAMESPACE}\" {public}"))
        .unwrap();
    let [_, signature] = files(&plugin);
    let mut arguments: Vec<&std::ffi::OsStr> =
        ["-Y", "verify", "-n", SSH_NAMESPACE, "-I", "bob@example.com", "-f"]
            .map(std::ffi::OsStr::new)
            .into();
    arguments.extend([allowed.as_os_str(), "-s".as_ref(), signature.as_os_str()]);
    assert_eq!(ssh_keygen(&arguments, BYTES), Some(true));
    assert_eq!(ssh_keygen(&arguments, b"another"), Some(false));
    assert_eq!(Keys::read(&allowed).unwrap().names(), ["bob@example.com"]);
}

#[test]
fn a_key_file_that_is_wrong_is_refused_whole_and_says_where() {
    let good = generate().unwrap().1;
    let ssh = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJjC8dUqF1fQk7q0TqKp1zjyvSLR3RmAwZPd4x8l3b6f";
    for (line, says) in [
        ("nonsense", "2: "),
        ("ssh-rsa AAAA bob", "the key is damaged"),
        ("ssh-dss AAAAB3NzaC1kc3M= bob", "ssh-dss"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----", "private key"),
        (&format!("bob namespaces=\"git\" {ssh}"), "list it for \"git\""),
        (&format!("bob valid-before=\"20300101\" {ssh}"), "are not kept here"),
    ] {
        let text = good.lines().nth(1).unwrap().to_owned() + "\n" + line;
        let error = keys::parse(&text, "file").unwrap_err();
        assert!(error.contains(says), "{line}: {error}");
    }
    let dir = tempfile::tempdir().unwrap();
    assert!(Keys::read(dir.path()).unwrap_err().to_string().contains("no key"));
}

#[test]
fn a_key_with_a_password_is_refused_with_a_way_out() {
    let (secret, _) = generate().unwrap();
    let line = secret.lines().nth(1).unwrap();
    let mut bytes = STANDARD.decode(line).unwrap();
    bytes[2..4].copy_from_slice(b"Sc");
    let locked = format!("untrusted comment: x\n{}\n", STANDARD.encode(&bytes));
    assert!(SecretKey::parse(&locked).err().unwrap().contains("password"));
}
