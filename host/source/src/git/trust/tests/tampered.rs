//! Bytes that somebody changed: of a commit, of its signature, of the mirror.

use super::super::*;
use super::formats::with_signature;
use super::world::*;
use std::collections::HashMap;

/// A repository in which some objects' bytes are others than their ids stand for.
struct Forged {
    real: gix::Repository,
    bytes: HashMap<Commit, Vec<u8>>,
}

impl Objects for Forged {
    fn header(&self, id: gix::ObjectId) -> Result<Option<(gix::objs::Kind, u64)>, String> {
        self.real.header(id)
    }

    fn bytes(&self, id: gix::ObjectId) -> Result<Vec<u8>, String> {
        match self.bytes.get(&id.into()) {
            Some(bytes) => Ok(bytes.clone()),
            None => self.real.bytes(id),
        }
    }
}

/// Objects that are whatever they are said to be, under the hash of that.
struct Made(HashMap<gix::ObjectId, Vec<u8>>);

impl Made {
    fn commit(bytes: &[u8]) -> (Self, Commit) {
        let kind = gix::objs::Kind::Commit;
        let id = gix::objs::compute_hash(gix::hash::Kind::Sha1, kind, bytes).unwrap();
        (Self(HashMap::from([(id, bytes.to_vec())])), id.into())
    }
}

impl Objects for Made {
    fn header(&self, id: gix::ObjectId) -> Result<Option<(gix::objs::Kind, u64)>, String> {
        Ok(self.0.get(&id).map(|bytes| (gix::objs::Kind::Commit, bytes.len() as u64)))
    }

    fn bytes(&self, id: gix::ObjectId) -> Result<Vec<u8>, String> {
        self.0.get(&id).cloned().ok_or_else(|| "it is not there".into())
    }
}

/// Keys of each kind.
fn keys(world: &World) -> Vec<Key> {
    let ssh = [("ed25519", ""), ("ecdsa", "256"), ("rsa", "2048")];
    let ssh = ssh.map(|(kind, bits)| world.ssh(kind, bits, kind));
    let gpg = ["ed25519", "rsa2048", "nistp256"];
    let gpg = gpg.map(|kind| world.gpg(kind, kind, "sign", NOW - 9 * DAY, "never"));
    ssh.into_iter().chain(gpg).collect()
}

/// Two bits of every byte: once as a mirror that was changed, whose hash tells; once as a commit of
/// its own with a hash of its own, whose signature has to tell.
#[test]
fn one_altered_bit_of_a_commit_or_of_its_signature_is_refused() {
    let Some(world) = World::new() else { return };
    for key in keys(&world) {
        match key.is_ssh() {
            true => world.allow(&[world.line(&key, "")], &[]),
            false => world.allow(&[], &[&key]),
        }
        let (kind, commit) = (&key.name, world.change("a.yaml", &key.name, Some(&key)));
        let wanted = world.verification(Mode::Head);
        let good = world.raw("commit", commit);
        let (made, id) = Made::commit(&good);
        let target = |commit| Target { commit, tag: Tag::None };
        let now = moment(NOW + DAY);
        assert_eq!(id, commit);
        assert_eq!(word(&verify(&made, &target(id), None, &wanted, now)), "ok", "{kind}");
        for at in 0..good.len() {
            for bit in [at % 8, (at + 3) % 8] {
                let mut bytes = good.clone();
                bytes[at] ^= 1 << bit;
                let (made, id) = Made::commit(&bytes);
                let judged = verify(&made, &target(id), None, &wanted, now);
                assert!(
                    judged.is_err(),
                    "{kind}: bit {bit} of byte {at} was altered and nobody saw"
                );
                if bit == at % 8 {
                    let real = world.objects();
                    let forged = Forged { real, bytes: HashMap::from([(commit, bytes)]) };
                    let judged = verify(&forged, &target(commit), None, &wanted, now);
                    assert_eq!(word(&judged), "object_tampered");
                }
            }
        }
    }
}

