//! What is found, where, and that no reason has a value in it. Values are put together here, so that
//! nobody's scanner takes them for somebody's.

use super::*;
use trimtab_sdk::comparison::encode_base64;
use trimtab_sdk::testing::ReviewCase;

/// Letters and digits without meaning, as many.
fn body(alphabet: &str, length: usize) -> String {
    let letters: Vec<char> = alphabet.chars().collect();
    let (mut state, mut text) = (7_usize, String::new());
    for _ in 0..length {
        state = (state * 1_103_515_245 + 12345) % 2_147_483_648;
        text.push(letters[(state >> 16) % letters.len()]);
    }
    text
}

const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWYZabcdefghijklmnopqrstuvwyz0123456789";
const UPPER: &str = "ABCDEFGHJKLMNPQRSTUVWYZ234567";
const HEX: &str = "0123456789abcdef";

fn pem(label: &str) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", body(ALNUM, 64))
}

fn web_token() -> String {
    format!("eyJ{}.eyJ{}.{}", body(ALNUM, 30), body(ALNUM, 40), body(ALNUM, 43))
}

/// One value of every family, and its shape.
fn samples() -> Vec<(&'static str, String)> {
    let alnum = |prefix: &str, length| format!("{prefix}{}", body(ALNUM, length));
    let hex = |prefix: &str, length| format!("{prefix}{}", body(HEX, length));
    let upper = |prefix: &str, length| format!("{prefix}{}", body(UPPER, length));
    vec![
        ("github-token", alnum("ghp_", 36)),
        ("github-token", alnum("ghs_", 36)),
        ("github-token", alnum("github_pat_", 82)),
        ("gitlab-token", alnum("glpat-", 20)),
        ("aws-access-key", upper("AKIA", 16)),
        ("google-api-key", alnum("AIza", 35)),
        ("google-oauth-secret", alnum("GOCSPX-", 28)),
        ("slack-token", format!("xoxb-{}-{}", body("0123456789", 12), body(ALNUM, 24))),
        (
            "slack-webhook",
            format!(
                "https://hooks.slack.com/services/T{}/B{}/{}",
                body(UPPER, 8),
                body(UPPER, 8),
                body(ALNUM, 24)
            ),
        ),
        ("stripe-key", alnum("sk_live_", 24)),
        ("stripe-key", alnum("rk_test_", 24)),
        ("npm-token", alnum("npm_", 36)),
        ("pypi-token", alnum("pypi-AgEIcHlwaS5vcmc", 60)),
        ("sendgrid-key", format!("SG.{}.{}", body(ALNUM, 22), body(ALNUM, 43))),
        ("digitalocean-token", hex("dop_v1_", 64)),
        ("vault-token", alnum("hvs.", 90)),
        ("anthropic-key", alnum("sk-ant-", 90)),
        ("openai-key", alnum("sk-proj-", 60)),
        ("hugging-face-token", alnum("hf_", 34)),
        ("docker-token", alnum("dckr_pat_", 27)),
        ("shopify-token", hex("shpat_", 32)),
        ("azure-storage-key", format!("AccountKey={}==", body(ALNUM, 86))),
        ("databricks-token", hex("dapi", 32)),
        ("age-key", upper("AGE-SECRET-KEY-1", 58)),
        ("json-web-token", web_token()),
        ("private-key", pem("RSA PRIVATE KEY")),
        ("private-key", pem("OPENSSH PRIVATE KEY")),
        ("private-key", pem("ENCRYPTED PRIVATE KEY")),
        ("private-key", pem("PGP PRIVATE KEY BLOCK")),
        ("private-key", encode_base64(pem("EC PRIVATE KEY").as_bytes())),
        ("url-password", format!("postgres://app:{}@db:5432/app", body(ALNUM, 12))),
    ]
}

#[test]
fn every_family_is_known_alone_within_a_sentence_and_at_its_end() {
    for (shape, value) in samples() {
        for text in [value.clone(), format!("the value: {value}"), format!("a='{value}' and more.")]
        {
            let found: Vec<_> = find(&text).into_iter().map(|found| found.shape).collect();
            assert_eq!(found, [shape], "{shape} in {text}");
        }
    }
}

#[test]
fn what_only_resembles_a_secret_is_none() {
    for text in [
        format!("ghp_{}", body(ALNUM, 20)),
        format!("aghp_{}", body(ALNUM, 36)),
        format!("AKIA{}", body(UPPER, 20)),
        "AKIAIOSFODNN7EXAMPLE".to_owned(),
        format!("ghp_{}", "x".repeat(36)),
        format!("sha256:{}", body(HEX, 64)),
        pem("CERTIFICATE"),
        pem("PUBLIC KEY"),
        encode_base64(pem("CERTIFICATE").as_bytes()),
        "eyJhbGciOi.and.more".to_owned(),
        "https://example.com:8080/a@b:c".to_owned(),
        "https://user@example.com/".to_owned(),
        "postgres://app:$(DB_PASSWORD)@db/app".to_owned(),
        "postgres://app:${DB_PASSWORD}@db/app".to_owned(),
        "postgres://app:<password>@db/app".to_owned(),
        "time: 12:30@noon".to_owned(),
        "xoxb-".to_owned(),
        "SG.short.one".to_owned(),
    ] {
        assert_eq!(find(&text), [], "{text}");
    }
}

