//! References, and what the configuration makes of them, in every place that has an image.

use super::*;
use trimtab_sdk::json;

const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

#[test]
fn a_reference_is_read_as_registries_clients_read_it() {
    let digested = format!("a/b@{DIGEST}");
    for (text, registry, repository, tag, digest) in [
        ("nginx", "docker.io", "library/nginx", None, None),
        ("nginx:1.27", "docker.io", "library/nginx", Some("1.27"), None),
        ("team/app", "docker.io", "team/app", None, None),
        ("docker.io/nginx", "docker.io", "library/nginx", None, None),
        ("index.docker.io/nginx:1", "docker.io", "library/nginx", Some("1"), None),
        ("docker.io/library/nginx", "docker.io", "library/nginx", None, None),
        ("localhost/a", "localhost", "a", None, None),
        ("localhost:5000/a:b", "localhost:5000", "a", Some("b"), None),
        ("registry.example.com:5000/a/b/c", "registry.example.com:5000", "a/b/c", None, None),
        ("Registry.Example.com/a", "registry.example.com", "a", None, None),
        ("10.0.0.1/a", "10.0.0.1", "a", None, None),
        ("[2001:db8::1]:5000/a", "[2001:db8::1]:5000", "a", None, None),
        ("a__b/c-d--e.f:V_1.0-x", "docker.io", "a__b/c-d--e.f", Some("V_1.0-x"), None),
        (&digested, "docker.io", "a/b", None, Some(DIGEST)),
    ] {
        let read = Reference::read(text).unwrap_or_else(|why| panic!("{text}: {why}"));
        assert_eq!(
            (&*read.registry, &*read.repository, read.tag, read.digest),
            (registry, repository, tag, digest),
            "{text}"
        );
    }
    let both = format!("nginx:1@{DIGEST}");
    let both = Reference::read(&both).unwrap();
    assert_eq!((both.tag, both.digest), (Some("1"), Some(DIGEST)));
}

#[test]
fn what_a_runtime_would_refuse_is_no_reference() {
    use NoReference as No;
    let long = format!("registry.example.com/{}", "a/".repeat(130)) + "a";
    let tag = format!("a:{}", "x".repeat(129));
    for (text, why) in [
        ("", No::Repository),
        ("Nginx", No::UpperCase),
        ("registry.example.com/Team/app", No::UpperCase),
        ("Team/app", No::Registry),
        ("registry.example.com/", No::Repository),
        ("registry.example.com//a", No::Repository),
        ("a//b", No::Repository),
        ("a/b/", No::Repository),
        ("-a", No::Repository),
        ("a_", No::Repository),
        ("a..b", No::Repository),
        ("a___b", No::Repository),
        ("a b", No::Repository),
        ("https://registry.example.com/a", No::Registry),
        ("registry_.example.com/a", No::Registry),
        ("registry.example.com:port/a", No::Registry),
        ("a:", No::Tag),
        ("a:.b", No::Tag),
        ("a:b c", No::Tag),
        (&tag, No::Tag),
        ("a@sha256:12", No::Digest),
        ("a@", No::Digest),
        ("a@sha256:0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef", No::Digest),
        ("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", No::Repository),
        (&long, No::Length),
    ] {
        // A part in upper case before the first slash counts as a registry's name.
        let found = Reference::read(text);
        if text == "Team/app" {
            assert_eq!(found.unwrap().registry, "team");
        } else {
            assert_eq!(found, Err(why), "{text}");
        }
    }
}

fn id(kind: usize) -> ObjectId<'static> {
    let (group, kind, _) = pods::KINDS[kind];
    ObjectId { group, version: "v1", kind, namespace: "shop", name: "a" }
}

