//! Where pods are in an object: the built-in kinds that hold a pod template, a template's containers,
//! and what looks like a template in an object of another kind.
//!
//! Takes trees and gives borrowed parts of them with their paths. Judges nothing; knows no rule.

use crate::{ObjectId, Path, Step, Value};

/// Built-in kinds with a pod template, by group and kind, and where it is. A pod is its own template.
pub const KINDS: [(&str, &str, &[&str]); 9] = [
    ("", "Pod", &[]),
    ("", "PodTemplate", &["template"]),
    ("", "ReplicationController", &["spec", "template"]),
    ("apps", "Deployment", &["spec", "template"]),
    ("apps", "StatefulSet", &["spec", "template"]),
    ("apps", "DaemonSet", &["spec", "template"]),
    ("apps", "ReplicaSet", &["spec", "template"]),
    ("batch", "Job", &["spec", "template"]),
    ("batch", "CronJob", &["spec", "jobTemplate", "spec", "template"]),
];

/// The lists of containers that a pod has, in the order in which the API server goes through them.
pub const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// A pod template: an object with `metadata` and `spec`.
#[derive(Clone, Copy, Debug)]
pub struct Template<'v, 'a> {
    value: &'v Value<'a>,
    place: &'static [&'static str],
}

/// The pod template of an object of a built-in kind; `None` where the kind has none, or the object
/// does not state it.
pub fn template<'v, 'a>(id: &ObjectId<'_>, object: &'v Value<'a>) -> Option<Template<'v, 'a>> {
    let place = place(id)?;
    object.at(place).map(|value| Template { value, place })
}

/// A path to what looks like a pod's containers, in an object of a kind that is none of [`KINDS`]:
/// a list of that name with an element that states an image.
pub fn unseen(id: &ObjectId<'_>, object: &Value<'_>) -> Option<Path> {
    if place(id).is_some() {
        return None;
    }
    let mut at = Path::root();
    looks_like_pods(object, &mut at).then_some(at)
}

fn place(id: &ObjectId<'_>) -> Option<&'static [&'static str]> {
    let found = KINDS.iter().find(|(group, kind, _)| *group == id.group && *kind == id.kind);
    found.map(|(_, _, place)| *place)
}

/// Depth-first; leaves the way to the find in `at`.
fn looks_like_pods(value: &Value<'_>, at: &mut Path) -> bool {
    match value {
        Value::Object(object) => object.iter().any(|(name, child)| {
            at.push(Step::Field(name.to_owned()));
            let states_image = |item: &Value<'_>| item.str_at(&["image"]).is_some();
            let list = LISTS.contains(&name)
                && child.as_array().is_some_and(|items| items.iter().any(states_image));
            let found = list || looks_like_pods(child, at);
            if !found {
                at.pop();
            }
            found
        }),
        Value::Array(items) => items.iter().enumerate().any(|(index, child)| {
            at.push(Step::Index(index));
            let found = looks_like_pods(child, at);
            if !found {
                at.pop();
            }
            found
        }),
        _ => false,
    }
}

impl<'v, 'a> Template<'v, 'a> {
    /// The pod's specification, where one is stated.
    pub fn spec(&self) -> Option<&'v Value<'a>> {
        self.value.get("spec")
    }

    /// The template's own `metadata`, where it is stated.
    pub fn metadata(&self) -> Option<&'v Value<'a>> {
        self.value.get("metadata")
    }

    /// The pod's annotations by name.
    pub fn annotations(&self) -> impl Iterator<Item = (&'v str, &'v Value<'a>)> + use<'v, 'a> {
        let annotations = self.value.at(&["metadata", "annotations"]).and_then(Value::as_object);
        annotations.into_iter().flat_map(|annotations| annotations.iter())
    }

    /// The path of the template's own field: `fields(&["spec", "hostNetwork"])`.
    pub fn fields(&self, names: &[&str]) -> Path {
        let names = self.place.iter().chain(names);
        names.map(|name| Step::Field((*name).to_owned())).collect()
    }

    /// All containers, in the order of [`LISTS`].
    pub fn containers(&self) -> impl Iterator<Item = Container<'v, 'a>> + use<'v, 'a> {
        let (spec, template) = (self.spec(), *self);
        LISTS.into_iter().flat_map(move |list| {
            items(spec, list).iter().enumerate().map(move |(index, value)| Container {
                value,
                list,
                index,
                template,
            })
        })
    }

    /// The pod's volumes, each with its path.
    pub fn volumes(&self) -> impl Iterator<Item = (Path, &'v Value<'a>)> + use<'v, 'a> {
        let template = *self;
        items(self.spec(), "volumes").iter().enumerate().map(move |(index, volume)| {
            (template.fields(&["spec", "volumes"]).join(by_name(volume, index)), volume)
        })
    }
}

/// One container of a template.
#[derive(Clone, Copy, Debug)]
pub struct Container<'v, 'a> {
    value: &'v Value<'a>,
    list: &'static str,
    index: usize,
    template: Template<'v, 'a>,
}

impl<'v, 'a> Container<'v, 'a> {
    /// The container as it is stated.
    pub fn value(&self) -> &'v Value<'a> {
        self.value
    }

    /// Which of [`LISTS`] it is in.
    pub fn list(&self) -> &'static str {
        self.list
    }

    /// Its name; empty where none is stated.
    pub fn name(&self) -> &'v str {
        self.value.str_at(&["name"]).unwrap_or_default()
    }

    /// The path of a field of it: `fields(&["securityContext", "privileged"])`.
    pub fn fields(&self, names: &[&str]) -> Path {
        let mut path = self.template.fields(&["spec", self.list]);
        path.push(by_name(self.value, self.index));
        for name in names {
            path.push(Step::Field((*name).to_owned()));
        }
        path
    }
}

