//! Where a client lets itself be sent.

use super::*;
use crate::git::GitOptions;

/// Where a client of this address goes when it is sent there.
fn sent(address: &str, to: &str) -> Result<String, String> {
    let options = GitOptions::new(Url::parse(address).unwrap());
    let told = Told::default();
    let client = Client {
        agent: agent(&options).unwrap(),
        login: None,
        url: options.url.clone(),
        moved_to: None,
        budget: Budget::new(&options),
        told,
    };
    let base = options.url.http();
    let asked = format!("{base}/info/refs?service=git-upload-pack");
    let answer = Response::builder()
        .status(302)
        .header("Location", to)
        .body(Body::builder().data(""))
        .unwrap();
    client.redirect(&answer, &asked, &base).map_err(|cause| cause.words().to_owned())
}

#[test]
fn a_server_may_send_us_on_within_its_own_host_and_never_out_of_tls() {
    let tail = "/info/refs?service=git-upload-pack";
    let from = "https://user@git.test:8443/pier";
    for to in [format!("https://git.test:8443/new{tail}"), format!("/new{tail}")] {
        assert_eq!(sent(from, &to).as_deref(), Ok("https://git.test:8443/new"), "{to}");
    }
    for (to, word) in [
        (format!("http://git.test:8443/new{tail}"), "another protocol"),
        (format!("https://git.test/new{tail}"), "another host"),
        (format!("https://git.test:8443.evil.test/new{tail}"), "another host"),
        (format!("https://user@git.test:8443/new{tail}"), "another host"),
        (format!("https://evil.test/pier{tail}"), "another host"),
        (format!("//evil.test/pier{tail}"), "elsewhere"),
        ("/login".to_owned(), "no repository"),
        ("/pier/info/refs".to_owned(), "no repository"),
    ] {
        let told = sent(from, &to).unwrap_err();
        assert!(told.contains(word), "{to}: {told}");
    }
}