fn config_map(key: &str, value: &str) -> String {
    let value = Value::from(value);
    let (mut text, mut quoted) = (Vec::new(), Vec::new());
    trimtab_sdk::json::write(&value, &mut text);
    trimtab_sdk::json::write(&Value::from(key), &mut quoted);
    let (text, key) = (String::from_utf8(text).unwrap(), String::from_utf8(quoted).unwrap());
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a","namespace":"shop"}},"data":{{{key}:{text}}}}}"#
    )
}

#[test]
fn no_reason_has_a_value_or_a_part_of_it() {
    for (_, value) in samples() {
        for object in [config_map("a", &value), config_map("a", &encode_base64(value.as_bytes()))] {
            let ReviewVerdict::Deny(reasons) = ReviewCase::new().desired(object).run::<Secrets>()
            else {
                panic!("not denied")
            };
            let told = format!("{reasons:?}");
            for start in
                (0..value.len().saturating_sub(12)).filter(|start| value.is_char_boundary(*start))
            {
                let part = &value[start..start + 12];
                // What a family has in common is no secret.
                let common = ["-----", "PRIVATE KEY", "hooks.slack", "https://", "services"];
                if !common.iter().any(|common| part.contains(common) || common.contains(part)) {
                    assert!(!told.contains(part), "{part} in {told}");
                }
            }
        }
    }
}

#[test]
fn secrets_are_found_wherever_a_manifest_has_a_text() {
    let token = body(ALNUM, 36);
    let random = body(ALNUM, 24);
    let object = format!(
        r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"a","namespace":"shop",
        "annotations":{{"example.com/token":"{random}","note":"ghp_{token}"}}}},
        "spec":{{"template":{{"spec":{{"containers":[{{"name":"a","args":["--password={random}","--token","{random}","--user","me"],
        "env":[{{"name":"DB_PASSWORD","value":"{random}"}},{{"name":"DB_HOST","value":"db"}},
        {{"name":"URL","value":"https://me:{random}@example.com"}}]}}]}}}}}},
        "status":{{"note":"ghp_{token}"}}}}"#
    );
    let pod = "/spec/template/spec/containers/[name=a]";
    let denied = format!(
        "deny secret-token /metadata/annotations/note
         deny url-password {pod}/env/[name=URL]/value"
    );
    ReviewCase::new().desired(&object).check::<Secrets>(&denied);
    let all = r#"{"tokens":"warn","urlPasswords":"warn"}"#;
    let warned = format!(
        "warn looks-secret /metadata/annotations/example.com~1token
         warn secret-token /metadata/annotations/note
         warn looks-secret {pod}/args/0
         warn looks-secret {pod}/args/2
         warn looks-secret {pod}/env/[name=DB_PASSWORD]/value
         warn url-password {pod}/env/[name=URL]/value"
    );
    ReviewCase::new().desired(&object).configuration(all).check::<Secrets>(&warned);
}

#[test]
fn files_within_a_config_map_are_read_line_by_line() {
    let random = body(ALNUM, 24);
    let file = format!(
        "color: blue\ndb.password={random}\n  \"apiKey\": \"{random}\",\ntoken: ${{TOKEN}}\n"
    );
    ReviewCase::new().desired(config_map("app.properties", &file)).check::<Secrets>(
        "warn looks-secret /data/app.properties
         warn looks-secret /data/app.properties",
    );
    let json = r#"{"guesses":"deny"}"#;
    let case = ReviewCase::new().desired(config_map("token", &random)).configuration(json);
    case.check::<Secrets>("deny looks-secret /data/token");
}

#[test]
fn the_values_of_a_secret_are_told_and_what_is_public_or_sealed_is_not() {
    let value = |text: &str| encode_base64(text.as_bytes());
    let secret = format!(
        r#"{{"apiVersion":"v1","kind":"Secret","metadata":{{"name":"a","namespace":"shop"}},
        "data":{{"a":"{}","tls.crt":"{}","tls.key":"{}","empty":"","later":"{}"}},"stringData":{{"b":"hunter2"}}}}"#,
        value("hunter2"),
        value(&pem("CERTIFICATE")),
        value(&pem("PRIVATE KEY")),
        value("ENC[AES256_GCM,data:abc]"),
    );
    let case = ReviewCase::new().desired(&secret);
    case.check::<Secrets>(
        "warn secret-in-git /data/a
         warn secret-in-git /data/tls.key
         warn secret-in-git /stringData/b",
    );
    let ReviewVerdict::Warn(reasons) = case.run::<Secrets>() else { panic!("no warning") };
    assert!(reasons[1].message.contains("(private-key, "), "{}", reasons[1].message);
    assert!(!format!("{reasons:?}").contains("hunter2"));
    case.clone().configuration(r#"{"secretData":"allow"}"#).check::<Secrets>("allow");
    let sealed = r#"{"apiVersion":"bitnami.com/v1alpha1","kind":"SealedSecret","metadata":{"name":"a"},
        "spec":{"encryptedData":{"password":"AgBy3i4OJSWK1PiTySYZZA9rO43cGDEq1"}}}"#;
    ReviewCase::new().desired(sealed).check::<Secrets>("allow");
}

