//! The form of a token: section Form of vectors/tokens.md.

use crate::{keys, patterns::Pattern, refusal::Refusal};
use prost_types::Timestamp;
use serde_json::{Map, Value};
use std::collections::HashSet;

pub const FORMAT: &str = "delegateos-sjt-v1";
pub const NO_PARENT: &str = "del_000000000000";

const MAX_INTEGER: f64 = 9_007_199_254_740_991.0;
const MAX_RESOURCE_LENGTH: usize = 1024;

type Check = fn(&Value) -> Result<(), Refusal>;
/// A member: its name, its check, and whether it may be absent.
type Member = (&'static str, Check, bool);

const CAPABILITY: &[Member] = &[("namespace", name, false), ("action", name, false), ("resource", text, false)];
const AUTHORITY: &[Member] = &[
    ("issuer", principal, false),
    ("delegatee", principal, false),
    ("capabilities", capabilities, false),
    ("contractId", contract_id, false),
    ("delegationId", delegation_id, false),
    ("parentDelegationId", parent_id, false),
    ("chainDepth", integer, false),
    ("maxChainDepth", integer, false),
    ("maxBudgetMicrocents", integer, false),
    ("expiresAt", time, false),
    ("issuedAt", time, false),
];
const ATTENUATION: &[Member] = &[
    ("attenuator", principal, false),
    ("delegatee", principal, false),
    ("delegationId", delegation_id, false),
    ("contractId", contract_id, false),
    ("allowedCapabilities", capabilities, true),
    ("maxBudgetMicrocents", integer, true),
    ("expiresAt", time, true),
    ("maxChainDepth", integer, true),
];
const SIGNATURE: &[Member] = &[("signer", principal, false), ("signature", signature, false), ("covers", covers, false)];
const TOKEN: &[Member] = &[
    ("format", format, false),
    ("authority", |value| members(value, AUTHORITY), false),
    ("attenuations", |value| items(value, 32, |one| members(one, ATTENUATION)), false),
    ("signatures", |value| items(value, 33, |one| members(one, SIGNATURE)), false),
];

/// Checks a whole token, and the rules between its members.
pub fn check(token: &Value) -> Result<(), Refusal> {
    members(token, TOKEN)?;
    let authority = &token["authority"];
    let is_root = authority["parentDelegationId"] == NO_PARENT;
    demand(is_root == (authority["chainDepth"].as_f64() == Some(0.0)), "parentDelegationId")?;
    demand(millis(&authority["expiresAt"])? > millis(&authority["issuedAt"])?, "expiresAt")?;
    let mut ids = HashSet::from([&authority["parentDelegationId"]]);
    let attenuations = token["attenuations"].as_array().into_iter().flatten();
    for block in attenuations.chain([authority]) {
        demand(ids.insert(&block["delegationId"]), "delegationId")?;
    }
    Ok(())
}

fn capabilities(value: &Value) -> Result<(), Refusal> {
    items(value, 64, |one| {
        members(one, CAPABILITY)?;
        let resource = string(&one["resource"])?;
        let is_short = resource.encode_utf16().count() <= MAX_RESOURCE_LENGTH;
        Refusal::unless(is_short, "token_too_large", "resource")?;
        Pattern::pattern(resource, string(&one["namespace"])?).map(drop)
    })
}

fn format(value: &Value) -> Result<(), Refusal> {
    demand(value == FORMAT, "format")
}

fn text(value: &Value) -> Result<(), Refusal> {
    string(value).map(drop)
}

fn name(value: &Value) -> Result<(), Refusal> {
    let name = string(value)?;
    let is_known = |one: u8| one.is_ascii_lowercase() || one.is_ascii_digit() || b"_.:-".contains(&one);
    demand((1..=64).contains(&name.len()) && name.bytes().all(is_known), "name")
}

fn contract_id(value: &Value) -> Result<(), Refusal> {
    demand(is_id(string(value)?, "ct_"), "contractId")
}

fn parent_id(value: &Value) -> Result<(), Refusal> {
    demand(is_id(string(value)?, "del_"), "parentDelegationId")
}

fn delegation_id(value: &Value) -> Result<(), Refusal> {
    demand(is_id(string(value)?, "del_") && value != NO_PARENT, "delegationId")
}

fn is_id(text: &str, prefix: &str) -> bool {
    let is_digit = |one: u8| one.is_ascii_digit() || (b'a'..=b'f').contains(&one);
    text.strip_prefix(prefix).is_some_and(|digits| digits.len() == 12 && digits.bytes().all(is_digit))
}

fn principal(value: &Value) -> Result<(), Refusal> {
    keys::key_of(string(value)?).map(drop)
}

fn signature(value: &Value) -> Result<(), Refusal> {
    demand(keys::decode(string(value)?)?.len() == 64, "signature")
}

fn covers(value: &Value) -> Result<(), Refusal> {
    if value == "authority" { Ok(()) } else { integer(value) }
}

fn integer(value: &Value) -> Result<(), Refusal> {
    let is_integer = |number: f64| (0.0..=MAX_INTEGER).contains(&number) && number.fract() == 0.0;
    demand(value.as_f64().is_some_and(is_integer), "integer")
}

fn time(value: &Value) -> Result<(), Refusal> {
    millis(value).map(drop)
}

/// Milliseconds since 1970 of a time.
pub fn millis(value: &Value) -> Result<i64, Refusal> {
    const FAULT: Refusal = Refusal::new("malformed_token", "time");
    let text = string(value)?;
    let form: String = text.chars().map(|one| if one.is_ascii_digit() { '0' } else { one }).collect();
    let is_form = form == "0000-00-00T00:00:00Z" || form == "0000-00-00T00:00:00.000Z";
    let is_leap = text.get(17..19).is_none_or(|seconds| seconds > "59");
    Refusal::unless(is_form && !is_leap, FAULT.denial, FAULT.fault)?;
    let time: Timestamp = text.parse().map_err(|_| FAULT)?;
    Ok(time.seconds * 1000 + i64::from(time.nanos) / 1_000_000)
}

fn items(value: &Value, most: usize, check: Check) -> Result<(), Refusal> {
    let items = value.as_array().ok_or(Refusal::new("malformed_token", "array"))?;
    Refusal::unless(items.len() <= most, "token_too_large", "array")?;
    items.iter().try_for_each(check)
}

fn members(value: &Value, known: &[Member]) -> Result<(), Refusal> {
    let object: &Map<String, Value> = value.as_object().ok_or(Refusal::new("malformed_token", "object"))?;
    for name in object.keys() {
        demand(known.iter().any(|(one, ..)| one == name), "unknown member")?;
    }
    known.iter().try_for_each(|(name, check, is_optional)| match object.get(*name) {
        None => demand(*is_optional, name),
        Some(member) => check(member),
    })
}

/// The text of a value.
pub fn string(value: &Value) -> Result<&str, Refusal> {
    value.as_str().ok_or(Refusal::new("malformed_token", "text"))
}

fn demand(holds: bool, fault: &'static str) -> Result<(), Refusal> {
    Refusal::unless(holds, "malformed_token", fault)
}
