//! Holder proofs (RFC 9449, DPoP): vectors/holder-proofs.md.

use crate::{json, keys, keys::Keypair, refusal::Refusal, targets};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

const MAX_LENGTH: usize = 4096;
const WINDOW_MS: i64 = 60_000;
const SKEW_MS: i64 = 30_000;
const MAX_SECONDS: f64 = 1e15;

/// The values that a new proof binds. Absent members are None. `now` is in milliseconds since 1970.
pub struct Claims<'a> {
    pub htm: &'a str,
    pub htu: &'a str,
    pub token: Option<&'a str>,
    /// Digest of the arguments of a tool call.
    pub ard: Option<&'a str>,
    pub now: i64,
    pub jti: &'a str,
}

/// A new proof for one attempt of a call.
pub fn create(key: &Keypair, htm: &str, htu: &str, token: Option<&str>) -> String {
    let jti = keys::new_request_id();
    create_with(key, &Claims { htm, htu, token, ard: None, now: now_ms(), jti: &jti })
}

pub fn create_with(key: &Keypair, claims: &Claims<'_>) -> String {
    let header = json!({"alg": "EdDSA", "jwk": keys::jwk(&key.principal()), "typ": "dpop+jwt"});
    let mut payload = Map::new();
    payload.insert("htm".to_owned(), claims.htm.into());
    payload.insert("htu".to_owned(), claims.htu.into());
    payload.insert("iat".to_owned(), claims.now.div_euclid(1000).into());
    payload.insert("jti".to_owned(), claims.jti.into());
    if let Some(token) = claims.token {
        payload.insert("ath".to_owned(), keys::digest(token).into());
    }
    if let Some(ard) = claims.ard {
        payload.insert("ard".to_owned(), ard.into());
    }
    let part = |value: &Value| keys::encode(json::write(value).as_bytes());
    let signed = format!("{}.{}", part(&header), part(&Value::Object(payload)));
    let signature = keys::encode(&key.sign(signed.as_bytes()));
    format!("{signed}.{signature}")
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis() as i64)
}

/// The call as its verifier received it.
pub struct Call<'a> {
    pub htm: &'a str,
    pub htu: &'a str,
    pub now: i64,
    pub principal: Option<&'a str>,
    pub token: Option<&'a str>,
    pub ard: Option<&'a str>,
}

/// A valid proof. Times are in milliseconds since 1970.
pub struct Accepted {
    pub jti: String,
    pub principal: String,
    pub issued_at: i64,
    pub expires_at: i64,
}

/// Checks a proof.
pub fn check(proof: Option<&str>, call: &Call<'_>) -> Result<Accepted, Refusal> {
    let proof = proof.filter(|text| !text.is_empty()).ok_or(Refusal::new("proof_required", ""))?;
    demand(proof.encode_utf16().count() <= MAX_LENGTH, "size")?;
    let parts: Vec<&str> = proof.split('.').collect();
    let [header, payload, signature] = parts[..] else { return Err(Refusal::new("invalid_proof", "form")) };
    let signed = &proof[..header.len() + 1 + payload.len()];
    let (header, claims) = (read(header)?, read(payload)?);
    let signer = signer(&header)?;
    demand(call.principal.is_none_or(|principal| principal == signer), "jwk")?;
    demand(claims.get("htm").is_some_and(|htm| htm == call.htm), "htm")?;
    let htu = claims.get("htu").and_then(Value::as_str);
    demand(htu.is_some_and(|htu| targets::is_same(htu, call.htu)), "htu")?;
    let jti = claims.get("jti").and_then(Value::as_str).unwrap_or("");
    demand((8..=128).contains(&jti.len()) && jti.bytes().all(|one| one.is_ascii_graphic()), "jti")?;
    let is_whole = |iat: &f64| iat.fract() == 0.0 && iat.abs() < MAX_SECONDS;
    let iat = claims.get("iat").and_then(Value::as_f64).filter(is_whole);
    let issued_at = 1000 * iat.ok_or(Refusal::new("invalid_proof", "iat"))? as i64;
    demand((-SKEW_MS..=WINDOW_MS).contains(&(call.now - issued_at)), "iat")?;
    demand(is_claim(&claims, "ath", call.token.map(keys::digest).as_deref()), "ath")?;
    demand(is_claim(&claims, "ard", call.ard), "ard")?;
    demand(!claims.contains_key("epk"), "epk")?;
    let is_valid = keys::decode(signature)
        .and_then(|signature| Ok(keys::verify(&signature, signed.as_bytes(), &keys::key_of(signer)?)));
    demand(is_valid == Ok(true), "signature")?;
    let expires_at = issued_at + WINDOW_MS;
    Ok(Accepted { jti: jti.to_owned(), principal: signer.to_owned(), issued_at, expires_at })
}

/// A claim has the expected value; without one it is absent.
fn is_claim(claims: &Map<String, Value>, name: &str, expected: Option<&str>) -> bool {
    claims.get(name) == expected.map(Value::from).as_ref()
}

/// The principal of a header with exactly `typ`, `alg` and a public key.
fn signer(header: &Map<String, Value>) -> Result<&str, Refusal> {
    const FAULT: Refusal = Refusal::new("invalid_proof", "header");
    let is_algorithm = |value: &Value| value == "EdDSA" || value == "Ed25519";
    let is_known = header.len() == 3 && header.get("alg").is_some_and(is_algorithm);
    demand(is_known && header.get("typ").is_some_and(|typ| typ == "dpop+jwt"), "header")?;
    let jwk = header.get("jwk").and_then(Value::as_object).ok_or(FAULT)?;
    for (name, value) in jwk {
        let is_good = match name.as_str() {
            "kty" => value == "OKP",
            "crv" => value == "Ed25519",
            "x" => true,
            "kid" => value.is_string(),
            "use" => value == "sig",
            "alg" => is_algorithm(value),
            "key_ops" => value.as_array().is_some_and(|items| items.iter().all(|one| one == "verify")),
            "ext" => value.is_boolean(),
            _ => false,
        };
        demand(is_good, "header")?;
    }
    demand(jwk.contains_key("kty") && jwk.contains_key("crv"), "header")?;
    let principal = jwk.get("x").and_then(Value::as_str).ok_or(FAULT)?;
    keys::key_of(principal).map_err(|_| FAULT)?;
    Ok(principal)
}

fn read(part: &str) -> Result<Map<String, Value>, Refusal> {
    let text = keys::decode(part).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    match text.map(|text| json::parse(&text)) {
        Some(Ok(Value::Object(members))) => Ok(members),
        _ => Err(Refusal::new("invalid_proof", "form")),
    }
}

fn demand(holds: bool, fault: &'static str) -> Result<(), Refusal> {
    Refusal::unless(holds, "invalid_proof", fault)
}

/// The accepted proofs of a verifier: each counts once.
#[derive(Default)]
pub struct Memory(HashMap<(String, String), i64>);

impl Memory {
    /// Refuses a proof that was accepted before and has not expired.
    pub fn accept(&mut self, proof: &Accepted, now: i64) -> Result<(), Refusal> {
        self.0.retain(|_, expires_at| *expires_at >= now);
        let key = (proof.principal.clone(), proof.jti.clone());
        let is_new = self.0.insert(key, proof.expires_at).is_none();
        Refusal::unless(is_new, "replayed_proof", "")
    }
}
