//! Tokens, which are chains of signed blocks: vectors/tokens.md.

use crate::{json, keys, keys::Keypair, patterns, refusal::Refusal, token_form};
use serde_json::{Value, json};

const MAX_LENGTH: usize = 16_000;
const MAX_NESTING: usize = 8;

/// A token whose form and limits are valid. Verifiers check its signatures.
#[derive(Debug, Clone)]
pub struct Token {
    /// The text that calls carry.
    pub text: String,
    document: Value,
}

/// The limits after one block of a chain.
#[derive(Debug, Clone)]
pub struct Level {
    pub delegatee: Value,
    pub contract_id: Value,
    pub delegation_id: Value,
    pub capabilities: Value,
    pub max_budget_microcents: f64,
    /// In milliseconds since 1970.
    pub expires_at: i64,
    pub chain_depth: f64,
    /// The number of further blocks.
    pub remaining: f64,
}

impl Token {
    /// Reads a token text. Refuses any other form and spelling.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        Refusal::unless(text.len() <= MAX_LENGTH, "token_too_large", "")?;
        let content = String::from_utf8(keys::decode(text)?).map_err(|_| Refusal::new("malformed_token", "UTF-8"))?;
        let document = json::parse(&content).map_err(|_| Refusal::new("malformed_token", "JSON"))?;
        Refusal::unless(json::nesting(&document) <= MAX_NESTING, "malformed_token", "nesting")?;
        token_form::check(&document)?;
        Refusal::unless(json::write(&document) == content, "malformed_token", "spelling")?;
        Ok(Self { text: text.to_owned(), document })
    }

    /// A root token that its issuer signs.
    pub fn mint(issuer: &Keypair, authority: &Value) -> Result<Self, Refusal> {
        let covered = json!({ "authority": authority });
        let signature = json!({
            "signer": issuer.principal(),
            "signature": issuer.sign_digest_of(&covered),
            "covers": "authority",
        });
        Self::of(authority, &[], &[signature])
    }

    /// Returns the token with one more block, which allows less. The method makes no call to the platform.
    ///
    /// Members of `block` have the names that vectors/tokens.md uses; absent limits keep their value. Refuses a block that
    /// allows more.
    pub fn attenuate(&self, attenuator: &Keypair, block: Value) -> Result<Self, Refusal> {
        demand_narrower(block["attenuator"] == attenuator.principal(), "key")?;
        let mut blocks = self.attenuations().to_vec();
        blocks.push(block);
        let covered = json!({ "attenuations": blocks, "authority": self.document["authority"] });
        let mut signatures = self.signatures().to_vec();
        signatures.push(json!({
            "signer": attenuator.principal(),
            "signature": attenuator.sign_digest_of(&covered),
            "covers": blocks.len() - 1,
        }));
        Self::of(&self.document["authority"], &blocks, &signatures)
    }

    fn of(authority: &Value, attenuations: &[Value], signatures: &[Value]) -> Result<Self, Refusal> {
        let document = json!({
            "format": token_form::FORMAT,
            "authority": authority,
            "attenuations": attenuations,
            "signatures": signatures,
        });
        let token = Self::parse(&keys::encode(json::write(&document).as_bytes()))?;
        token.levels(&[])?;
        Ok(token)
    }

    pub fn attenuations(&self) -> &[Value] {
        self.document["attenuations"].as_array().map_or(&[], Vec::as_slice)
    }

    pub fn signatures(&self) -> &[Value] {
        self.document["signatures"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The value that the last signature covers: all blocks of the token.
    pub fn signed_value(&self) -> Value {
        let authority = &self.document["authority"];
        match self.attenuations() {
            [] => json!({ "authority": authority }),
            blocks => json!({ "attenuations": blocks, "authority": authority }),
        }
    }

    /// The contract of the last block.
    pub fn contract_id(&self) -> &str {
        let last = self.attenuations().last().unwrap_or(&self.document["authority"]);
        last["contractId"].as_str().unwrap_or("")
    }

    /// The id by which each block can be revoked, the authority's first.
    pub fn revocation_ids(&self) -> Vec<String> {
        self.blocks().map(|block| keys::encode(&keys::blake2b(json::write(block).as_bytes()))).collect()
    }

    /// The authority, then the attenuations.
    pub fn blocks(&self) -> impl Iterator<Item = &Value> {
        std::iter::once(&self.document["authority"]).chain(self.attenuations())
    }

    pub fn authority(&self) -> &Value {
        &self.document["authority"]
    }

    /// Returns the limits after each block. Refuses a chain in which a block allows more than the block above.
    ///
    /// `sub_contracts` are pairs: a recorded part of a contract, and the contract.
    pub fn levels(&self, sub_contracts: &[Value]) -> Result<Vec<Level>, Refusal> {
        let authority = self.authority();
        let remaining = number(&authority["maxChainDepth"]) - number(&authority["chainDepth"]);
        Refusal::unless(remaining >= 0.0, "chain_depth_exceeded", "")?;
        let mut level = Level {
            delegatee: authority["delegatee"].clone(),
            contract_id: authority["contractId"].clone(),
            delegation_id: authority["delegationId"].clone(),
            capabilities: authority["capabilities"].clone(),
            max_budget_microcents: number(&authority["maxBudgetMicrocents"]),
            expires_at: token_form::millis(&authority["expiresAt"])?,
            chain_depth: number(&authority["chainDepth"]),
            remaining,
        };
        let mut levels = vec![level.clone()];
        let mut steps = patterns::MAX_STEPS;
        for block in self.attenuations() {
            let below = level.below(block, &mut steps)?;
            let is_part = || sub_contracts.contains(&json!([below.contract_id, level.contract_id]));
            let is_covered = below.contract_id == level.contract_id || is_part();
            Refusal::unless(is_covered, "contract_mismatch", "contractId")?;
            levels.push(below.clone());
            level = below;
        }
        Ok(levels)
    }
}

impl Level {
    fn below(&self, block: &Value, steps: &mut usize) -> Result<Self, Refusal> {
        demand_narrower(block["attenuator"] == self.delegatee, "attenuator")?;
        let granted = self.capabilities.as_array().map_or(&[][..], Vec::as_slice);
        for child in block["allowedCapabilities"].as_array().into_iter().flatten() {
            let is_granted = granted.iter().any(|one| patterns::is_subset(child, one, steps));
            demand_narrower(is_granted, "allowedCapabilities")?;
        }
        let budget = block.get("maxBudgetMicrocents").map_or(self.max_budget_microcents, number);
        demand_narrower(budget <= self.max_budget_microcents, "maxBudgetMicrocents")?;
        let expires_at = block.get("expiresAt").map_or(Ok(self.expires_at), token_form::millis)?;
        demand_narrower(expires_at <= self.expires_at, "expiresAt")?;
        Refusal::unless(self.remaining > 0.0, "chain_depth_exceeded", "")?;
        let remaining = block.get("maxChainDepth").map_or(self.remaining - 1.0, number);
        demand_narrower(remaining < self.remaining, "maxChainDepth")?;
        Ok(Self {
            delegatee: block["delegatee"].clone(),
            contract_id: block["contractId"].clone(),
            delegation_id: block["delegationId"].clone(),
            capabilities: block.get("allowedCapabilities").unwrap_or(&self.capabilities).clone(),
            max_budget_microcents: budget,
            expires_at,
            chain_depth: self.chain_depth + 1.0,
            remaining,
        })
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

fn demand_narrower(holds: bool, fault: &'static str) -> Result<(), Refusal> {
    Refusal::unless(holds, "attenuation_violation", fault)
}
