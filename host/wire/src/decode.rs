//! What the host reads of an object: where it stands and which version it is, and nothing else.
//!
//! Takes a watch line, a list page or one object as bytes. Gives borrowed envelopes around raw
//! slices, and [`LiveObject`]s that keep the bytes as they came. Makes no tree. An object that
//! does not decode is an answer of its own ([`Undecodable`]), with its name where that is readable.

use crate::status::Status;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;
use trimtab_core::identity::Gvk;
use trimtab_core::object::LiveObject;

/// One line of a watch.
#[derive(Debug)]
pub enum WatchLine<'a> {
    /// An object appeared or changed.
    Seen(&'a [u8]),
    /// An object is gone; this is its last state.
    Deleted(&'a [u8]),
    /// Nothing happened up to this resourceVersion.
    Bookmark(Cow<'a, str>),
    /// The server ends the watch.
    Error(Status),
    /// A type that this host does not know.
    Other(Cow<'a, str>),
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// Reads a watch line. `object` may stand before `type`.
///
/// # Errors
/// The line is not a watch event, for people and without its content.
pub fn watch_line(line: &[u8]) -> Result<WatchLine<'_>, String> {
    let event: Envelope<'_> =
        serde_json::from_slice(line).map_err(|error| without_content(&error))?;
    let object = event.object.get().as_bytes();
    Ok(match &*event.kind {
        "ADDED" | "MODIFIED" => WatchLine::Seen(object),
        "DELETED" => WatchLine::Deleted(object),
        "BOOKMARK" => {
            let head: Head<'_> =
                serde_json::from_slice(object).map_err(|error| without_content(&error))?;
            let version = head.metadata.resource_version.unwrap_or_default();
            WatchLine::Bookmark(version)
        }
        "ERROR" => WatchLine::Error(Status::parse(object).unwrap_or_else(|| Status {
            message: "an ERROR event without a Status".into(),
            ..Status::default()
        })),
        _ => WatchLine::Other(event.kind),
    })
}

/// UIDs of an object's owners; none where it does not decode.
pub fn owners(object: &[u8]) -> Vec<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Owned<'a> {
        #[serde(borrow)]
        metadata: Owners<'a>,
    }
    #[derive(Deserialize)]
    struct Owners<'a> {
        #[serde(borrow, default, rename = "ownerReferences")]
        owners: Vec<Owner<'a>>,
    }
    #[derive(Deserialize)]
    struct Owner<'a> {
        #[serde(borrow)]
        uid: Cow<'a, str>,
    }
    let owned = serde_json::from_slice::<Owned<'_>>(object);
    owned
        .map(|it| it.metadata.owners.into_iter().map(|owner| owner.uid).collect())
        .unwrap_or_default()
}

/// One page of a list.
#[derive(Debug)]
pub struct Page<'a> {
    /// The version of the whole list, the same on each of its pages.
    pub resource_version: Cow<'a, str>,
    /// Token for the next page; empty on the last.
    pub next: Cow<'a, str>,
    /// The objects, as they stand in the page: items of built-in kinds lack apiVersion and kind.
    pub items: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct List<'a> {
    #[serde(borrow)]
    metadata: ListMetadata<'a>,
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct ListMetadata<'a> {
    #[serde(borrow, rename = "resourceVersion")]
    resource_version: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "continue")]
    next: Option<Cow<'a, str>>,
}

/// Reads a list page.
///
/// # Errors
/// It is not a list, for people and without its content.
pub fn page(body: &[u8]) -> Result<Page<'_>, String> {
    let list: List<'_> = serde_json::from_slice(body).map_err(|error| without_content(&error))?;
    Ok(Page {
        resource_version: list.metadata.resource_version.unwrap_or_default(),
        next: list.metadata.next.unwrap_or_default(),
        items: list.items.unwrap_or_default(),
    })
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow, rename = "apiVersion")]
    api_version: Option<Cow<'a, str>>,
    #[serde(borrow)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    namespace: Option<Cow<'a, str>>,
    #[serde(borrow)]
    uid: Option<Cow<'a, str>>,
    #[serde(borrow)]
    resource_version: Option<Cow<'a, str>>,
    #[serde(borrow)]
    deletion_timestamp: Option<&'a RawValue>,
}

/// What stands in an object's head.
#[derive(Debug, PartialEq, Eq)]
pub struct Meta<'a> {
    /// Empty for a cluster-scoped object.
    pub namespace: Cow<'a, str>,
    /// `metadata.name`; never empty.
    pub name: Cow<'a, str>,
    /// `metadata.uid`; never empty.
    pub uid: Cow<'a, str>,
    /// `metadata.resourceVersion`; never empty.
    pub resource_version: Cow<'a, str>,
    /// Whether a deletion has begun.
    pub deleting: bool,
    has_api_version: bool,
    has_kind: bool,
}

