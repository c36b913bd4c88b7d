//! OpenSSH's patterns: `*` is any run of characters, `?` is one, a list is separated by commas and
//! `!` before a pattern takes out what it matches.

/// Whether the list names this text: one pattern matches and no negated one does.
pub(crate) fn list_matches(list: &str, text: &str) -> bool {
    let mut named = false;
    for pattern in list.split(',') {
        match pattern.strip_prefix('!') {
            Some(pattern) if matches(pattern.as_bytes(), text.as_bytes()) => return false,
            Some(_) => {}
            None => named |= matches(pattern.as_bytes(), text.as_bytes()),
        }
    }
    named
}

/// One pattern. Linear but for the last `*`, to which it goes back.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == b'?' || *c == text[t] => (p, t) = (p + 1, t + 1),
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    (p, t) = (at + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::list_matches;

    #[test]
    fn a_list_names_what_one_pattern_matches_and_no_negated_one() {
        for (list, text, named) in [
            ("a@x.org", "a@x.org", true),
            ("a@x.org,b@x.org", "b@x.org", true),
            ("*@x.org", "a@x.org", true),
            ("*@x.org", "a@x.org.evil", false),
            ("*@x.org,!eve@x.org", "eve@x.org", false),
            ("!eve@x.org,*@x.org", "eve@x.org", false),
            ("!eve@x.org", "bob@x.org", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*a*b*c", "xxaxxbxxbc", true),
            ("", "", true),
            ("*", "", true),
            ("git", "gitx", false),
        ] {
            assert_eq!(list_matches(list, text), named, "{list:?} {text:?}");
        }
    }
}
