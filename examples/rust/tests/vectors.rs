//! Runs the cases under vectors/ with the code of these examples.

use depute_examples::patterns::{self, Pattern};
use depute_examples::proof::{self, Call, Claims, Memory};
use depute_examples::verifier::{self, Context, Verified};
use depute_examples::{json, keys, keys::Keypair, refusal::Refusal, targets, token::Token};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// The answer to a case of an operation.
type Answer = fn(&str, &Value) -> Result<Value, Refusal>;

/// Runs all cases of a file.
fn run(file: &str, operations: &[&str], answer: Answer) {
    let folder = std::env::var("VECTORS").unwrap_or_else(|_| "../../vectors".to_owned());
    let text = std::fs::read_to_string(format!("{folder}/{file}.json")).expect("the file of vectors");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let mut count = 0;
    for case in document["cases"].as_array().expect("cases") {
        let operation = case["operation"].as_str().expect("an operation");
        assert!(operations.contains(&operation), "{file}: the operation {operation} is not known");
        count += 1;
        let mut actual = Map::new();
        match answer(operation, &case["input"]) {
            Ok(expected) => drop(actual.insert("expected".to_owned(), expected)),
            Err(Refusal { denial, fault }) => {
                actual.insert("refusal".to_owned(), denial.into());
                if case.get("fault").is_some() {
                    actual.insert("fault".to_owned(), fault.into());
                }
            }
        }
        let mut expected = case.as_object().expect("a case").clone();
        expected.retain(|name, _| ["expected", "refusal", "fault"].contains(&name.as_str()));
        let [actual, expected] = [actual, expected].map(|members| json::write(&Value::Object(members)));
        assert_eq!(actual, expected, "{}", case["name"]);
    }
    println!("{file}: {count} cases");
    assert!(count > 0, "{file} has no cases");
}

#[test]
fn canonical_json() {
    run("canonical-json", &["canonicalize", "version-hash", "names-version"], |operation, input| match operation {
        "canonicalize" => {
            let canonical = json::write(&json::parse(text(input, "json"))?);
            let bytes = canonical.as_bytes();
            Ok(json!({
                "canonical": canonical,
                "utf8Hex": hex(bytes),
                "sha256Hex": hex(&Sha256::digest(bytes)),
                "blake2b256Hex": hex(&keys::blake2b(bytes)),
            }))
        }
        "version-hash" => {
            let digest = hex(&Sha256::digest(json::write(input)));
            Ok(json!({"digestHex": digest, "hash8": digest[..8], "hash16": digest[..16]}))
        }
        _ => {
            let hash = text(input, "hash");
            let is_hash = (8..=64).contains(&hash.len()) && hash.bytes().all(|one| one.is_ascii_hexdigit());
            let names = is_hash && text(input, "digestHex").starts_with(&hash.to_lowercase());
            Ok(json!({ "names": names }))
        }
    });
}

#[test]
fn keys_and_principals() {
    let operations = ["decode-base64url", "keypair", "sign", "verify", "principal", "blake2b"];
    run("keys-and-principals", &operations, |operation, input| match operation {
        "decode-base64url" => Ok(json!({"hex": hex(&keys::decode(text(input, "text"))?)})),
        "keypair" => {
            let principal = keypair(input).principal();
            let key = hex(&keys::decode(&principal)?);
            Ok(json!({"publicKeyHex": key, "principal": principal, "thumbprint": keys::thumbprint(&principal)}))
        }
        "sign" => {
            let signature = keypair(input).sign(&bytes(input, "messageHex"));
            Ok(json!({"signature": keys::encode(&signature)}))
        }
        "verify" => {
            let [signature, message, key] = ["signatureHex", "messageHex", "publicKeyHex"].map(|name| bytes(input, name));
            Ok(json!({"valid": keys::verify(&signature, &message, &key)}))
        }
        "principal" => {
            let key = keys::key_of(text(input, "principal"))?;
            Ok(json!({"publicKeyHex": hex(&key), "admissible": keys::is_admissible(&key)}))
        }
        _ => {
            let data = bytes(input, "dataHex");
            let key: [u8; 32] = bytes(input, "keyHex").try_into().expect("32 bytes");
            let (unkeyed, keyed) = (keys::blake2b(&data), keys::keyed_blake2b(&data, &key));
            Ok(json!({"unkeyedHex": hex(&unkeyed), "keyedHex": hex(&keyed)}))
        }
    });
}

#[test]
fn tokens() {
    let operations = ["mint", "attenuate", "parse", "verify", "match", "subset"];
    run("tokens", &operations, |operation, input| match operation {
        "mint" => Token::mint(&keypair(input), &input["authority"]).map(|token| signed(&token)),
        "attenuate" => {
            let token = Token::parse(text(input, "token"))?;
            token.attenuate(&keypair(input), input["block"].clone()).map(|token| signed(&token))
        }
        "parse" => {
            let token = Token::parse(text(input, "token"))?;
            Ok(json!({"revocationIds": token.revocation_ids()}))
        }
        "verify" => verifier::verify(text(input, "token"), &context(&input["context"])).map(verified),
        "match" => {
            let pattern = Pattern::pattern(text(input, "pattern"), text(input, "namespace"))?;
            let resource = Pattern::resource(text(input, "resource"), text(input, "namespace"))?;
            Ok(json!({"matches": pattern.matches(&resource)}))
        }
        _ => {
            let mut steps = patterns::MAX_STEPS;
            Ok(json!({"isSubset": patterns::is_subset(&input["child"], &input["parent"], &mut steps)}))
        }
    });
}