/// The step to an element that is known by its name, or by its position where it has none.
fn by_name(element: &Value<'_>, index: usize) -> Step {
    match element.str_at(&["name"]) {
        Some(name) => Step::Keyed(vec![("name".to_owned(), name.to_owned())]),
        None => Step::Index(index),
    }
}

fn items<'v, 'a>(holder: Option<&'v Value<'a>>, name: &str) -> &'v [Value<'a>] {
    holder.and_then(|holder| holder.get(name)).and_then(Value::as_array).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn id(group: &'static str, kind: &'static str) -> ObjectId<'static> {
        ObjectId { group, kind, version: "v1", namespace: "shop", name: "a" }
    }

    #[test]
    fn every_container_of_every_list_is_found_with_its_path() {
        let text = br#"{"spec":{"jobTemplate":{"spec":{"template":{"spec":{
            "containers":[{"name":"a"},{"image":"x"}],"ephemeralContainers":[{"name":"e"}],
            "initContainers":[{"name":"i"}],"volumes":[{"name":"v"}]}}}}}}"#;
        let object = json::parse(text).unwrap();
        let template = template(&id("batch", "CronJob"), &object).unwrap();
        let at = "/spec/jobTemplate/spec/template/spec";
        let found: Vec<_> =
            template.containers().map(|it| it.fields(&["image"]).to_string()).collect();
        assert_eq!(
            found,
            [
                format!("{at}/initContainers/[name=i]/image"),
                format!("{at}/containers/[name=a]/image"),
                format!("{at}/containers/1/image"),
                format!("{at}/ephemeralContainers/[name=e]/image"),
            ]
        );
        let volumes: Vec<_> = template.volumes().map(|(path, _)| path.to_string()).collect();
        assert_eq!(volumes, [format!("{at}/volumes/[name=v]")]);
    }

    #[test]
    fn containers_of_a_kind_that_is_not_known_are_noticed() {
        let text = br#"{"spec":{"roles":[{"a":1},{"pod":{"containers":[{"image":"x"}]}}]}}"#;
        let object = json::parse(text).unwrap();
        let found = unseen(&id("example.com", "Farm"), &object).unwrap();
        assert_eq!(found.to_string(), "/spec/roles/1/pod/containers");
        assert!(unseen(&id("apps", "Deployment"), &object).is_none());
        let other = json::parse(br#"{"spec":{"containers":["a"]}}"#).unwrap();
        assert!(unseen(&id("example.com", "Farm"), &other).is_none());
    }
}
