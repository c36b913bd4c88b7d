//! No secret material in plain desired state: who can read the repository can read the secret, for ever.
//!
//! Takes an object, looks at every text in it, and gives what is a secret by its shape (a token, a
//! private key, a password in a URL), what may be one by its name and randomness, and the values of a
//! Secret that stand there in base64, which hides nothing. A reason says where, what and how long it is,
//! and a fingerprint: never the value, nor a part of it.
//!
//! Start reading at [`review`]; the SDK knows secrets by their shape (`comparison::shapes`), `guess.rs`
//! by their name.

mod guess;
mod settings;
mod sha256;
#[cfg(test)]
mod tests;

pub use trimtab_sdk::comparison::shapes::{Class, Found, find, is_placeholder};

use settings::Settings;
use trimtab_sdk::comparison::decode_base64;
use trimtab_sdk::rules::{self, Effect, Reasons};
use trimtab_sdk::{ObjectId, Path, Policy, Review, ReviewVerdict, Step, Value};

/// How many finds of one object are told one by one, of denials and of warnings each.
const MOST_FINDS: usize = 32;
/// A text that is all base64 and at least so long is looked into.
const LEAST_ENCODED: usize = 24;

/// The policy.
pub struct Secrets;

impl Policy for Secrets {
    fn review(request: &Review<'_>) -> ReviewVerdict {
        let Some(object) = rules::written(request) else { return ReviewVerdict::Allow };
        review(request.id(), object, request.configuration()).into()
    }
}

trimtab_sdk::export_policy!(Secrets);

/// Reviews one object under a configuration.
pub fn review(id: &ObjectId<'_>, object: &Value<'_>, configuration: &Value<'_>) -> Reasons {
    let settings = match Settings::read(configuration) {
        Ok(settings) => settings,
        Err(bad) => return bad.into(),
    };
    let mut search =
        Search { id, settings, at: Path::root(), reasons: Reasons::default(), more: (0, 0) };
    search.object(object);
    let Search { mut reasons, more, .. } = search;
    for (effect, more) in [(Effect::Deny, more.0), (Effect::Warn, more.1)] {
        if more > 0 {
            let message = format!("and {more} more finds");
            reasons.add(effect, "more-secrets", message, Path::root());
        }
    }
    reasons
}

/// One look through an object.
struct Search<'s> {
    id: &'s ObjectId<'s>,
    settings: Settings<'s>,
    at: Path,
    reasons: Reasons,
    /// What is not told one by one: of denials, of warnings. Neither crowds out the other.
    more: (usize, usize),
}

