//! Every kind of SSH key, and every way in which a signature by one does not count.

use super::super::*;
use super::formats::{Row, compare, with_signature};
use super::world::*;

#[test]
fn every_kind_of_ssh_key_is_judged_as_git_judges_it_or_stricter() {
    let Some(world) = World::new() else { return };
    let kinds =
        [("ed25519", ""), ("ecdsa", "256"), ("ecdsa", "384"), ("rsa", "2048"), ("rsa", "3072")];
    let mut lines = Vec::new();
    let mut rows = Vec::new();
    let unsigned = world.commit(None);
    rows.push(Row { name: "unsigned", commit: unsigned, ours: "signature_missing", gits: false });
    for (kind, bits) in kinds {
        let key = world.ssh(kind, bits, &format!("{kind}{bits}"));
        lines.push(world.line(&key, ""));
        rows.push(Row { name: kind, commit: world.commit(Some(&key)), ours: "ok", gits: true });
    }
    let key = |name: &str| world.ssh("ed25519", "", name);
    let mut row = |name, key: &Key, ours, gits| {
        rows.push(Row { name, commit: world.commit(Some(key)), ours, gits });
    };

    let stranger = key("stranger");
    row("a key that nobody allowed", &stranger, "signature_by_unknown_key", false);

    let other = key("other-purpose");
    lines.push(world.line(&other, "namespaces=\"file,e-mail\""));
    row("allowed for files alone", &other, "key_not_for_signing", false);

    let purposes = key("purposes");
    lines.push(world.line(&purposes, "namespaces=\"file,g?t\""));
    row("allowed by a pattern of purposes", &purposes, "ok", true);

    let wild = key("wild");
    let line = world.line(&wild, "");
    lines.push(line.replace("wild@example.com", "*@example.com,!eve@example.com"));
    row("allowed by a pattern of principals", &wild, "ok", true);

    let over = key("over");
    lines.push(world.line(&over, "valid-before=\"20260601120000Z\""));
    let why = "expired since it signed; Git believes the commit's date, which is its maker's word";
    row(why, &over, "key_expired", true);

    let before = key("before");
    lines.push(world.line(&before, "valid-before=\"20200101\""));
    row("expired before it signed", &before, "key_expired", false);

    let early = key("early");
    lines.push(world.line(&early, "valid-after=\"20300101\""));
    row("not yet valid", &early, "key_not_yet_valid", false);

    let between = key("between");
    lines.push(world.line(&between, "valid-after=\"20200101Z\",valid-before=\"20400101000000Z\""));
    row("between both dates", &between, "ok", true);

    let twice = key("twice");
    lines.push(world.line(&twice, "valid-before=\"20200101\""));
    lines.push(world.line(&twice, ""));
    row("listed twice, and one line holds", &twice, "ok", true);

    world.allow(&lines, &[]);
    compare(&world, &rows);
}

#[test]
fn the_key_decides_who_signed_and_no_name_in_the_commit() {
    let Some(world) = World::new() else { return };
    let alice = world.ssh("ed25519", "", "alice");
    let commit = world.commit(Some(&alice));
    world.allow(&[world.line(&alice, "")], &[]);
    assert!(String::from_utf8(world.raw("commit", commit)).unwrap().contains("Mallory"));
    let accepted = judge(&world, commit, &world.verification(Mode::Head)).unwrap();
    assert_eq!(accepted.signer.principal, "alice@example.com");
    assert_eq!(accepted.signer.format.as_str(), "ssh");
    let keys = world.path("keys").join("alice.pub");
    let listed = world.run("ssh-keygen", &["-l", "-f", keys.to_str().unwrap()], b"");
    assert!(listed.contains(&accepted.signer.fingerprint), "{listed}");
}

#[test]
fn a_list_of_signers_that_cannot_be_kept_in_full_is_refused_whole_with_file_and_line() {
    let Some(world) = World::new() else { return };
    let alice = world.ssh("ed25519", "", "alice");
    let commit = world.commit(Some(&alice));
    let good = world.line(&alice, "");
    let short = world.line(&world.ssh("rsa", "1024", "short"), "");
    for (line, says) in [
        (short.as_str(), "too weak (1024 bits"),
        (&good.replace("example.com ", "example.com no-touch-required "), "is not known"),
        (&good.replace("example.com ", "example.com valid-before=\"soon\" "), "is no time"),
        (&good.replace("example.com ", "example.com valid-before=\"20261301\" "), "is no time"),
        (
            &good
                .replace("example.com ", "example.com valid-after=\"2030\",valid-before=\"2020\" "),
            "is no time",
        ),
        (
            &good.replace(
                "example.com ",
                "example.com valid-after=\"20300101\",valid-before=\"20200101\" ",
            ),
            "is not after",
        ),
        (&good.replace("example.com ", "example.com namespaces=\"git "), "quote is not closed"),
        (&good.replace("ssh-ed25519 ", "ssh-rsa "), "its key is"),
        (&good.replace("AAAA", "AAAB"), "the key"),
        ("alice@example.com", "cut off"),
        ("alice@example.com ssh-ed25519", "cut off"),
        (&good.replace("alice@", "!alice@"), "names nobody"),
    ] {
        world.allow(&[good.clone(), line.to_owned()], &[]);
        let refused = judge(&world, commit, &world.verification(Mode::Head)).unwrap_err();
        assert_eq!(refused.reason.code(), "signers_unreadable", "{line}");
        let text = refused.to_string();
        assert!(text.contains(says) && text.contains("allowed_signers:2: "), "{line}: {text}");
    }
    for nothing in ["", "# nobody"] {
        std::fs::write(world.path("allowed_signers"), nothing).unwrap();
        let file = SignerSource::AllowedSigners(world.path("allowed_signers"));
        let wanted = Verification { signers: vec![file], ..world.verification(Mode::Head) };
        assert!(
            judge(&world, commit, &wanted).unwrap_err().to_string().contains("no key is in them")
        );
    }
}