/// `CONTROL` of what is denied, `warn CONTROL` of what is told, of a pod with this image.
fn told(image: &str, configuration: &str) -> Vec<String> {
    let text = format!(r#"{{"spec":{{"containers":[{{"name":"a","image":{image:?}}}]}}}}"#);
    let configuration = json::parse(configuration.as_bytes()).expect("a configuration");
    let reasons = review(&id(0), &json::parse(text.as_bytes()).expect("a pod"), &configuration);
    let warned = reasons.warned.into_iter().map(|reason| format!("warn {}", reason.control));
    reasons.denied.into_iter().map(|reason| reason.control).chain(warned).collect()
}

#[test]
fn a_tag_that_moves_is_denied_unless_a_digest_holds_it() {
    for image in ["nginx", "nginx:latest", "registry.example.com:5000/a"] {
        assert_eq!(told(image, "null"), ["image-tag"], "{image}");
    }
    assert!(told("nginx:1.27.1", "null").is_empty());
    assert!(told(&format!("nginx:latest@{DIGEST}"), "null").is_empty());
    let patterns = r#"{"mutableTags":["latest","*-dev","main"]}"#;
    assert_eq!(told("nginx:2-dev", patterns), ["image-tag"]);
    assert_eq!(told("nginx:main", patterns), ["image-tag"]);
    assert!(told("nginx:2", patterns).is_empty());
    assert_eq!(told("Nginx", "null"), ["image-reference"]);
    assert_eq!(told("", "null"), ["image-reference"]);
}

#[test]
fn a_digest_is_asked_for_as_the_configuration_says() {
    assert_eq!(told("nginx:1", r#"{"digest":"wanted"}"#), ["warn image-digest"]);
    assert_eq!(told("nginx", r#"{"digest":"required"}"#), ["image-tag", "image-digest"]);
    assert!(told(&format!("nginx@{DIGEST}"), r#"{"digest":"required"}"#).is_empty());
}

#[test]
fn registries_are_allowed_by_whole_parts_of_a_name() {
    let allowed = r#"{"allowed":["registry.example.com","ghcr.io/team/","nginx","*.internal:5000","docker.io/team"]}"#;
    for image in [
        "registry.example.com/a:1",
        "registry.example.com/deep/er:1",
        "ghcr.io/team:1",
        "ghcr.io/team/app:1",
        "nginx:1",
        "docker.io/library/nginx:1",
        "eu.internal:5000/a:1",
        "team/app:1",
    ] {
        assert!(told(image, allowed).is_empty(), "{image}");
    }
    for image in [
        "registry.example.com.evil.example/a:1",
        "registry.example.com:5000/a:1",
        "ghcr.io/team-evil/app:1",
        "ghcr.io/other/team/app:1",
        "nginx-evil:1",
        "evil/nginx:1",
        "eu.internal/a:1",
    ] {
        assert_eq!(told(image, allowed), ["image-registry"], "{image}");
    }
    let denied = r#"{"denied":["docker.io"]}"#;
    assert_eq!(told("nginx:1", denied), ["image-registry"]);
    assert!(told("ghcr.io/a/b:1", denied).is_empty());
    let exempt = r#"{"denied":["docker.io"],"exemptImages":["docker.io/library/busybox"]}"#;
    assert!(told("busybox", exempt).is_empty());
    assert!(told("nginx", r#"{"exemptNamespaces":["sh*"]}"#).is_empty());
}

#[test]
fn a_configuration_that_cannot_be_read_denies_and_names_the_place() {
    for bad in [
        r#"{"allow":[]}"#,
        r#"{"digest":"yes"}"#,
        r#"{"allowed":["registry.example.com/a:1"]}"#,
        r#"{"allowed":["registry.example.com/*"]}"#,
        r#"{"allowed":["https://registry.example.com"]}"#,
        r#"{"allowed":[1]}"#,
    ] {
        assert_eq!(told("nginx:1", bad), ["configuration"], "{bad}");
    }
}

#[test]
fn every_image_of_every_template_is_looked_at() {
    for kind in 0..pods::KINDS.len() {
        let pod = r#"{"spec":{"containers":[{"name":"a","image":"a"}],"initContainers":[{"name":"b","image":"b"}],
            "ephemeralContainers":[{"name":"c","image":"c"}],"volumes":[{"name":"v","image":{"reference":"d"}}]}}"#;
        let text = pods::KINDS[kind]
            .2
            .iter()
            .rev()
            .fold(pod.to_owned(), |inner, name| format!("{{{name:?}:{inner}}}"));
        let reasons = review(&id(kind), &json::parse(text.as_bytes()).unwrap(), &Value::Null);
        let paths: Vec<_> =
            reasons.denied.iter().map(|it| it.path.clone().unwrap().to_string()).collect();
        let ends = [
            "initContainers/[name=b]/image",
            "containers/[name=a]/image",
            "ephemeralContainers/[name=c]/image",
            "volumes/[name=v]/image/reference",
        ];
        assert_eq!(paths.len(), ends.len(), "{paths:?}");
        for (path, end) in paths.iter().zip(ends) {
            assert!(path.ends_with(end), "{path}");
        }
    }
}

#[test]
fn images_of_an_unknown_kind_are_told_as_not_seen() {
    let farm = json::parse(br#"{"spec":{"containers":[{"image":"a"}]}}"#).unwrap();
    let id = ObjectId { group: "example.com", kind: "Farm", ..id(0) };
    let reasons = review(&id, &farm, &Value::Null);
    assert_eq!(reasons.warned[0].control, "pod-template-not-seen");
}
