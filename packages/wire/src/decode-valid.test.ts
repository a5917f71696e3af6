import { PrincipalSchema } from "@depute/contracts/delegateos/v0/principal_pb";
import { TokenSignatureSchema } from "@depute/contracts/delegateos/v0/token_pb";
import { VerificationSpecSchema } from "@depute/contracts/delegateos/v0/verification_pb";
import { JsonRpcResponseSchema } from "@depute/contracts/depute/wire/v1/jsonrpc_pb";
import { ContextRequestSchema, VerifyRequestSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import { regexMatch } from "@depute/core";
import { describe, expect, test } from "vitest";
import { decodeValid, MAX_ERRORS } from "./index.ts";
import { readFixture } from "./testing/fixtures.ts";

const id = "A".repeat(43);

describe("reports a broken rule at the document's own path", () => {
  test.each([
    ["a member", PrincipalSchema, { id: "short" }, "/id", "string.pattern"],
    [
      "a key of an inline map",
      PrincipalSchema,
      { id, metadata: { k: "v".repeat(2000) } },
      "/metadata/k",
      "string.max_len",
    ],
    [
      "an item of an inline list within an inline list",
      VerificationSpecSchema,
      { method: "composite", steps: [{ method: "composite", weights: [0.5, 2] }] },
      "/steps/0/weights/1",
      "double.gte_lte",
    ],
    [
      "a member of a oneof that shares its name",
      TokenSignatureSchema,
      { signer: id, signature: "A".repeat(86), covers: -1 },
      "/covers",
      "int64.gte_lte",
    ],
    [
      "an absent oneof",
      TokenSignatureSchema,
      { signer: id, signature: "A".repeat(86) },
      "/covers",
      "required",
    ],
    ["a rule of the whole message", VerifyRequestSchema, { task_id: "t" }, "", "verify.something"],
    ["a snake-case member", ContextRequestSchema, contextWithTtl(0), "/envelope/ttl_s", "int32.gt"],
  ])("%s", (_name, schema, document, path, rule) => {
    expect(decodeValid(schema, document)).toMatchObject({ ok: false, error: { path, rule } });
  });

  test("reports a member that the contract requires as missing, not as a broken rule", () => {
    expect(decodeValid(JsonRpcResponseSchema, { jsonrpc: "2.0", result: 1 })).toMatchObject({
      ok: false,
      error: { reason: "missing_member", path: "/id" },
    });
  });
});

test("reports a document of the wrong shape as decode does", () => {
  expect(decodeValid(PrincipalSchema, { id: 1 })).toMatchObject({
    ok: false,
    errors: [{ reason: "wrong_type", path: "/id" }],
  });
});

test("reports several faults together, up to a bound", () => {
  const steps = Array.from({ length: 30 }, () => ({ method: "composite", passThreshold: 2 }));
  const decoded = decodeValid(VerificationSpecSchema, { method: "composite", steps });
  expect(decoded).toMatchObject({ ok: false });
  if (!decoded.ok) expect(decoded.errors).toHaveLength(MAX_ERRORS);
});

test("regexMatch reads the patterns of the contracts", () => {
  expect(regexMatch("^ct_[0-9a-f]{12}$", "ct_a1b2c3d4e5f6")).toBe(true);
  expect(regexMatch("^ct_[0-9a-f]{12}$", "ct_a1b2c3d4e5f6\n")).toBe(false);
});

function contextWithTtl(ttl_s: number) {
  const { params } = readFixture("nekte/context-request.json") as { params: { envelope: object } };
  return { envelope: { ...params.envelope, ttl_s } };
}
