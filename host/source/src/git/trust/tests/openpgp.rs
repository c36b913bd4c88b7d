//! Every kind of OpenPGP key, and every way in which a signature by one does not count.

use super::super::*;
use super::formats::{Row, compare};
use super::world::*;

#[test]
fn every_kind_of_openpgp_key_is_judged_as_git_judges_it_or_stricter() {
    let Some(world) = World::new() else { return };
    let (made, long_ago) = (NOW - 100 * DAY, NOW - 900 * DAY);
    let mut allowed = Vec::new();
    let mut rows = Vec::new();
    let mut row = |name, key: &Key, ours, gits| {
        rows.push(Row { name, commit: world.commit(Some(key)), ours, gits });
    };
    for kind in ["ed25519", "rsa2048", "rsa3072", "nistp256", "nistp384", "nistp521"] {
        let key = world.gpg(kind, kind, "sign", made, "10y");
        row(kind, &key, "ok", true);
        allowed.push(key);
    }

    let stranger = world.gpg("stranger", "ed25519", "sign", made, "10y");
    row("a key that nobody allowed", &stranger, "signature_by_unknown_key", false);

    let old = world.gpg("old", "ed25519", "sign", long_ago, "30d");
    row(
        "made while the key was valid, which it is no more",
        &old.at(long_ago + DAY),
        "key_expired",
        false,
    );
    allowed.push(old);

    let revoked = world.gpg("revoked", "ed25519", "sign", made, "10y");
    row("by a key that is revoked", &revoked, "key_revoked", false);
    let certificate = world.path("signs/openpgp-revocs.d").join(format!("{}.rev", revoked.name));
    let text = std::fs::read_to_string(certificate).unwrap().replace(":-----", "-----");
    world.gpg_at(NOW, &["--import"], text.as_bytes());
    allowed.push(revoked);

    let sub = world.gpg("sub", "ed25519", "cert", made, "10y");
    world.gpg_at(made, &["--quick-add-key", &sub.name, "ed25519", "sign", "5y"], b"");
    row("by a subkey", &sub, "ok", true);
    allowed.push(sub);

    let short = world.gpg("short", "ed25519", "sign", long_ago, "never");
    world.gpg_at(long_ago, &["--quick-add-key", &short.name, "ed25519", "sign", "30d"], b"");
    let subkey = world.subkeys(&short)[0].clone();
    row("by a subkey that expired", &short.by(&subkey).at(long_ago + DAY), "key_expired", false);
    row("by its primary key, which did not", &short.by(&short.name), "ok", true);
    allowed.push(short);

    let lost = world.gpg("lost", "ed25519", "sign", made, "never");
    world.gpg_at(made, &["--quick-add-key", &lost.name, "ed25519", "sign", "5y"], b"");
    let subkey = world.subkeys(&lost)[0].clone();
    row("by a subkey that is revoked", &lost.by(&subkey), "key_revoked", false);
    let answers = b"key 1\nrevkey\ny\n1\nstolen\n\ny\nsave\n";
    let ask = ["--no-batch", "--command-fd", "0", "--no-tty", "--edit-key", &lost.name];
    world.gpg_at(NOW, &ask, answers);
    allowed.push(lost);

    let plain = world.gpg("plain", "ed25519", "sign", made, "10y");
    row(
        "over SHA-1, which Git lets pass",
        &plain.with(&["--digest-algo", "SHA1"]),
        "signature_weak_hash",
        true,
    );
    row(
        "with a time limit that is over",
        &plain.at(NOW - 10 * DAY).with(&["--default-sig-expire", "2d"]),
        "signature_expired",
        false,
    );
    row(
        "with a time limit that is not over",
        &plain.with(&["--default-sig-expire", "9d"]),
        "ok",
        true,
    );
    row(
        "in the future, which Git lets pass",
        &plain.at(NOW + 9 * DAY),
        "signature_from_the_future",
        true,
    );
    row(
        "with a condition that nobody here knows",
        &plain.with(&["--sig-notation", "'!must@example.com=yes'"]),
        "signature_unsupported",
        false,
    );
    row("with a note", &plain.with(&["--sig-notation", "note@example.com=yes"]), "ok", true);
    row("with a comment in its armour", &plain.with(&["--comment", "by.hand"]), "ok", true);
    allowed.push(plain);

    world.gpg_at(
        made,
        &["--cert-digest-algo", "SHA1", "--quick-gen-key", "claims", "ed25519", "sign", "10y"],
        b"",
    );
    let claims = world.gpg_named("claims");
    row("a key whose own claims are over SHA-1, which Git lets pass", &claims, "key_weak", true);
    allowed.push(claims);

    let weak = world.gpg("weak", "rsa1024", "sign", made, "10y");
    row("RSA of 1024 bits, which Git lets pass", &weak, "key_weak", true);
    allowed.push(weak);
    let dsa = world.gpg("dsa", "dsa2048", "sign", made, "10y");
    row("DSA, which Git lets pass", &dsa, "key_weak", true);
    allowed.push(dsa);
    let brainpool = world.gpg("brainpool", "brainpoolP256r1", "sign", made, "10y");
    row("a curve that is not checked here", &brainpool, "key_weak", true);
    allowed.push(brainpool);

    world.allow(&[], &allowed.iter().collect::<Vec<_>>());
    compare(&world, &rows);
    let accepted = judge(&world, rows[0].commit, &world.verification(Mode::Head)).unwrap();
    assert_eq!(accepted.signer.principal, "ed25519 <ed25519@example.com>");
    assert_eq!(accepted.signer.fingerprint, allowed[0].name);
}