impl Search<'_> {
    fn object(&mut self, object: &Value<'_>) {
        let is = |group: &str, kind: &str| (self.id.group, self.id.kind) == (group, kind);
        let (secret, sealed) = (is("", "Secret"), is("bitnami.com", "SealedSecret"));
        let members = object.as_object().into_iter().flat_map(|object| object.iter());
        for (name, value) in members {
            self.at.push(Step::Field(name.to_owned()));
            match name {
                // What the cluster says of itself is nobody's desired state.
                "status" => {}
                "data" | "stringData" if secret => self.secret_data(value, name == "data"),
                "spec" if sealed => {}
                _ => self.value(name, value),
            }
            self.at.pop();
        }
    }

    /// Looks at a value under a name, and at all that is in it.
    fn value(&mut self, name: &str, value: &Value<'_>) {
        match value {
            Value::String(text) => self.text(name, text),
            Value::Object(object) => {
                // `{name: PASSWORD, value: …}`, as in `env`.
                let named = value.str_at(&["name"]).filter(|_| value.get("value").is_some());
                for (member, inner) in
                    object.iter().filter(|(member, _)| *member != "managedFields")
                {
                    self.at.push(Step::Field(member.to_owned()));
                    let name = named.filter(|_| member == "value").unwrap_or(member);
                    self.value(name, inner);
                    self.at.pop();
                }
            }
            Value::Array(items) => {
                let mut flag = None;
                for (index, item) in items.iter().enumerate() {
                    self.at.push(match item.str_at(&["name"]) {
                        Some(name) => Step::Keyed(vec![("name".to_owned(), name.to_owned())]),
                        None => Step::Index(index),
                    });
                    // `[--password, …]`
                    self.value(flag.unwrap_or(name), item);
                    flag = item.as_str().and_then(|text| text.strip_prefix("--"));
                    flag = flag.filter(|flag| !flag.contains('='));
                    self.at.pop();
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, name: &str, text: &str) {
        let found = self.shapes(text, "");
        // Base64 hides nothing.
        let bare = text.trim();
        if found == 0
            && bare.len() >= LEAST_ENCODED
            && let Some(decoded) = decode_base64(bare)
            && self.shapes(&String::from_utf8_lossy(&decoded), ", in base64") > 0
        {
            return;
        }
        if found > 0 {
            return;
        }
        if !text.contains('\n') && guess::looks_random(text) && guess::speaks_of_a_secret(name) {
            return self.guess(name, text);
        }
        for (name, value) in guess::assignments(text) {
            if guess::looks_random(value) && guess::speaks_of_a_secret(name) {
                self.guess(name, value);
            }
        }
    }

    /// Tells what a text is by its shape; gives how many finds there are, the allowed ones too.
    fn shapes(&mut self, text: &str, how: &str) -> usize {
        let found = find(text);
        for Found { shape, class, range } in &found {
            let value = text.get(range.clone()).unwrap_or_default();
            let (effect, control, what) = match class {
                Class::Token => (self.settings.tokens, "secret-token", "looks like a token"),
                Class::PrivateKey => {
                    (self.settings.private_keys, "private-key", "is a private key")
                }
                Class::UrlPassword => {
                    (self.settings.url_passwords, "url-password", "is a password in a URL")
                }
            };
            self.tell(effect, control, shape, value.as_bytes(), &format!("{what}{how}"));
        }
        found.len()
    }

    fn guess(&mut self, name: &str, value: &str) {
        let what = format!("stands under the name {name:?} and looks random");
        self.tell(self.settings.guesses, "looks-secret", "guess", value.as_bytes(), &what);
    }

    /// The values of a Secret.
    fn secret_data(&mut self, members: &Value<'_>, encoded: bool) {
        for (name, value) in members.as_object().into_iter().flat_map(|members| members.iter()) {
            let Some(text) = value.as_str().filter(|text| !text.is_empty()) else { continue };
            let content = encoded.then(|| decode_base64(text)).flatten();
            let content = content.unwrap_or_else(|| text.as_bytes().to_vec());
            let shown = String::from_utf8_lossy(&content);
            let found = find(&shown);
            let public =
                found.is_empty() && shown.trim_start().starts_with("-----BEGIN CERTIFICATE");
            if public || is_placeholder(&shown) {
                continue;
            }
            let shape = found.first().map_or("secret-data", |found| found.shape);
            self.at.push(Step::Field(name.to_owned()));
            let what = "is a value of a Secret, which base64 does not hide: keep it where only the cluster can read it";
            self.tell(self.settings.secret_data, "secret-in-git", shape, &content, what);
            self.at.pop();
        }
    }

    fn tell(
        &mut self,
        effect: Effect,
        control: &'static str,
        shape: &str,
        value: &[u8],
        what: &str,
    ) {
        let fingerprint = self.settings.fingerprint(value);
        let allowed = || self.settings.allows(self.id, &self.at.to_string(), shape, &fingerprint);
        if effect == Effect::Allow || allowed() {
            return;
        }
        let (told, more) = match effect {
            Effect::Deny => (self.reasons.denied.len(), &mut self.more.0),
            _ => (self.reasons.warned.len(), &mut self.more.1),
        };
        if told >= MOST_FINDS {
            *more += 1;
            return;
        }
        let length = value.len();
        let message = format!("this {what} ({shape}, {length} bytes, fingerprint {fingerprint})");
        self.reasons.add(effect, control, message, self.at.clone());
    }
}