#[test]
fn what_is_allowed_is_so_by_path_shape_and_fingerprint_together() {
    let object = config_map("a", &format!("ghp_{}", body(ALNUM, 36)));
    let ReviewVerdict::Deny(reasons) = ReviewCase::new().desired(&object).run::<Secrets>() else {
        panic!("not denied")
    };
    let (_, fingerprint) = reasons[0].message.split_once("fingerprint ").unwrap();
    let fingerprint = fingerprint.trim_end_matches(')');
    let check = |configuration: String, expected: &str| {
        let case = ReviewCase::new().desired(&object).configuration(configuration);
        case.check::<Secrets>(expected);
    };
    let denied = "deny secret-token /data/a";
    check(format!(r#"{{"allow":[{{"fingerprints":["{fingerprint}"]}}]}}"#), "allow");
    check(
        format!(r#"{{"allow":[{{"fingerprints":["{fingerprint}"],"paths":["/data/b"]}}]}}"#),
        denied,
    );
    check(format!(r#"{{"salt":"x","allow":[{{"fingerprints":["{fingerprint}"]}}]}}"#), denied);
    check(
        r#"{"allow":[{"paths":["/data/*"],"kinds":["ConfigMap"],"namespaces":["sh*"]}]}"#
            .to_owned(),
        "allow",
    );
    check(r#"{"allow":[{"shapes":["slack-*"]}]}"#.to_owned(), denied);
    check(r#"{"allow":[{}]}"#.to_owned(), "deny configuration");
    check(r#"{"token":"deny"}"#.to_owned(), "deny configuration");
}

#[test]
fn an_object_full_of_secrets_is_told_within_bounds() {
    let lines: String = (0..100).map(|_| format!("ghp_{}\n", body(ALNUM, 36))).collect();
    let ReviewVerdict::Deny(reasons) =
        ReviewCase::new().desired(config_map("a", &lines)).run::<Secrets>()
    else {
        panic!("not denied")
    };
    assert_eq!(reasons.len(), MOST_FINDS + 1);
    assert_eq!(reasons.last().unwrap().message, "and 68 more finds");
}

#[test]
fn a_text_that_is_made_to_take_long_takes_time_in_proportion_to_its_length() {
    // In the square of their length these would take very long.
    const LENGTH: usize = 1 << 18;
    for piece in [
        "xoxb-",
        "sk-ant-",
        "eyJ-",
        "eyJ.",
        "eyJa.eyJ",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN ",
        "LS0tLS1CRUdJTi",
        "LS0tLS1CRUdJTi.",
        "PuTTY-User-Key-File-",
        "://",
        "://a:b",
        "a:b@",
        "password=",
        "AKIA-",
    ] {
        let text = piece.repeat(LENGTH / piece.len());
        find(&text);
        ReviewCase::new().desired(config_map("token", &text)).run::<Secrets>();
    }
}

#[test]
fn no_number_of_warnings_crowds_out_a_denial() {
    let lines: String = (0..100).map(|_| format!("password={}\n", body(ALNUM, 24))).collect();
    let object = config_map("a", &lines);
    let case = |object: &str| ReviewCase::new().desired(object);
    assert!(matches!(case(&object).run::<Secrets>(), ReviewVerdict::Warn(_)));
    let token = format!(r#"","z":"ghp_{}"}}}}"#, body(ALNUM, 36));
    let object = object.replace(r#""}}"#, &token);
    case(&object).check::<Secrets>("deny secret-token /data/z");
}

#[test]
fn ordinary_manifests_have_none() {
    for object in [
        r#"{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":"a","annotations":{
            "nginx.ingress.kubernetes.io/auth-secret":"basic-auth-credentials","checksum/config":"9f86d081884c7d659a2feaa0c55ad015"}},
            "spec":{"tls":[{"secretName":"shop-tls-certificate-2"}]}}"#,
        r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"template":{"spec":{
            "containers":[{"name":"a","image":"a@sha256:9f86d081884c7d659a2feaa0c55ad0159f86d081884c7d659a2feaa0c55ad015",
            "env":[{"name":"DB_PASSWORD","valueFrom":{"secretKeyRef":{"name":"db","key":"password"}}},
            {"name":"TOKEN_FILE","value":"/var/run/secrets/token"}],"args":["--token-file","/a","--secret-name=x-1"]}]}}}}"#,
        r#"{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"a"},"secrets":[{"name":"a-token-x7k2p9"}],
            "imagePullSecrets":[{"name":"pull-secret-1"}]}"#,
    ] {
        ReviewCase::new().desired(object).check::<Secrets>("allow");
    }
}