#[test]
fn a_key_that_its_owner_took_from_signing_does_not_count_for_it() {
    let Some(world) = World::new() else { return };
    let key = world.gpg("alice", "ed25519", "sign", NOW - 100 * DAY, "never");
    let commit = world.commit(Some(&key));
    world.allow(&[], &[&key]);
    assert_eq!(word(&judge(&world, commit, &world.verification(Mode::Head))), "ok");
    let ask = ["--no-batch", "--command-fd", "0", "--no-tty", "--edit-key", &key.name];
    world.gpg_at(NOW, &ask, b"change-usage\nS\nQ\nsave\n");
    world.allow(&[], &[&key]);
    assert_eq!(
        word(&judge(&world, commit, &world.verification(Mode::Head))),
        "key_not_for_signing"
    );
}

#[test]
fn an_older_export_beside_a_newer_one_takes_no_revocation_back_and_no_extension() {
    let Some(world) = World::new() else { return };
    let made = NOW - 100 * DAY;
    let short = world.gpg("short", "ed25519", "sign", made, "10d");
    let lost = world.gpg("lost", "ed25519", "sign", made, "never");
    let folder = world.path("folder");
    std::fs::create_dir(&folder).unwrap();
    let export = |to: &str| {
        let text = world.gpg_at(NOW, &["--armor", "--export", &short.name, &lost.name], b"");
        std::fs::write(folder.join(to), text).unwrap();
    };
    let commits = [&short.at(made + DAY), &lost].map(|key| world.commit(Some(key)));
    export("m");
    world.gpg_at(NOW, &["--quick-set-expire", &short.name, "10y"], b"");
    let certificate = world.path("signs/openpgp-revocs.d").join(format!("{}.rev", lost.name));
    let text = std::fs::read_to_string(certificate).unwrap().replace(":-----", "-----");
    world.gpg_at(NOW, &["--import"], text.as_bytes());
    let signers = vec![SignerSource::OpenPgp(folder.clone())];
    let wanted = Verification { signers, ..world.verification(Mode::Head) };
    let words = || commits.map(|commit| word(&judge(&world, commit, &wanted)));
    assert_eq!(words(), ["key_expired", "ok"]);
    for newer in ["a", "z"] {
        export(newer);
        assert_eq!(words(), ["ok", "key_revoked"], "{newer}");
        std::fs::remove_file(folder.join(newer)).unwrap();
    }
}

#[test]
fn keys_are_read_from_one_armoured_file_several_blocks_a_folder_and_binary() {
    let Some(world) = World::new() else { return };
    let made = NOW - 100 * DAY;
    let keys = ["alice", "bob"].map(|user| world.gpg(user, "ed25519", "sign", made, "10y"));
    let commits = keys.each_ref().map(|key| world.commit(Some(key)));
    let export = |arguments: &[&str], to: &std::path::Path| {
        let to = to.to_str().unwrap();
        let mut all = vec!["--output", to, "--yes"];
        all.extend(arguments);
        world.gpg_at(NOW, &all, b"");
    };
    let names = keys.each_ref().map(|key| key.name.as_str());
    let one = world.path("one.asc");
    export(&["--armor", "--export", names[0], names[1]], &one);
    let binary = world.path("both.gpg");
    export(&["--export", names[0], names[1]], &binary);
    let folder = world.path("folder");
    std::fs::create_dir(&folder).unwrap();
    for name in names {
        export(&["--armor", "--export", name], &folder.join(name));
    }
    let blocks = world.path("blocks.asc");
    let texts = names.map(|name| std::fs::read_to_string(folder.join(name)).unwrap());
    std::fs::write(&blocks, format!("Alice:\n{}\nBob:\n{}", texts[0], texts[1])).unwrap();
    for path in [&one, &binary, &folder, &blocks] {
        let signers = vec![SignerSource::OpenPgp(path.clone())];
        let wanted = Verification { signers, ..world.verification(Mode::Head) };
        for commit in commits {
            assert_eq!(word(&judge(&world, commit, &wanted)), "ok", "{}", path.display());
        }
    }
    std::fs::write(folder.join("junk"), "no key").unwrap();
    let secret = world.path("secret.asc");
    export(&["--armor", "--export-secret-keys", names[0]], &secret);
    let cut = world.path("cut.asc");
    std::fs::write(&cut, &texts[0][..texts[0].len() / 2]).unwrap();
    let missing = world.path("missing");
    for (path, says) in
        [(&folder, "junk"), (&secret, "PRIVATE KEY"), (&cut, "damaged"), (&missing, "No such file")]
    {
        let signers = vec![SignerSource::OpenPgp(path.clone())];
        let wanted = Verification { signers, ..world.verification(Mode::Head) };
        let refused = judge(&world, commits[0], &wanted).unwrap_err();
        assert_eq!(refused.reason.code(), "signers_unreadable");
        assert!(refused.to_string().contains(says), "{says}: {refused}");
    }
}