#[test]
fn a_signature_from_another_commit_or_spelled_otherwise_does_not_count() {
    let Some(world) = World::new() else { return };
    let alice = world.ssh("ed25519", "", "alice");
    let bob = world.gpg("bob", "ed25519", "sign", NOW - 9 * DAY, "never");
    world.allow(&[world.line(&alice, "")], &[&bob]);
    for key in [&alice, &bob] {
        let signed = world.raw("commit", world.change("a.yaml", &key.name, Some(key)));
        let plain = world.raw("commit", world.change("a.yaml", "other", None));
        let text = String::from_utf8(signed.clone()).unwrap();
        let (head, rest) = text.split_once("\ngpgsig ").unwrap();
        let (signature, message) = rest.split_once("\n\n").unwrap();
        let signature = signature.replace("\n ", "\n");
        let original = format!("{head}\n\n{message}");
        let put = |bytes: &str, signature: &str| with_signature(bytes.as_bytes(), signature);
        assert_eq!(put(&original, &signature), signed);
        let (begin, end) =
            (signature.lines().next().unwrap(), signature.trim_end().lines().last().unwrap());
        let twice = format!("{}\n{}", signature.trim_end(), signature.trim_end());
        let sha256 = text.replacen("\ngpgsig ", "\ngpgsig-sha256 ", 1);
        let aside = text.replacen("\ngpgsig ", "\ngpgsig-sha256 hidden words\ngpgsig ", 1);
        let again = text.replacen(
            "\ngpgsig ",
            &format!("\ngpgsig {}\ngpgsig ", signature.trim_end().replace('\n', "\n ")),
            1,
        );
        let line = signature.lines().nth(3).unwrap();
        let blank = signature.replace(line, &format!("{} {}", &line[..9], &line[9..]));
        let cases: [(&str, Vec<u8>, &str); 11] = [
            ("transplanted", with_signature(&plain, &signature), "signature_over_other_bytes"),
            (
                "garbage behind",
                put(&original, &format!("{}\nx", signature.trim_end())),
                "signature_damaged",
            ),
            ("garbage before", put(&original, &format!("x\n{signature}")), "signature_damaged"),
            ("blank inside", put(&original, &blank), "signature_damaged"),
            ("cut", put(&original, &signature.replace(end, "")), "signature_damaged"),
            ("empty", put(&original, &format!("{begin}\n{end}")), "signature_damaged"),
            ("no signature", put(&original, "hello"), "signature_damaged"),
            ("two in one header", put(&original, &twice), "signature_damaged"),
            ("two headers", again.into_bytes(), "signature_ambiguous"),
            ("words that nobody signs", aside.into_bytes(), "signature_ambiguous"),
            ("for another hash alone", sha256.into_bytes(), "signature_ambiguous"),
        ];
        for (name, bytes, code) in cases {
            assert_ne!(bytes, signed, "{name}");
            let commit = world.store("commit", &bytes);
            let judged = judge(&world, commit, &world.verification(Mode::Head));
            assert_eq!(word(&judged), code, "{name}: {judged:?}");
        }
        // In the message it is words.
        let spoken = world.store("commit", &[&plain[..], signature.as_bytes()].concat());
        assert_eq!(
            word(&judge(&world, spoken, &world.verification(Mode::Head))),
            "signature_missing"
        );
        // An empty line at its end, as GitHub has it, is not garbage.
        let spaced = text.replacen(&format!("{end}\n"), &format!("{end}\n \n"), 1);
        let commit = world.store("commit", spaced.as_bytes());
        assert!(world.git_trusts("verify-commit", commit));
        assert_eq!(word(&judge(&world, commit, &world.verification(Mode::Head))), "ok");
    }
}

#[test]
fn a_commit_of_another_form_is_refused_and_a_large_one_is_not_read() {
    let Some(world) = World::new() else { return };
    let alice = world.ssh("ed25519", "", "alice");
    world.allow(&[world.line(&alice, "")], &[]);
    let good = String::from_utf8(world.raw("commit", world.commit(Some(&alice)))).unwrap();
    let tree = good.lines().next().unwrap();
    for bytes in [
        good.replacen("tree ", "tee ", 1),
        good.replacen(tree, "tree 12", 1),
        good.replacen("\nauthor", &format!("\n{tree}\nauthor"), 1),
        good.replacen("\ngpgsig", "\nparent 1111111111111111111111111111111111111111\ngpgsig", 1),
        good.replacen("\nauthor ", "\nwriter ", 1),
        good.replacen("\ncommitter ", "\ncomitter ", 1),
        String::new(),
        "tree".into(),
    ] {
        let commit = world.store("commit", bytes.as_bytes());
        let judged = judge(&world, commit, &world.verification(Mode::Head));
        assert_eq!(word(&judged), "object_damaged", "{bytes}: {judged:?}");
    }
    let large = format!("{good}{}", "x".repeat(crate::limits::MAX_COMMIT_BYTES as usize));
    let commit = world.store("commit", large.as_bytes());
    assert_eq!(word(&judge(&world, commit, &world.verification(Mode::Head))), "trust_limit");
    let blob: Commit = world.run("git", &["hash-object", "-w", "--stdin"], b"x").parse().unwrap();
    assert_eq!(word(&judge(&world, blob, &world.verification(Mode::Head))), "object_unreadable");
    let missing: Commit = "1".repeat(40).parse().unwrap();
    assert_eq!(word(&judge(&world, missing, &world.verification(Mode::Head))), "object_missing");
}