#[test]
fn holder_proofs() {
    let operations = ["target", "create", "arguments-digest", "check", "same-target", "check-in-order"];
    run("holder-proofs", &operations, |operation, input| match operation {
        "target" => Ok(target(input)),
        "create" => Ok(created(input)),
        "arguments-digest" => Ok(json!({"ard": keys::digest(&json::write(&input["arguments"]))})),
        "same-target" => Ok(json!({"isSame": targets::is_same(text(input, "claimed"), text(input, "htu"))})),
        "check" => {
            let accepted = proof::check(input["proof"].as_str(), &call(&input["expected"]))?;
            Ok(json!({
                "jti": accepted.jti,
                "principal": accepted.principal,
                "thumbprint": keys::thumbprint(&accepted.principal),
                "issuedAt": accepted.issued_at,
                "expiresAt": accepted.expires_at,
            }))
        }
        _ => Ok(in_order(input)),
    });
}

/// The result of a signing operation.
fn signed(token: &Token) -> Value {
    let text = json::write(&token.signed_value());
    let signature = token.signatures().last().map(|one| &one["signature"]);
    let mut answer = json!({
        "digestHex": hex(&keys::blake2b(text.as_bytes())),
        "signature": signature,
        "token": token.text,
        "revocationIds": token.revocation_ids(),
    });
    if token.attenuations().is_empty() {
        answer["signedText"] = text.into();
    }
    answer
}

fn context(input: &Value) -> Context {
    let items = |name: &str| input[name].as_array().cloned().unwrap_or_default();
    let texts = |name: &str| items(name).iter().map(|one| one.as_str().expect("a text").to_owned()).collect();
    let spent = input["spentMicrocents"].as_object().into_iter().flatten();
    Context {
        trusted_roots: texts("trustedRoots"),
        now: input["now"].as_i64().expect("a time"),
        spent_microcents: spent.map(|(id, sum)| (id.clone(), sum.as_f64().expect("a sum"))).collect(),
        revocations: items("revocations"),
        request: input.get("request").cloned(),
        contract_id: input["contractId"].as_str().map(str::to_owned),
        required_capabilities: texts("requiredCapabilities"),
        sub_contracts: items("subContracts"),
        max_chain_depth: input["maxChainDepth"].as_f64(),
    }
}

fn verified(Verified { token, last, remaining_budget_microcents }: Verified) -> Value {
    json!({
        "scope": {
            "capabilities": last.capabilities,
            "remainingBudgetMicrocents": remaining_budget_microcents,
            "chainDepth": last.chain_depth,
            "maxChainDepth": last.chain_depth + last.remaining,
            "contractId": last.contract_id,
            "delegationId": last.delegation_id,
            "issuer": token.authority()["issuer"],
            "holder": last.delegatee,
            "expiresAt": last.expires_at,
        },
        "revocationIds": token.revocation_ids(),
    })
}

fn target(input: &Value) -> Value {
    let of_method = || format!("/{}/{}", text(input, "service"), text(input, "method"));
    let path = input["path"].as_str().map_or_else(of_method, str::to_owned);
    let of_protocol = if input["protocol"] == "connect-get" { "GET" } else { "POST" };
    let htm = input["httpMethod"].as_str().unwrap_or(of_protocol);
    json!({"htm": htm, "htu": targets::of(text(input, "publicUrl"), &path)})
}

fn created(input: &Value) -> Value {
    let ard = input.get("arguments").map(|arguments| keys::digest(&json::write(arguments)));
    let claims = Claims {
        htm: text(input, "htm"),
        htu: text(input, "htu"),
        token: input["token"].as_str(),
        ard: ard.as_deref(),
        now: input["now"].as_i64().expect("a time"),
        jti: text(input, "jti"),
    };
    let proof = proof::create_with(&keypair(input), &claims);
    let part = |index| {
        let part: &str = proof.split('.').nth(index).expect("a part");
        String::from_utf8(keys::decode(part).expect("base64url")).expect("UTF-8")
    };
    json!({"header": part(0), "payload": part(1), "proof": proof})
}

fn call(input: &Value) -> Call<'_> {
    Call {
        htm: text(input, "htm"),
        htu: text(input, "htu"),
        now: input["now"].as_i64().expect("a time"),
        principal: input["principal"].as_str(),
        token: input["token"].as_str(),
        ard: input["ard"].as_str(),
    }
}

fn in_order(input: &Value) -> Value {
    let mut memory = Memory::default();
    let presentations = input["presentations"].as_array().into_iter().flatten();
    let answers: Vec<&str> = presentations
        .map(|one| {
            let call = Call { htm: text(input, "htm"), htu: text(input, "htu"), ..call_at(one) };
            let accepted = proof::check(one["proof"].as_str(), &call).and_then(|proof| memory.accept(&proof, call.now));
            accepted.map_or_else(|refusal| refusal.denial, |()| "accepted")
        })
        .collect();
    json!({ "answers": answers })
}

fn call_at(one: &Value) -> Call<'_> {
    let now = one["now"].as_i64().expect("a time");
    Call { htm: "", htu: "", now, principal: one["principal"].as_str(), token: one["token"].as_str(), ard: None }
}

fn keypair(input: &Value) -> Keypair {
    Keypair::new(&bytes(input, "seedHex").try_into().expect("32 bytes"))
}

fn text<'a>(input: &'a Value, name: &str) -> &'a str {
    input[name].as_str().unwrap_or_else(|| panic!("{name} is no text"))
}

fn bytes(input: &Value, name: &str) -> Vec<u8> {
    let digits = text(input, name);
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("digits")).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
