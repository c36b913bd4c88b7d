//! Images: immutable references, from registries that are allowed.
//!
//! Takes an object with a pod template and looks at every image of it, those that are mounted as
//! volumes among them. A tag that moves (`latest`, and so an absent one) means that what runs is not what
//! was reviewed; a registry that nobody chose means that it is anybody's.
//!
//! Start reading at [`review`]; `reference.rs` reads references as registries' clients do.

mod reference;
mod settings;
#[cfg(test)]
mod tests;

pub use reference::{NoReference, Reference};

use settings::Settings;
use trimtab_sdk::rules::{self, Reasons};
use trimtab_sdk::{ObjectId, Path, Policy, Review, ReviewVerdict, Step, Value, pods};

/// The policy.
pub struct Images;

impl Policy for Images {
    fn review(request: &Review<'_>) -> ReviewVerdict {
        let Some(object) = rules::written(request) else { return ReviewVerdict::Allow };
        review(request.id(), object, request.configuration()).into()
    }
}

trimtab_sdk::export_policy!(Images);

/// Reviews one object under a configuration.
pub fn review(id: &ObjectId<'_>, object: &Value<'_>, configuration: &Value<'_>) -> Reasons {
    match Settings::read(configuration) {
        Ok(settings) => judge(id, object, &settings),
        Err(bad) => bad.into(),
    }
}

fn judge(id: &ObjectId<'_>, object: &Value<'_>, settings: &Settings<'_>) -> Reasons {
    let mut reasons = Reasons::default();
    if settings.exempts_namespace(id.namespace) {
        return reasons;
    }
    if let Some(path) = pods::unseen(id, object) {
        let message = format!(
            "{} is no kind whose pods are known here, so that nobody judged these images",
            id.kind
        );
        reasons.add(settings.unseen, "pod-template-not-seen", message, path);
    }
    let Some(template) = pods::template(id, object) else { return reasons };
    for container in template.containers() {
        let image = container.value().get("image");
        settings.image(image, || container.fields(&["image"]), &mut reasons);
    }
    for (path, volume) in template.volumes() {
        if let Some(image) = volume.get("image").filter(|image| !image.is_null()) {
            let at = || field(field(path.clone(), "image"), "reference");
            settings.image(image.get("reference"), at, &mut reasons);
        }
    }
    reasons
}

fn field(path: Path, name: &str) -> Path {
    path.join(Step::Field(name.to_owned()))
}

impl Settings<'_> {
    fn image(&self, image: Option<&Value<'_>>, at: impl Fn() -> Path, reasons: &mut Reasons) {
        let Some(image) = image.and_then(Value::as_str).filter(|image| !image.is_empty()) else {
            let message = "no image is stated: nobody can say what would run";
            return reasons.add(self.effect, "image-reference", message, at());
        };
        let reference = match Reference::read(image) {
            Ok(reference) => reference,
            Err(why) => {
                let message = format!("{image:?} is no image reference: {why}");
                return reasons.add(self.effect, "image-reference", message, at());
            }
        };
        if self.exempts_image(&reference) {
            return;
        }
        if reference.digest.is_none() {
            if let Some(pattern) = self.mutable(reference.tag.unwrap_or("latest")) {
                let message = match reference.tag {
                    None => format!(
                        "{image:?} has neither tag nor digest, which is latest: state a digest, or a tag that stays"
                    ),
                    Some(tag) => format!(
                        "{image:?} has the tag {tag}, which moves (it is as {pattern:?} says): state a digest, or a tag that stays"
                    ),
                };
                reasons.add(self.effect, "image-tag", message, at());
            }
            let message = format!("{image:?} has no digest: a tag can be moved to other content");
            reasons.add(self.digest, "image-digest", message, at());
        }
        let place = || format!("{}/{}", reference.registry, reference.repository);
        if let Some(denied) = self.denied.iter().find(|prefix| prefix.holds(&reference)) {
            let message = format!("{} is denied, by {:?}", place(), denied.text);
            reasons.add(self.effect, "image-registry", message, at());
        } else if !self.allowed.is_empty()
            && !self.allowed.iter().any(|prefix| prefix.holds(&reference))
        {
            let allowed: Vec<_> = self.allowed.iter().map(|prefix| prefix.text).collect();
            let message = format!("{} is none of what is allowed: {}", place(), allowed.join(", "));
            reasons.add(self.effect, "image-registry", message, at());
        }
    }
}
