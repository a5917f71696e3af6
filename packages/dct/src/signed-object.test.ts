import { canonicalBytes, decodeBase64Url } from "@depute/core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { authoritySigningInput } from "./create.ts";
import { TokenError } from "./denial.ts";
import { nativeEngine } from "./engine/native.ts";
import { portableEngine } from "./engine/portable.ts";
import { createProof } from "./proof.ts";
import { createRevocation } from "./revocation.ts";
import { parseToken } from "./serialise.ts";
import {
  attachObjectSignature,
  type ObjectKind,
  objectSigningInput,
  signObject,
  verifyObject,
} from "./signed-object.ts";
import { alice, bob, CONTRACT, delegation, engine, id, NOW, rootToken } from "./testing/fixtures.ts";
import type { Attestation, TaskContract } from "./types.ts";

const contractBody: Omit<TaskContract, "signature"> = {
  id: CONTRACT,
  version: "0.1",
  issuer: id(alice),
  createdAt: "2026-02-17T12:00:00.000Z",
  task: {
    title: "t",
    description: "d",
    inputs: { text: "caf\u00e9", n: 1.5 },
    outputSchema: { type: "object" },
  },
  verification: { method: "schema_match", schema: { type: "object" } },
  constraints: {
    maxBudgetMicrocents: 1000,
    deadline: "2026-02-17T13:00:00Z",
    maxChainDepth: 2,
    requiredCapabilities: ["web:search"],
  },
};
const attestationBody: Omit<Attestation, "signature"> = {
  id: "att_000000000001",
  version: "0.1",
  contractId: CONTRACT,
  delegationId: delegation(1),
  principal: id(alice),
  createdAt: "2026-02-17T12:30:00.000Z",
  type: "completion",
  result: {
    success: true,
    output: { score: 0.5 },
    costMicrocents: 10,
    durationMs: 12.5,
    verificationOutcome: { method: "schema_match", passed: true, score: 1 },
  },
  childAttestations: [],
};
const contract = signObject(engine, "contract", contractBody, alice);
const attestation = signObject(engine, "attestation", attestationBody, alice);
const revocation = createRevocation(engine, authorityId(), "chain", alice, NOW);
const objects: [ObjectKind, object][] = [
  ["contract", contract],
  ["attestation", attestation],
  ["revocation", revocation],
];

describe.each([nativeEngine, portableEngine])("signed objects, by $name", (one) => {
  test.each(objects)("a %s verifies, and every changed member is detected", (kind, object) => {
    expect(verifyObject(one, kind, object)).toEqual({ ok: true, object });
    const changed = {
      ...object,
      [kind === "contract" ? "createdAt" : kind === "attestation" ? "createdAt" : "revokedAt"]:
        "2026-02-18T00:00:00Z",
    };
    expect(verifyObject(one, kind, changed)).toMatchObject({ refusal: { problem: "invalid_signature" } });
  });

  test("sign to the same bytes", () => {
    expect(signObject(one, "contract", contractBody, alice)).toEqual(contract);
  });
});

test("the signature covers BLAKE2b-256 of all members but itself (DelegateOS 7.2)", () => {
  const digest = engine.blake2b256(canonicalBytes(contractBody));
  expect(objectSigningInput(engine, contract)).toEqual(digest);
  const key = decodeBase64Url(id(alice)) as Uint8Array;
  expect(engine.verify(decodeBase64Url(contract.signature) as Uint8Array, digest, key)).toBe(true);
});

describe("K9 no valid object of one kind verifies as another", () => {
  const token = rootToken();
  const all: [string, unknown][] = [
    ...objects,
    ["token", token],
    ["authority", { ...token.authority, signature: token.signatures[0]?.signature }],
  ];

  test.each(all)("%s", (kind, object) => {
    for (const other of ["contract", "attestation", "revocation"] as const) {
      expect(verifyObject(engine, other, object).ok).toBe(other === kind);
    }
    expect(parseToken(Buffer.from(canonicalBytes(object)).toString("base64url")).ok).toBe(kind === "token");
  });

  test("the signed bytes of a proof are not a digest, so no other signature covers them", () => {
    const proof = createProof(engine, alice, { htm: "POST", htu: "u", now: NOW });
    const signature = decodeBase64Url(proof.split(".")[2] as string) as Uint8Array;
    const key = decodeBase64Url(id(alice)) as Uint8Array;
    const digests = [objectSigningInput(engine, contract), authoritySigningInput(engine, token.authority)];
    expect(proof.lastIndexOf(".")).toBeGreaterThan(32);
    for (const digest of digests) expect(engine.verify(signature, digest, key)).toBe(false);
    expect(() => attachObjectSignature(engine, "contract", contractBody, signature)).toThrow(TokenError);
  });
});

describe("a signed object is refused", () => {
  test.each<[string, ObjectKind, object, string]>([
    ["an unknown member", "contract", { ...contract, extra: 1 }, "unknown member"],
    ["a missing member", "contract", omit(contract, "task"), "task: missing"],
    ["null", "attestation", { ...attestation, result: null }, "result: not an object"],
    ["another version", "contract", { ...contract, version: "0.2" }, "version: not 0.1"],
    [
      "a nested unknown member",
      "contract",
      { ...contract, constraints: { ...contract.constraints, x: 1 } },
      "constraints: unknown member",
    ],
    [
      "a score over 1",
      "attestation",
      {
        ...attestation,
        result: { ...attestation.result, verificationOutcome: { method: "m", passed: true, score: 1.1 } },
      },
      "result.verificationOutcome.score: not a number from 0 to 1",
    ],
    [
      "NaN in free data",
      "contract",
      { ...contract, task: { ...contract.task, inputs: { n: Number.NaN } } },
      "not JSON",
    ],
    [
      "a fractional cost",
      "attestation",
      { ...attestation, result: { ...attestation.result, costMicrocents: 0.5 } },
      "result.costMicrocents: not an integer from 0 to 2^53-1",
    ],
    ["another scope", "revocation", { ...revocation, scope: "all" }, "scope: not block or chain"],
    [
      "an id of another kind",
      "contract",
      { ...contract, id: "att_000000000001" },
      "id: not a ct_ identifier",
    ],
  ])("%s", (_, kind, object, detail) => {
    expect(verifyObject(engine, kind, object)).toEqual({
      ok: false,
      refusal: { problem: "malformed", detail },
    });
  });

  test("if its signer is another principal", () => {
    expect(() => signObject(engine, "contract", contractBody, bob)).toThrow(TokenError);
    const moved = { ...contract, issuer: id(bob) };
    expect(verifyObject(engine, "contract", moved)).toMatchObject({
      refusal: { problem: "invalid_signature" },
    });
  });

  test("property: verification never throws on junk", () => {
    fc.assert(
      fc.property(fc.anything({ withNullPrototype: true, withBigInt: true }), (junk) => {
        for (const [kind] of objects) expect(verifyObject(engine, kind, junk).ok).toBe(false);
      }),
    );
  });
});

function authorityId(): string {
  return Buffer.from(engine.blake2b256(canonicalBytes(rootToken().authority))).toString("base64url");
}

function omit<T extends object>(object: T, name: keyof T): object {
  const { [name]: _, ...rest } = object;
  return rest;
}
