import { canonicalJson } from "@depute/core";
import { objectSigningInput, signObject, verifyObject } from "@depute/dct";
import { engine, hex, keypairOf, principalOf, seedOf, type VectorCase, type VectorFile } from "./shared.ts";

const BODY = {
  id: "att_0000000000a1",
  version: "0.1" as const,
  contractId: "ct_a1b2c3d4e5f6",
  delegationId: "del_000000000001",
  principal: principalOf("alice"),
  createdAt: "2026-02-17T12:10:00.000Z",
  type: "completion" as const,
  result: {
    success: true,
    output: { text: "caf\u00e9", score: 0.5 },
    costMicrocents: 120,
    durationMs: 1500.25,
  },
  childAttestations: ["att_0000000000b2"],
};

export function attestationVectors(): VectorFile {
  return { specification: "attestations.md", cases: [...signed(), ...verified()] };
}

function signed(): VectorCase[] {
  const outcome = { method: "schema_match", passed: false, score: 0, details: "" };
  const result = {
    success: false,
    outputHash: "x",
    costMicrocents: 0,
    durationMs: 0,
    verificationOutcome: outcome,
  };
  const failed = { ...BODY, type: "delegation_verification" as const, result, childAttestations: [] };
  return [BODY, failed].map((body) => ({
    name: `sign: ${body.type}`,
    operation: "sign",
    input: { seedHex: hex(seedOf("alice")), body },
    expected: {
      canonical: canonicalJson(body),
      digestHex: hex(objectSigningInput(engine, body)),
      signature: signObject(engine, "attestation", body, keypairOf("alice")).signature,
    },
  }));
}

function verified(): VectorCase[] {
  const honest = signObject(engine, "attestation", BODY, keypairOf("alice"));
  const { result } = honest;
  const rows: readonly (readonly [name: string, attestation: object])[] = [
    ["an honest attestation", honest],
    ["another result", { ...honest, result: { ...result, success: false } }],
    ["another principal", { ...honest, principal: principalOf("bob") }],
    ["an unknown member", { ...honest, note: "x" }],
    ["a member that is missing", { ...honest, childAttestations: undefined }],
    ["another version", { ...honest, version: "0.2" }],
    ["an id of another kind", { ...honest, id: "ct_0000000000a1" }],
    ["another type", { ...honest, type: "opinion" }],
    ["a negative cost", { ...honest, result: { ...result, costMicrocents: -1 } }],
    ["a time with an offset", { ...honest, createdAt: "2026-02-17T12:10:00+00:00" }],
  ];
  return rows.map(([name, value]) => {
    const attestation = JSON.parse(JSON.stringify(value)) as object;
    const row = { name: `verify: ${name}`, operation: "verify", input: { attestation } };
    const checked = verifyObject(engine, "attestation", attestation);
    return checked.ok ? { ...row, expected: { valid: true } } : { ...row, refusal: checked.refusal.problem };
  });
}
