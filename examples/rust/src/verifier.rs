//! Verification of a token that comes without a holder proof: `verify` of vectors/tokens.md.

use crate::patterns::Pattern;
use crate::token::{Level, Token};
use crate::{json, keys, refusal::Refusal, token_form};
use serde_json::{Value, json};
use std::collections::HashMap;

const MAX_LIFETIME_MS: i64 = 24 * 60 * 60 * 1000;
const MAX_SKEW_MS: i64 = 30_000;

/// The facts against which a verifier checks a token. Absent members are None or empty. `now` is in milliseconds
/// since 1970.
#[derive(Debug, Default)]
pub struct Context {
    pub trusted_roots: Vec<String>,
    pub now: i64,
    /// The spend of each block, by revocation id.
    pub spent_microcents: HashMap<String, f64>,
    /// Revocation entries, as on the page.
    pub revocations: Vec<Value>,
    /// The requested capability; None verifies the token alone.
    pub request: Option<Value>,
    pub contract_id: Option<String>,
    /// Pairs `namespace:action` that the contract requires.
    pub required_capabilities: Vec<String>,
    /// Pairs of a recorded part of a contract, and the contract.
    pub sub_contracts: Vec<Value>,
    /// The verifier's own bound.
    pub max_chain_depth: Option<f64>,
}

/// The limits that a verified token grants: those of its last block, and the smallest remaining budget of all
/// blocks.
pub struct Verified {
    pub token: Token,
    pub last: Level,
    pub remaining_budget_microcents: f64,
}

/// Verifies a token text. The first failing step of the page gives the refusal.
pub fn verify(text: &str, context: &Context) -> Result<Verified, Refusal> {
    let token = Token::parse(text)?;
    let ids = token.revocation_ids();
    check_revocations(&token, &ids, &context.revocations)?;
    check_signatures(&token, &context.trusted_roots)?;
    let levels = token.levels(&context.sub_contracts)?;
    let last = levels[levels.len() - 1].clone();
    let is_bounded = context.max_chain_depth.is_none_or(|most| last.chain_depth <= most);
    demand(is_bounded, "chain_depth_exceeded")?;
    let issued_at = token_form::millis(&token.authority()["issuedAt"])?;
    let is_timely = issued_at <= context.now + MAX_SKEW_MS && levels[0].expires_at - issued_at <= MAX_LIFETIME_MS;
    demand(is_timely, "malformed_token")?;
    demand(context.now <= last.expires_at, "expired")?;
    let rests = levels.iter().zip(&ids).map(|(level, id)| {
        level.max_budget_microcents - context.spent_microcents.get(id).copied().unwrap_or(0.0)
    });
    let remaining_budget_microcents = rests.fold(f64::INFINITY, f64::min);
    demand(remaining_budget_microcents > 0.0, "budget_exceeded")?;
    check_contract(&last, context)?;
    context.request.as_ref().map_or(Ok(()), |request| check_request(&last, request))?;
    Ok(Verified { token, last, remaining_budget_microcents })
}

/// The principal that signs a block.
fn signer(block: &Value) -> &Value {
    block.get("attenuator").unwrap_or(&block["issuer"])
}

/// Step 2 of `verify`. A revocation counts if its signer signed the block or a block above, or is the block's
/// delegatee.
fn check_revocations(token: &Token, ids: &[String], entries: &[Value]) -> Result<(), Refusal> {
    let mut signers = Vec::new();
    for (block, id) in token.blocks().zip(ids) {
        signers.push(signer(block));
        for entry in entries {
            let revoker = &entry["revokedBy"];
            let is_entitled = signers.contains(&revoker) || *revoker == block["delegatee"];
            let mut signed = entry.clone();
            signed.as_object_mut().map(|members| members.remove("signature"));
            let counts = entry["revocationId"] == *id && is_entitled;
            demand(!(counts && is_signed(revoker, &signed, &entry["signature"])), "revoked")?;
        }
    }
    Ok(())
}

/// Step 3 of `verify`.
fn check_signatures(token: &Token, trusted_roots: &[String]) -> Result<(), Refusal> {
    let blocks = token.attenuations();
    demand(token.signatures().len() == blocks.len() + 1, "invalid_signature")?;
    demand(trusted_roots.iter().any(|root| *root == token.authority()["issuer"]), "invalid_signature")?;
    for (index, (block, entry)) in token.blocks().zip(token.signatures()).enumerate() {
        let signed = match index {
            0 => json!({ "authority": token.authority() }),
            _ => json!({ "attenuations": blocks[..index], "authority": token.authority() }),
        };
        let does_cover = match index.checked_sub(1) {
            None => entry["covers"] == "authority",
            Some(above) => entry["covers"].as_f64() == Some(above as f64),
        };
        let is_meant = entry["signer"] == *signer(block) && does_cover;
        demand(is_meant && is_signed(signer(block), &signed, &entry["signature"]), "invalid_signature")?;
    }
    Ok(())
}

/// Whether a principal signed the digest of a value.
fn is_signed(principal: &Value, value: &Value, signature: &Value) -> bool {
    let check = || {
        let key = keys::key_of(token_form::string(principal)?)?;
        let signature = keys::decode(token_form::string(signature)?)?;
        Ok::<bool, Refusal>(keys::verify(&signature, &keys::blake2b(json::write(value).as_bytes()), &key))
    };
    check() == Ok(true)
}

/// Step 8 of `verify`.
fn check_contract(last: &Level, context: &Context) -> Result<(), Refusal> {
    demand(context.contract_id.as_ref().is_none_or(|id| last.contract_id == *id), "contract_mismatch")?;
    for pair in &context.required_capabilities {
        let (namespace, action) = pair.rsplit_once(':').unwrap_or(("", pair));
        let is_granted = granted(last, namespace, action).next().is_some();
        demand(is_granted, "contract_mismatch")?;
    }
    Ok(())
}

/// Step 9 of `verify`.
fn check_request(last: &Level, request: &Value) -> Result<(), Refusal> {
    let [namespace, action, resource] = ["namespace", "action", "resource"].map(|name| token_form::string(&request[name]));
    let (namespace, action) = (namespace?, action?);
    let asked = Pattern::resource(resource?, namespace)?;
    let does_match = |one: &Value| {
        let pattern = token_form::string(&one["resource"]).and_then(|text| Pattern::pattern(text, namespace));
        pattern.is_ok_and(|pattern| pattern.matches(&asked))
    };
    demand(granted(last, namespace, action).any(does_match), "capability_not_granted")
}

/// The capabilities of a level with a namespace and an action.
fn granted<'a>(last: &'a Level, namespace: &'a str, action: &'a str) -> impl Iterator<Item = &'a Value> {
    let all = last.capabilities.as_array().into_iter().flatten();
    all.filter(move |one| one["namespace"] == namespace && one["action"] == action)
}

fn demand(holds: bool, denial: &'static str) -> Result<(), Refusal> {
    Refusal::unless(holds, denial, "")
}