#[test]
fn a_line_that_nothing_here_checks_counts_for_nobody_and_spoils_no_other() {
    let Some(world) = World::new() else { return };
    let alice = world.ssh("ed25519", "", "alice");
    let p521 = world.ssh("ecdsa", "521", "p521");
    let (by_alice, by_p521) = (world.commit(Some(&alice)), world.commit(Some(&p521)));
    let good = world.line(&alice, "");
    // Git's own ssh-keygen makes no DSA key any more.
    let dsa = [&b"ssh-dss"[..], &[0x11; 128], &[0x12; 20], &[0x13; 128], &[0x14; 128]];
    let dsa = format!("old@example.com ssh-dss {}", base64(&fields(&dsa)));
    let authority = good.replace("example.com ", "example.com cert-authority ");
    let certificate = good
        .replace("ssh-ed25519 ", "ssh-ed25519-cert-v01@openssh.com ")
        .replace("AAAAC3NzaC1lZDI1NTE5", &base64(&fields(&[b"ssh-ed25519-cert-v01@openssh.com"])));
    let useless = [world.line(&p521, ""), dsa, authority, certificate];
    for (line, says) in useless.iter().zip(["nistp521", "ssh-dss", "cert-authority", "cert-v01"]) {
        world.allow(&[line.clone(), good.clone()], &[]);
        let verification = world.verification(Mode::Head);
        judge(&world, by_alice, &verification).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(judge(&world, by_p521, &verification).is_err(), "{line}");
        world.allow(std::slice::from_ref(line), &[]);
        let error = judge(&world, by_alice, &verification).unwrap_err().to_string();
        assert!(error.contains("no key is in them that counts; line 1: "), "{error}");
        assert!(error.contains(says), "{error}");
    }
}

/// Security keys cannot be had here: their answers are made as PROTOCOL.u2f says, and ssh-keygen
/// (through Git) confirms that they are made well.
#[test]
fn the_signature_of_a_security_key_counts_if_somebody_touched_it() {
    use ring::signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
    };
    let Some(world) = World::new() else { return };
    let random = ring::rand::SystemRandom::new();
    let ed25519 = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
    let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    let ecdsa =
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random)
            .unwrap();
    let number = |bytes: &[u8]| {
        let bytes = &bytes[bytes.iter().position(|byte| *byte != 0).unwrap()..];
        if bytes[0] & 0x80 == 0 { bytes.to_vec() } else { [&[0], bytes].concat() }
    };
    let names = ["sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com"];
    let blobs = [
        fields(&[names[0].as_bytes(), ed25519.public_key().as_ref(), b"ssh:"]),
        fields(&[names[1].as_bytes(), b"nistp256", ecdsa.public_key().as_ref(), b"ssh:"]),
    ];
    let lines: Vec<_> =
        (0..2).map(|at| format!("sk@example.com {} {}", names[at], base64(&blobs[at]))).collect();
    world.allow(&lines, &[]);
    let plain = world.raw("commit", world.commit(None));
    for (at, name) in names.iter().enumerate() {
        for (flags, ours, gits) in
            [(1_u8, "ok", true), (5, "ok", true), (0, "signature_unsupported", true)]
        {
            let hash = sha2_512(&plain);
            let message = [b"SSHSIG", &fields(&[b"git", b"", b"sha512", &hash])[..]].concat();
            let counter = 9_u32.to_be_bytes();
            let asked = [&sha2_256(b"ssh:")[..], &[flags], &counter, &sha2_256(&message)].concat();
            let value = if at == 0 {
                ed25519.sign(&asked).as_ref().to_vec()
            } else {
                let pair = ecdsa.sign(&random, &asked).unwrap();
                fields(&[&number(&pair.as_ref()[..32]), &number(&pair.as_ref()[32..])])
            };
            let signature = [&fields(&[name.as_bytes(), &value])[..], &[flags], &counter].concat();
            let head = [&b"SSHSIG"[..], &1_u32.to_be_bytes()].concat();
            let rest = fields(&[&blobs[at], b"git", b"", b"sha512", &signature]);
            let commit =
                world.store("commit", &with_signature(&plain, &armour(&[head, rest].concat())));
            let rows = [Row { name, commit, ours, gits }];
            compare(&world, &rows);
        }
    }
}

fn fields(parts: &[&[u8]]) -> Vec<u8> {
    let each = |part: &&[u8]| [&(part.len() as u32).to_be_bytes()[..], part].concat();
    parts.iter().flat_map(each).collect()
}

fn armour(bytes: &[u8]) -> String {
    let text = base64(bytes);
    let lines: Vec<_> =
        text.as_bytes().chunks(70).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN SSH SIGNATURE-----\n{}\n-----END SSH SIGNATURE-----", lines.join("\n"))
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn sha2_256(bytes: &[u8]) -> Vec<u8> {
    use sha2::Digest as _;
    sha2::Sha256::digest(bytes).to_vec()
}

fn sha2_512(bytes: &[u8]) -> Vec<u8> {
    use sha2::Digest as _;
    sha2::Sha512::digest(bytes).to_vec()
}
