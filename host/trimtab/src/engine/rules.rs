//! Ignore rules that lead nowhere: a misspelt path hides nothing, and its author believes it does.
//!
//! Takes what each pass says of its object's rules. A rule that has led nowhere in any object for
//! [`IDLE_FOR`] is given once, to be told.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use trimtab_core::identity::ObjectKey;
use trimtab_core::ignore::{Matched, Rule, Scoped};

/// How long a rule may lead nowhere before it is told: what it is for may come with the next
/// deployment, or at night.
const IDLE_FOR: Duration = Duration::from_secs(24 * 3600);
/// How often to look for such rules.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Every rule that is in force, by its text and its place.
pub(super) struct RuleWatch {
    rules: HashMap<String, Watched>,
    looked_at: Instant,
}

struct Watched {
    rule: Arc<Rule>,
    /// The objects in which it leads somewhere.
    leads: HashSet<ObjectKey>,
    idle_since: Instant,
    told: bool,
}

impl RuleWatch {
    /// No rules yet.
    pub(super) fn new(now: Instant) -> Self {
        Self { rules: HashMap::new(), looked_at: now }
    }

    /// These are the rules of sources now; objects' own stay as they are.
    pub(super) fn keep<'r>(&mut self, rules: impl Iterator<Item = &'r Scoped>, now: Instant) {
        let mut texts = HashSet::new();
        for scoped in rules {
            texts.insert(scoped.rule.to_string());
            self.entry(&scoped.rule, now);
        }
        self.rules.retain(|text, watched| watched.rule.object().is_some() || texts.contains(text));
    }

    /// A pass looked at this object.
    pub(super) fn looked(&mut self, key: &ObjectKey, matched: &[Matched], now: Instant) {
        for Matched { rule, places } in matched {
            let watched = self.entry(rule, now);
            if *places > 0 {
                watched.leads.insert(key.clone());
                watched.told = false;
            } else if watched.leads.remove(key) && watched.leads.is_empty() {
                watched.idle_since = now;
            }
        }
    }

    /// These objects are declared no more, or otherwise.
    pub(super) fn forget<'k>(&mut self, keys: impl Iterator<Item = &'k ObjectKey>, now: Instant) {
        if self.rules.is_empty() {
            return;
        }
        let keys: HashSet<&ObjectKey> = keys.collect();
        self.rules.retain(|_, watched| {
            let led = !watched.leads.is_empty();
            watched.leads.retain(|key| !keys.contains(key));
            if led && watched.leads.is_empty() {
                watched.idle_since = now;
            }
            !watched.rule.object().is_some_and(|object| keys.contains(object))
        });
    }

    /// The rules that have led nowhere for long and were not told of.
    pub(super) fn idle(&mut self, now: Instant) -> Vec<Arc<Rule>> {
        let mut idle = Vec::new();
        if now.saturating_duration_since(self.looked_at) < LOOK_EVERY {
            return idle;
        }
        self.looked_at = now;
        for watched in self.rules.values_mut() {
            let long = now.saturating_duration_since(watched.idle_since) >= IDLE_FOR;
            if watched.leads.is_empty() && long && !watched.told {
                watched.told = true;
                idle.push(watched.rule.clone());
            }
        }
        idle
    }

    fn entry(&mut self, rule: &Arc<Rule>, now: Instant) -> &mut Watched {
        self.rules.entry(rule.to_string()).or_insert_with(|| Watched {
            rule: rule.clone(),
            leads: HashSet::new(),
            idle_since: now,
            told: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_core::identity::GroupKind;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new(GroupKind::new("apps", "Deployment"), "shop", name)
    }

    fn matched(rule: &Arc<Rule>, places: usize) -> [Matched; 1] {
        [Matched { rule: rule.clone(), places }]
    }

    #[test]
    fn a_rule_that_leads_nowhere_for_long_is_told_once() {
        let start = Instant::now();
        let long = start + IDLE_FOR;
        let scoped = Scoped::everywhere(Rule::parse("/spec/replcas", "c.yaml:9").unwrap());
        let mut watch = RuleWatch::new(start);
        watch.keep(std::iter::once(&scoped), start);
        watch.looked(&key("web"), &matched(&scoped.rule, 0), start);
        assert!(watch.idle(long - LOOK_EVERY).is_empty());
        let told: Vec<String> = watch.idle(long).iter().map(ToString::to_string).collect();
        assert_eq!(told, ["/spec/replcas (c.yaml:9)"]);
        assert!(watch.idle(long + IDLE_FOR).is_empty(), "it was told");
    }

    #[test]
    fn a_rule_that_leads_somewhere_in_one_object_is_not_told_until_it_does_no_more() {
        let start = Instant::now();
        let scoped = Scoped::everywhere(Rule::parse("/spec/replicas", "c.yaml:9").unwrap());
        let mut watch = RuleWatch::new(start);
        watch.keep(std::iter::once(&scoped), start);
        watch.looked(&key("web"), &matched(&scoped.rule, 1), start);
        watch.looked(&key("api"), &matched(&scoped.rule, 0), start);
        let later = start + IDLE_FOR * 2;
        assert!(watch.idle(later).is_empty());
        let later = later + LOOK_EVERY;
        watch.forget([key("web")].iter(), later);
        assert!(watch.idle(later).is_empty(), "from here on it leads nowhere");
        assert_eq!(watch.idle(later + IDLE_FOR).len(), 1);
    }

    #[test]
    fn rules_that_are_configured_no_more_are_not_told() {
        let start = Instant::now();
        let scoped = Scoped::everywhere(Rule::parse("/spec/replcas", "c.yaml:9").unwrap());
        let mut watch = RuleWatch::new(start);
        watch.keep(std::iter::once(&scoped), start);
        watch.keep(std::iter::empty(), start);
        assert!(watch.idle(start + IDLE_FOR).is_empty());
    }

    #[test]
    fn an_objects_own_rule_goes_with_it() {
        let start = Instant::now();
        let place = format!("{} of {}", trimtab_core::ignore::ANNOTATION, key("web"));
        let rule = Arc::new(Rule::parse("/spec/x", &place).unwrap().of(&key("web")));
        let mut watch = RuleWatch::new(start);
        watch.looked(&key("web"), &matched(&rule, 0), start);
        watch.forget([key("web")].iter(), start);
        assert!(watch.idle(start + IDLE_FOR).is_empty());
    }
}
