//! Ed25519 keys, digests and base64url: vectors/keys-and-principals.md.

use crate::{json, refusal::Refusal};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use blake2::{Blake2b, Blake2bMac, digest::consts::U32};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{fs, io, io::Write, os::unix::fs::OpenOptionsExt, path::Path};

/// The prime of the field, little-endian.
const FIELD: [u8; 32] = {
    let mut field = [0xff; 32];
    field[0] = 0xed;
    field[31] = 0x7f;
    field
};

/// A private key.
pub struct Keypair(SigningKey);

impl Keypair {
    pub fn new(seed: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(seed))
    }

    /// Reads the seed of a file, which only its owner may read. A missing file is made with a new seed.
    pub fn of(file: &Path) -> io::Result<Self> {
        if !file.exists() {
            let mut new = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
            writeln!(new, "{}", encode(&random::<32>()))?;
        }
        let seed = decode(fs::read_to_string(file)?.trim()).map_err(io::Error::other)?;
        let seed = seed.try_into().map_err(|_| io::Error::other("a seed has 32 bytes"))?;
        Ok(Self::new(&seed))
    }

    /// The public key in base64url, 43 characters.
    pub fn principal(&self) -> String {
        encode(self.0.verifying_key().as_bytes())
    }

    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }

    /// Signs a digest of canonical JSON, as tokens and documents are signed. Returns base64url.
    pub fn sign_digest_of(&self, value: &Value) -> String {
        encode(&self.sign(&blake2b(json::write(value).as_bytes())))
    }
}

/// Whether a signature is valid: the library's strict check, and canonical encodings.
pub fn verify(signature: &[u8], message: &[u8], key: &[u8]) -> bool {
    let (Ok(signature), Ok(key)) = (Signature::from_slice(signature), <&[u8; 32]>::try_from(key)) else {
        return false;
    };
    if !is_canonical(signature.r_bytes()) || !is_canonical(key) {
        return false;
    }
    VerifyingKey::from_bytes(key).is_ok_and(|key| key.verify_strict(message, &signature).is_ok())
}

/// The key of a principal.
pub fn key_of(principal: &str) -> Result<[u8; 32], Refusal> {
    let key: Option<[u8; 32]> = decode(principal)?.try_into().ok();
    key.filter(|key| is_canonical(key) && !is_weak(key)).ok_or(Refusal::new("malformed_token", "principal"))
}

/// Whether a key is a point of prime order, as the platform requires of registered principals.
pub fn is_admissible(key: &[u8; 32]) -> bool {
    VerifyingKey::from_bytes(key).is_ok_and(|key| !key.is_weak() && key.to_edwards().is_torsion_free())
}

fn is_canonical(point: &[u8; 32]) -> bool {
    let mut y = *point;
    y[31] &= 0x7f;
    y.iter().rev().lt(FIELD.iter().rev())
}

/// Whether a key has small order. A key that is no point of the curve is refused with its signature.
fn is_weak(key: &[u8; 32]) -> bool {
    VerifyingKey::from_bytes(key).is_ok_and(|key| key.is_weak())
}

/// The public key as a JSON Web Key (RFC 8037).
pub fn jwk(principal: &str) -> Value {
    json!({"crv": "Ed25519", "kty": "OKP", "x": principal})
}

/// The RFC 7638 thumbprint of a principal's key.
pub fn thumbprint(principal: &str) -> String {
    digest(&json::write(&jwk(principal)))
}

/// SHA-256 of a text, in base64url.
pub fn digest(text: &str) -> String {
    encode(&Sha256::digest(text))
}

/// BLAKE2b with 32 bytes of output and no key.
pub fn blake2b(data: &[u8]) -> [u8; 32] {
    Blake2b::<U32>::digest(data).into()
}

/// BLAKE2b with 32 bytes of output and a key.
pub fn keyed_blake2b(data: &[u8], key: &[u8; 32]) -> [u8; 32] {
    use blake2::digest::{KeyInit, Mac};
    let mac = Blake2bMac::<U32>::new_from_slice(key).expect("keys of up to 64 bytes are accepted");
    mac.chain_update(data).finalize().into_bytes().into()
}

/// Random bytes. Panics where the system has none, because no key is safe then.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("random bytes of the system");
    bytes
}

/// A new id for a request.
pub fn new_request_id() -> String {
    encode(&random::<16>())
}

pub fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Reads base64url. A byte sequence has one spelling only.
pub fn decode(text: &str) -> Result<Vec<u8>, Refusal> {
    URL_SAFE_NO_PAD.decode(text).map_err(|_| Refusal::new("malformed_token", "base64url"))
}
