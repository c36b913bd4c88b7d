//! What is made of a schema that a stranger wrote.

use crate::compare::reflexive;
use crate::draw::Draw;
use trimtab_compare::Facts;
use trimtab_compare::facts::{build, build_crd};
use trimtab_json::parse;

/// A schema and an object, one line each. The schema is read as a definition, as the schema of
/// one, and as a part of an OpenAPI document; what comes out is known, the same each time, and an
/// object does not differ from itself under it.
pub fn facts(data: &[u8]) {
    let mut draw = Draw::new(data);
    let schema = draw.text();
    let object = draw.rest();
    let document = format!(
        r#"{{"spec":{{"versions":[{{"name":"v1","schema":{{"openAPIV3Schema":{schema}}}}}]}},"components":{{"schemas":{{"x.v1.Thing":{schema},"io.k8s.api.apps.v1.Thing":{schema}}}}}}}"#
    );
    let Ok(object) = parse(object) else { return };
    for text in [&schema, &document] {
        let Ok(document) = parse(text.as_bytes()) else { continue };
        let built = [
            build_crd(&document, "v1"),
            build(&document, "", "v1", "Thing"),
            build(&document, "apps", "v1", "Thing"),
        ];
        let again = [
            build_crd(&document, "v1"),
            build(&document, "", "v1", "Thing"),
            build(&document, "apps", "v1", "Thing"),
        ];
        assert_eq!(built, again, "another answer");
        for buffer in built.iter().flatten() {
            let facts = Facts::new(buffer);
            assert!(facts.is_known(), "a buffer that was built says nothing");
            reflexive(&object, facts);
        }
    }
}