/// An object whose head cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub struct Undecodable {
    /// Its namespace (empty for cluster-scoped) and name, where at least these are readable.
    pub name: Option<(String, String)>,
    /// Why, for people and without its content.
    pub reason: String,
}

/// Reads an object's head.
///
/// # Errors
/// Something that the host needs is missing or of the wrong shape.
pub fn meta(object: &[u8]) -> Result<Meta<'_>, Undecodable> {
    let undecodable = |reason: String| Undecodable { name: name_of(object), reason };
    let head: Head<'_> =
        serde_json::from_slice(object).map_err(|error| undecodable(without_content(&error)))?;
    let needed = |field: &str, value: Option<Cow<'_, str>>| match value {
        Some(value) if !value.is_empty() => Ok(value.into_owned().into()),
        _ => Err(undecodable(format!("it has no metadata.{field}"))),
    };
    let metadata = head.metadata;
    Ok(Meta {
        namespace: metadata.namespace.unwrap_or_default(),
        uid: match metadata.uid {
            Some(uid) if !uid.is_empty() => uid,
            other => needed("uid", other)?,
        },
        resource_version: match metadata.resource_version {
            Some(version) if !version.is_empty() => version,
            other => needed("resourceVersion", other)?,
        },
        name: match metadata.name {
            Some(name) if !name.is_empty() => name,
            other => needed("name", other)?,
        },
        deleting: metadata.deletion_timestamp.is_some_and(|value| value.get() != "null"),
        has_api_version: head.api_version.is_some(),
        has_kind: head.kind.is_some(),
    })
}

impl Meta<'_> {
    /// The object with the bytes that were received; where they lack `apiVersion` or `kind`, as
    /// items of lists do, these are put in front.
    pub fn live(&self, gvk: &Gvk, object: &[u8]) -> LiveObject {
        LiveObject {
            json: self.whole(gvk, object),
            uid: (*self.uid).into(),
            resource_version: (*self.resource_version).into(),
            deleting: self.deleting,
        }
    }

    fn whole(&self, gvk: &Gvk, object: &[u8]) -> Arc<[u8]> {
        let start = object.iter().position(|byte| *byte == b'{');
        let (Some(start), false) = (start, self.has_api_version && self.has_kind) else {
            return object.into();
        };
        // Versions and kinds from discovery are plain words, but they are data: write them as JSON.
        let word = |text: &str| serde_json::Value::from(text).to_string();
        let mut front = String::from("{");
        if !self.has_kind {
            front.push_str(&format!("\"kind\":{},", word(&gvk.kind)));
        }
        if !self.has_api_version {
            front.push_str(&format!("\"apiVersion\":{},", word(&gvk.api_version())));
        }
        // It has `metadata` at least, so the comma is never the last byte before `}`.
        [front.as_bytes(), &object[start + 1..]].concat().into()
    }
}

/// The `apiVersion` and `kind` of an object, if it states both.
pub fn gvk_of(object: &[u8]) -> Option<Gvk> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Type<'a> {
        #[serde(borrow)]
        api_version: Cow<'a, str>,
        #[serde(borrow)]
        kind: Cow<'a, str>,
    }
    let found: Type<'_> = serde_json::from_slice(object).ok()?;
    Some(Gvk::from_api_version(&found.api_version, &found.kind))
}

/// Only the name, reading past whatever else is wrong.
fn name_of(object: &[u8]) -> Option<(String, String)> {
    #[derive(Deserialize)]
    struct Named {
        metadata: Names,
    }
    #[derive(Deserialize)]
    struct Names {
        name: String,
        #[serde(default)]
        namespace: String,
    }
    let named: Named = serde_json::from_slice(object).ok()?;
    (!named.metadata.name.is_empty()).then_some((named.metadata.namespace, named.metadata.name))
}

