//! The server's own schema: OpenAPI v3, one document a group-version, as raw bytes.
//!
//! Takes nothing but the connection. Gives an index whose addresses change when the content does
//! (they carry a hash), so that whoever keeps documents fetches each once.

use crate::counts::Verb;
use crate::request::{ApiServer, Call, RequestError, RequestFailure};
use bytes::Bytes;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;
use trimtab_core::identity::Gvk;

/// The largest documents are some 2 MB; a cluster with very many CRDs in one group has more.
const MAX_BYTES: usize = 64 << 20;
/// The server may build a document when it is first asked for it.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Where all schema documents are.
const ROOT: &str = "/openapi/v3";

/// Where the documents are: by group-version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchemaIndex {
    addresses: BTreeMap<String, String>,
}

impl SchemaIndex {
    /// Address of the document that describes this kind, if the server has one. Equal addresses
    /// mean equal content.
    pub fn address(&self, gvk: &Gvk) -> Option<&str> {
        let root = if gvk.group.is_empty() { "api" } else { "apis" };
        self.addresses.get(&format!("{root}/{}", gvk.api_version())).map(String::as_str)
    }

    fn parse(body: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Index {
            paths: BTreeMap<String, Entry>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Entry {
            #[serde(rename = "serverRelativeURL")]
            server_relative_url: String,
        }
        let index: Index = serde_json::from_slice(body).ok()?;
        let addresses =
            index.paths.into_iter().map(|(path, it)| (path, it.server_relative_url)).collect();
        Some(Self { addresses })
    }
}

impl ApiServer {
    /// Where the schema documents are now.
    ///
    /// # Errors
    /// The server could not be asked, or its answer is no index.
    pub async fn schema_index(&self) -> Result<SchemaIndex, RequestError> {
        let answer = self.call(schema_call(ROOT)).await?;
        SchemaIndex::parse(&answer.body).ok_or_else(|| RequestError {
            request: format!("read {ROOT}"),
            failure: RequestFailure::NotUnderstood("it is no index of OpenAPI documents".into()),
        })
    }

    /// The schema document at an address of a [`SchemaIndex`]: JSON text of OpenAPI 3.0.
    ///
    /// # Errors
    /// The server could not be asked, or the address is none of its schema documents.
    pub async fn schema(&self, address: &str) -> Result<Bytes, RequestError> {
        let under_root = address.strip_prefix(ROOT).is_some_and(|rest| rest.starts_with('/'));
        if !under_root || address.contains("..") {
            return Err(RequestError {
                request: format!("read {address}"),
                failure: RequestFailure::NotUnderstood(
                    "it is no address of a schema document".into(),
                ),
            });
        }
        Ok(self.call(schema_call(address)).await?.body)
    }
}

fn schema_call(address: &str) -> Call {
    let mut call = Call::get(Verb::Schema, address.to_owned());
    call.timeout = TIMEOUT;
    call.limit = MAX_BYTES;
    call
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kinds_document_is_found_by_its_group_version() {
        let index = SchemaIndex::parse(
            br#"{"paths":{"api/v1":{"serverRelativeURL":"/openapi/v3/api/v1?hash=A"},
                "apis/apps/v1":{"serverRelativeURL":"/openapi/v3/apis/apps/v1?hash=B"}}}"#,
        )
        .unwrap();
        let address = |api_version| index.address(&Gvk::from_api_version(api_version, "X"));
        assert_eq!(address("v1"), Some("/openapi/v3/api/v1?hash=A"));
        assert_eq!(address("apps/v1"), Some("/openapi/v3/apis/apps/v1?hash=B"));
        assert_eq!(address("apps/v2"), None);
    }
}
