//! Manifests in YAML and JSON, as a source reads them.

use crate::draw::Draw;
use trimtab_json::{Value, parse};
use trimtab_source::limits::{MAX_FILE_PROBLEMS, MAX_OBJECTS, MAX_PROBLEMS};
use trimtab_source::read_documents;

/// The first byte names the file, the rest is its content. What is read is an object of the
/// identity that it says, and reads as the same once more; what is not names its line.
pub fn manifests(data: &[u8]) {
    let mut draw = Draw::new(data);
    let name = draw.pick(&["a.yaml", "a.json"]);
    let content = draw.rest();
    let manifests = match read_documents(name, content, "default") {
        Ok(manifests) => manifests,
        Err(error) => {
            // A carriage return alone ends a line of YAML too.
            let lines = content.split(|byte| matches!(byte, b'\n' | b'\r')).count();
            let problems = error.problems();
            assert!((1..=MAX_PROBLEMS + MAX_FILE_PROBLEMS).contains(&problems.len()));
            for problem in problems {
                assert!(!problem.message.is_empty() && !problem.remedy.is_empty());
                let line = problem.line.map_or(1, |line| line as usize);
                assert!((1..=lines + 1).contains(&line), "line {line} of {lines}: {problem}");
            }
            return;
        }
    };
    assert!(manifests.len() <= MAX_OBJECTS);
    for manifest in manifests {
        let object = parse(&manifest.json).expect("a manifest is JSON");
        assert_eq!(object.str_at(&["apiVersion"]), Some(&*manifest.gvk.api_version()));
        assert_eq!(object.str_at(&["kind"]), Some(&*manifest.gvk.kind));
        assert_eq!(object.str_at(&["metadata", "name"]), Some(&*manifest.name));
        let place = object.at(&["metadata", "namespace"]).and_then(Value::as_str);
        assert_eq!(place.filter(|place| !place.is_empty()), manifest.namespace.as_deref());
        let again = read_documents("a.json", &manifest.json, "default")
            .expect("a manifest's own text is a manifest");
        assert_eq!(again.len(), 1);
        assert_eq!(again[0].json, manifest.json);
        assert_eq!((&again[0].gvk, &again[0].name), (&manifest.gvk, &manifest.name));
    }
}