/// A parser's message may quote a value (`invalid type: string "hunter2"`): keep where and what
/// class of fault, not what stood there.
fn without_content(error: &serde_json::Error) -> String {
    use serde_json::error::Category;
    let what = match error.classify() {
        Category::Io | Category::Eof => "it ends too early",
        Category::Syntax => "it is not JSON",
        Category::Data => "a field has another type than expected",
    };
    format!("{what} (byte {} of line {})", error.column(), error.line())
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"s","uid":"u","resourceVersion":"7"},"spec":{"x":[1,{"type":"trap"}]}}"#;

    fn shown(line: &str) -> String {
        match watch_line(line.as_bytes()) {
            Ok(WatchLine::Seen(object)) => format!("seen {}", String::from_utf8_lossy(object)),
            Ok(WatchLine::Deleted(object)) => format!("deleted {}", meta(object).unwrap().name),
            Ok(WatchLine::Bookmark(version)) => format!("bookmark {version}"),
            Ok(WatchLine::Error(status)) => format!("error {status}"),
            Ok(WatchLine::Other(kind)) => format!("other {kind}"),
            Err(reason) => reason,
        }
    }

    #[test]
    fn an_event_decodes_with_its_object_before_or_after_its_type() {
        let after = format!(r#"{{"type":"ADDED","object":{POD}}}"#);
        let before = format!(r#"{{ "object" : {POD} , "type" : "MODIFIED" }}"#);
        for line in [after, before] {
            assert_eq!(shown(&line), format!("seen {POD}"));
        }
        assert_eq!(shown(&format!(r#"{{"type":"DELETED","object":{POD}}}"#)), "deleted a");
    }

    #[test]
    fn bookmarks_errors_and_unknown_types_are_told_apart() {
        let bookmark = r#"{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"12746","creationTimestamp":null},"spec":{"containers":null},"status":{}}}"#;
        assert_eq!(shown(bookmark), "bookmark 12746");
        let error = r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: 1 (2)","reason":"Expired","code":410}}"#;
        assert_eq!(shown(error), "error 410 Expired: too old resource version: 1 (2)");
        assert_eq!(shown(r#"{"type":"SURPRISE","object":{}}"#), "other SURPRISE");
    }

    #[test]
    fn a_line_that_is_no_event_is_refused_without_quoting_it() {
        for line in [
            r#"{"type":"ADDED","object":{"data":"hunter2"#,
            r#"["hunter2"]"#,
            r#"{"type":"hunter2"}"#,
        ] {
            let reason = watch_line(line.as_bytes()).unwrap_err();
            assert!(!reason.contains("hunter2"), "{reason}");
        }
    }

    #[test]
    fn a_list_item_gets_back_its_api_version_and_kind() {
        let body = br#"{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":{"resourceVersion":"9","continue":"tok"},
            "items":[{"metadata":{"name":"a","namespace":"s","uid":"u","resourceVersion":"7"}, "spec":{}},
                     {"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"b","uid":"v","resourceVersion":"8","deletionTimestamp":"2026-01-01T00:00:00Z"}}]}"#;
        let gvk = Gvk::from_api_version("apps/v1", "Deployment");
        let page = page(body).unwrap();
        assert_eq!((&*page.resource_version, &*page.next), ("9", "tok"));
        let items: Vec<LiveObject> = page
            .items
            .iter()
            .map(|item| meta(item.get().as_bytes()).unwrap().live(&gvk, item.get().as_bytes()))
            .collect();
        assert_eq!(
            std::str::from_utf8(&items[0].json).unwrap(),
            r#"{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"a","namespace":"s","uid":"u","resourceVersion":"7"}, "spec":{}}"#
        );
        assert!(items[1].deleting && !items[0].deleting);
        assert_eq!(&*items[1].json, page.items[1].get().as_bytes());
        assert_eq!(gvk_of(&items[0].json), Some(gvk));
    }

    #[test]
    fn of_three_items_the_poisoned_one_costs_itself_alone() {
        let body = br#"{"metadata":{"resourceVersion":"9"},"items":[
            {"metadata":{"name":"a","uid":"u","resourceVersion":"7"}},
            {"metadata":{"name":"poison","namespace":"s","uid":{"not":"a string"},"resourceVersion":"8"}},
            {"metadata":{"name":"c","uid":"w","resourceVersion":"9"}}]}"#;
        let page = page(body).unwrap();
        let seen: Vec<_> = page.items.iter().map(|item| meta(item.get().as_bytes())).collect();
        assert!(seen[0].is_ok() && seen[2].is_ok());
        let poison = seen[1].as_ref().unwrap_err();
        assert_eq!(poison.name, Some(("s".to_owned(), "poison".to_owned())));
        let nameless = meta(br#"{"metadata":{"uid":"u"}}"#).unwrap_err();
        assert_eq!(nameless.name, None);
        let unversioned = meta(br#"{"metadata":{"name":"a","uid":"u"}}"#).unwrap_err();
        assert_eq!(unversioned.reason, "it has no metadata.resourceVersion");
    }

    #[test]
    fn escapes_and_repeated_keys_are_read_strictly() {
        let escaped = br#"{"metadata":{"name":"\u0061b","uid":"u","resourceVersion":"7"}}"#;
        assert_eq!(meta(escaped).unwrap().name, "ab");
        let twice = br#"{"metadata":{"name":"a","name":"b","uid":"u","resourceVersion":"7"}}"#;
        assert!(meta(twice).is_err());
        let not_utf8 =
            b"{\"metadata\":{\"name\":\"a\xff\",\"uid\":\"u\",\"resourceVersion\":\"7\"}}";
        assert!(meta(not_utf8).is_err());
    }
}
