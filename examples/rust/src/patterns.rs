//! Resources and patterns of resources: `match` and `subset` of vectors/tokens.md.

use crate::refusal::Refusal;
use serde_json::Value;
use std::collections::HashSet;

/// The steps that all comparisons of one token may take.
pub const MAX_STEPS: usize = 50_000;

const MAX_LENGTH: usize = 1024;
const INVALID: Refusal = Refusal::new("invalid_resource", "");

/// A text cut at its slashes.
pub struct Pattern {
    leading: bool,
    trailing: bool,
    segments: Vec<String>,
    /// `*` or `**` alone.
    is_universal: bool,
}

impl Pattern {
    /// Reads a pattern: `*` is one segment, `**` any number.
    pub fn pattern(text: &str, namespace: &str) -> Result<Self, Refusal> {
        let parsed = Self::parse(text, namespace)?;
        let is_partial = |one: &String| one.contains('*') && !is_wildcard(one);
        if parsed.segments.iter().any(is_partial) { Err(INVALID) } else { Ok(parsed) }
    }

    /// Reads a requested resource: it has no wildcard, or is `*` alone.
    pub fn resource(text: &str, namespace: &str) -> Result<Self, Refusal> {
        if text.contains('*') && text != "*" { Err(INVALID) } else { Self::parse(text, namespace) }
    }

    fn parse(text: &str, namespace: &str) -> Result<Self, Refusal> {
        let lower = text.to_ascii_lowercase();
        let is_forbidden = |one: char| one < ' ' || one == '\u{7f}' || one == '\\';
        if text.is_empty()
            || text.encode_utf16().count() > MAX_LENGTH
            || text.contains(is_forbidden)
            || ["%2e", "%2f", "%5c"].iter().any(|escape| lower.contains(escape))
            || text.starts_with(' ')
            || text.ends_with(' ')
        {
            return Err(INVALID);
        }
        let has_origins = namespace == "web" || namespace.contains(':');
        let origin = if has_origins { origin(text)? } else { None };
        let mut segments: Vec<&str> = text[origin.map_or(0, str::len)..].split('/').collect();
        let leading = origin.is_none() && segments[0].is_empty();
        if let Some(origin) = origin {
            // After an origin the text ends or continues with a slash, so the first part is empty.
            segments[0] = origin;
        } else if leading {
            segments.remove(0);
        }
        let trailing = segments.len() > 1 && segments.last() == Some(&"");
        if trailing || text == "/" {
            segments.pop();
        }
        if segments.iter().any(|one| ["", ".", ".."].contains(one)) {
            return Err(INVALID);
        }
        let segments = segments.into_iter().map(str::to_owned).collect();
        Ok(Self { leading, trailing, segments, is_universal: text == "*" || text == "**" })
    }

    /// Whether this pattern matches a resource.
    pub fn matches(&self, resource: &Self) -> bool {
        if self.is_universal {
            return true;
        }
        if resource.segments == ["*"] || !self.has_markers_of(resource) {
            return false;
        }
        let first = self.close(HashSet::from([0]));
        let places = resource.segments.iter().fold(first, |places, segment| self.step(&places, Some(segment)));
        places.contains(&self.segments.len())
    }

    /// Whether this pattern matches every resource that a child pattern matches. The walk visits each position
    /// in the child, together with the set of positions that this pattern can have there. The result is false
    /// when no steps remain.
    pub fn contains(&self, child: &Self, steps: &mut usize) -> bool {
        if self.is_universal {
            return true;
        }
        if child.is_universal || !self.has_markers_of(child) {
            return false;
        }
        let mut seen = HashSet::new();
        let mut todo = vec![(0, sorted(self.close(HashSet::from([0]))), false)];
        while let Some(place) = todo.pop() {
            if !seen.insert(place.clone()) {
                continue;
            }
            let cost = 1 + self.segments.len() / 32;
            if *steps < cost {
                *steps = 0;
                return false;
            }
            *steps -= cost;
            let (at, places, has_segment) = place;
            let reached: HashSet<usize> = places.iter().copied().collect();
            match child.segments.get(at).map(String::as_str) {
                None => {
                    // Only "/" has no segment.
                    let exists = has_segment || (child.leading && !child.trailing);
                    if exists && !reached.contains(&self.segments.len()) {
                        return false;
                    }
                }
                Some("**") => {
                    todo.push((at + 1, places, has_segment));
                    todo.push((at, sorted(self.step(&reached, None)), true));
                }
                Some("*") => todo.push((at + 1, sorted(self.step(&reached, None)), true)),
                Some(segment) => todo.push((at + 1, sorted(self.step(&reached, Some(segment))), true)),
            }
        }
        true
    }

    fn has_markers_of(&self, other: &Self) -> bool {
        self.leading == other.leading && self.trailing == other.trailing
    }

    /// `**` may take no segment.
    fn close(&self, mut places: HashSet<usize>) -> HashSet<usize> {
        for (at, segment) in self.segments.iter().enumerate() {
            if segment == "**" && places.contains(&at) {
                places.insert(at + 1);
            }
        }
        places
    }

    /// The places after one more segment. None is a segment that no literal equals.
    fn step(&self, places: &HashSet<usize>, segment: Option<&str>) -> HashSet<usize> {
        let mut next = HashSet::new();
        for &at in places {
            match self.segments.get(at).map(String::as_str) {
                Some("**") => next.insert(at),
                Some("*") => next.insert(at + 1),
                own if own.is_some() && own == segment => next.insert(at + 1),
                _ => false,
            };
        }
        self.close(next)
    }
}

fn sorted(places: HashSet<usize>) -> Vec<usize> {
    let mut list: Vec<usize> = places.into_iter().collect();
    list.sort_unstable();
    list
}

fn is_wildcard(segment: &str) -> bool {
    segment == "*" || segment == "**"
}

/// The prefix `scheme://authority` of a text, if it has one.
fn origin(text: &str) -> Result<Option<&str>, Refusal> {
    let Some((scheme, rest)) = text.split_once("://") else { return Ok(None) };
    let is_scheme = scheme.starts_with(|one: char| one.is_ascii_alphabetic())
        && scheme.chars().all(|one| one.is_ascii_alphanumeric() || "+.-".contains(one));
    if !is_scheme {
        return Ok(None);
    }
    let authority = rest.split('/').next().unwrap_or("");
    if authority.is_empty() { Err(INVALID) } else { Ok(Some(&text[..scheme.len() + 3 + authority.len()])) }
}

/// Whether a capability is a subset of another one. Steps as in `Pattern::contains`.
pub fn is_subset(child: &Value, parent: &Value, steps: &mut usize) -> bool {
    if child["namespace"] != parent["namespace"] || child["action"] != parent["action"] {
        return false;
    }
    let namespace = child["namespace"].as_str().unwrap_or("");
    let read = |one: &Value| Pattern::pattern(one["resource"].as_str().unwrap_or(""), namespace);
    match (read(parent), read(child)) {
        (Ok(parent), Ok(child)) => parent.contains(&child, steps),
        _ => false,
    }
}