/// A file of the mirror that somebody replaced by another object, compressed as it should be.
#[test]
fn an_object_that_was_put_in_anothers_place_in_the_mirror_is_not_believed() {
    let Some(world) = World::new() else { return };
    let alice = world.ssh("ed25519", "", "alice");
    world.allow(&[world.line(&alice, "")], &[]);
    let good = world.change("a.yaml", "1", Some(&alice));
    let next = world.change("a.yaml", "2", Some(&alice));
    let file = |commit: Commit| {
        let id = commit.to_string();
        world.path("repo/.git/objects").join(&id[..2]).join(&id[2..])
    };
    let real = std::fs::read(file(next)).unwrap();
    let put = |bytes: &[u8]| {
        std::fs::remove_file(file(next)).unwrap();
        std::fs::write(file(next), bytes).unwrap();
    };
    put(&std::fs::read(file(good)).unwrap());
    assert_eq!(word(&judge(&world, next, &world.verification(Mode::Head))), "object_tampered");
    let step = judge_step(&world.objects(), &[good], next, None);
    assert!(
        matches!(&step, Step::Refused(refused) if refused.reason.code() == "object_tampered"),
        "{step:?}"
    );
    put(&real);
    // Git's own way to show one object for another.
    let one = world.change("a.yaml", "3", None);
    world.git(&["replace", &one.to_string(), &good.to_string()]);
    assert!(world.git_trusts("verify-commit", one), "Git shows the other one");
    let judged = judge(&world, one, &world.verification(Mode::Head));
    assert!(judged.is_err(), "{judged:?}");
}

/// The checksum of the armour sees most of it; here there is none. Two bits of every byte.
#[test]
fn one_altered_bit_within_the_packet_of_an_openpgp_signature_is_refused() {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    let Some(world) = World::new() else { return };
    for kind in ["ed25519", "rsa2048", "nistp256"] {
        let key = world.gpg(kind, kind, "sign", NOW - 9 * DAY, "never");
        world.allow(&[], &[&key]);
        let text = String::from_utf8(world.raw("commit", world.commit(Some(&key)))).unwrap();
        let (head, rest) = text.split_once("\ngpgsig ").unwrap();
        let (signature, message) = rest.split_once("\n\n").unwrap();
        let plain = format!("{head}\n\n{message}");
        let lines = signature.lines().map(str::trim_start);
        let body: String = lines.skip(2).take_while(|line| !line.starts_with(['=', '-'])).collect();
        let packet = STANDARD.decode(body).unwrap();
        let wanted = world.verification(Mode::Head);
        let judge = |packet: &[u8]| {
            let (begin, end) = ("-----BEGIN PGP SIGNATURE-----", "-----END PGP SIGNATURE-----");
            let armoured = format!("{begin}\n\n{}\n{end}", STANDARD.encode(packet));
            let (made, id) = Made::commit(&with_signature(plain.as_bytes(), &armoured));
            let target = Target { commit: id, tag: Tag::None };
            verify(&made, &target, None, &wanted, moment(NOW + DAY))
        };
        assert_eq!(word(&judge(&packet)), "ok", "{kind}");
        for at in 0..packet.len() {
            for bit in [at % 8, (at + 3) % 8] {
                let mut packet = packet.clone();
                packet[at] ^= 1 << bit;
                let judged = judge(&packet);
                assert!(judged.is_err(), "{kind}: bit {bit} of byte {at}: {judged:?}");
            }
        }
        for length in 0..packet.len() {
            assert!(judge(&packet[..length]).is_err(), "{kind}: cut at {length}");
        }
        assert!(judge(&[&packet[..], &packet].concat()).is_err(), "{kind}: twice");
        assert!(judge(&[&packet[..], &[0]].concat()).is_err(), "{kind}: more behind");
    }
}
