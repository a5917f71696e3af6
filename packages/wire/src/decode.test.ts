import { create, fromBinary, type JsonValue, toBinary } from "@bufbuild/protobuf";
import { AttestationSchema } from "@depute/contracts/delegateos/v0/attestation_pb";
import { CheckResultSchema, ExitCodeOutputSchema } from "@depute/contracts/delegateos/v0/check_pb";
import { PrincipalSchema } from "@depute/contracts/delegateos/v0/principal_pb";
import { RevocationEntrySchema, RevocationScope } from "@depute/contracts/delegateos/v0/revocation_pb";
import {
  AttenuationSchema,
  AuthoritySchema,
  TokenCover,
  TokenSignatureSchema,
} from "@depute/contracts/delegateos/v0/token_pb";
import { VerificationSpecSchema } from "@depute/contracts/delegateos/v0/verification_pb";
import { JsonRpcRequestSchema } from "@depute/contracts/depute/wire/v1/jsonrpc_pb";
import {
  ContextEnvelopeSchema,
  DiscoverFilterSchema,
  DiscoverRequestSchema,
  InvokeRequestSchema,
  TaskStatusResultSchema,
  VerifyRequestSchema,
} from "@depute/contracts/nekte/v1/nekte_pb";
import { describe, expect, test } from "vitest";
import { decode, encode, MAX_DEPTH, MAX_ECHO, WireEncodeError } from "./index.ts";
import { readFixture } from "./testing/fixtures.ts";

type Members = Record<string, JsonValue>;

const attenuated = readFixture("delegateos/token-attenuated.json") as Members & {
  authority: Members;
  attenuations: [Members];
  signatures: [Members, Members];
};
const [attenuation] = attenuated.attenuations;
const attestation = readFixture("delegateos/attestation.json") as Members & { result: Members };
const revocation = readFixture("delegateos/revocation-entry.json") as Members;

function refusal(decoded: ReturnType<typeof decode>) {
  if (decoded.ok) throw new Error("it was accepted");
  return decoded.error;
}

function accepted<T>(decoded: { ok: true; message: T } | { ok: false; error: unknown }): T {
  if (!decoded.ok) throw new Error(JSON.stringify(decoded.error));
  return decoded.message;
}

describe("integers", () => {
  const depth = (value: JsonValue) => decode(AuthoritySchema, { ...attenuated.authority, chainDepth: value });

  test.each([
    ["a fraction", 1.5, "number_range"],
    ["2^53", 2 ** 53, "number_range"],
    ["-(2^53)", -(2 ** 53), "number_range"],
    ["infinity", Number.POSITIVE_INFINITY, "number_range"],
    ["a string of digits", "1", "wrong_type"],
    ["null", null, "wrong_type"],
  ])("refuse %s", (_name, value, reason) => {
    expect(refusal(depth(value))).toMatchObject({ reason, path: "/chainDepth" });
  });

  test.each([0, 1, 2 ** 53 - 1])("hold %d", (value) => {
    expect(accepted(depth(value)).chainDepth).toBe(BigInt(value));
  });

  test("accept 1.0, which equals 1", () => {
    expect(accepted(depth(JSON.parse("1.0"))).chainDepth).toBe(1n);
  });

  test("of 32 bits refuse larger numbers", () => {
    expect(refusal(decode(DiscoverRequestSchema, { level: 2 ** 31 }))).toMatchObject({
      reason: "number_range",
      path: "/level",
    });
  });
});

describe("absent, null and empty differ", () => {
  test("absent capabilities are inherited, an empty list grants none", () => {
    const { allowedCapabilities, ...inheriting } = attenuation;
    expect(allowedCapabilities).toBeDefined();
    expect(accepted(decode(AttenuationSchema, inheriting)).allowedCapabilities).toBeUndefined();
    const none = accepted(decode(AttenuationSchema, { ...inheriting, allowedCapabilities: [] }));
    expect(none.allowedCapabilities?.capabilities).toEqual([]);
    const stored = fromBinary(AttenuationSchema, toBinary(AttenuationSchema, none));
    expect(encode(AttenuationSchema, stored)).toEqual({ ...inheriting, allowedCapabilities: [] });
  });

  test("null capabilities are refused", () => {
    expect(refusal(decode(AttenuationSchema, { ...attenuation, allowedCapabilities: null }))).toMatchObject({
      reason: "wrong_type",
      path: "/allowedCapabilities",
    });
  });

  test("keeps a null output", () => {
    const result = { ...attestation.result, output: null };
    const message = accepted(decode(AttestationSchema, { ...attestation, result }));
    expect(message.result?.output?.kind.case).toBe("nullValue");
    expect(encode(AttestationSchema, message)).toEqual({ ...attestation, result });
  });

  test("refuses a document without a list that is always present", () => {
    const { childAttestations, ...rest } = attestation;
    expect(childAttestations).toEqual([]);
    expect(refusal(decode(AttestationSchema, rest))).toMatchObject({
      reason: "missing_member",
      path: "/childAttestations",
    });
  });

  test("writes a required scalar even when it is zero", () => {
    expect(encode(CheckResultSchema, create(CheckResultSchema))).toEqual({ passed: false });
  });

  test("null is absent where a family's clients send nulls", () => {
    const message = accepted(decode(DiscoverRequestSchema, { level: 0, filter: null }));
    expect(encode(DiscoverRequestSchema, message)).toEqual({ level: 0 });
    expect(refusal(decode(DiscoverRequestSchema, { level: null }))).toMatchObject({
      reason: "missing_member",
    });
  });

  test("a null that is data remains", () => {
    const document = { cap: "echo", in: null };
    expect(encode(InvokeRequestSchema, accepted(decode(InvokeRequestSchema, document)))).toEqual(document);
  });

  test("omit_empty reads absent as empty and writes empty as absent", () => {
    const message = accepted(decode(VerifyRequestSchema, { task_id: "t", result_hash: "abc" }));
    expect(message.checks).toEqual([]);
    expect(encode(VerifyRequestSchema, message)).toEqual({ task_id: "t", result_hash: "abc" });
  });
});

describe("names and words", () => {
  test("refuses an unknown member", () => {
    expect(refusal(decode(CheckResultSchema, { passed: true, prompt: "x" }))).toMatchObject({
      reason: "unknown_member",
      path: "/prompt",
    });
  });

  test("treats a member's protobuf name as unknown", () => {
    expect(refusal(decode(RevocationEntrySchema, { ...revocation, revocation_id: "x" }))).toMatchObject({
      reason: "unknown_member",
      path: "/revocation_id",
    });
  });

  test("enum words drop the enum's prefix", () => {
    expect(accepted(decode(RevocationEntrySchema, revocation)).scope).toBe(RevocationScope.CHAIN);
  });

  test.each(["CHAIN", "REVOCATION_SCOPE_CHAIN", "unspecified", "", "constructor"])(
    "%j is an unknown word",
    (scope) => {
      expect(refusal(decode(RevocationEntrySchema, { ...revocation, scope }))).toMatchObject({
        reason: "unknown_word",
        path: "/scope",
      });
    },
  );

  test("collects extra members where the contract allows them", () => {
    const document = { exitCode: 0, stdout: "", constructor: [1] };
    const message = accepted(decode(ExitCodeOutputSchema, document));
    expect(message.rest).toEqual({ stdout: "", constructor: [1] });
    expect(encode(ExitCodeOutputSchema, message)).toEqual(document);
  });

  test.each(["__proto__", "constructor", "toString", "hasOwnProperty"])("a map keeps the key %s", (key) => {
    const document = JSON.parse(`{"id":"p","metadata":{"${key}":"v"}}`);
    const message = accepted(decode(PrincipalSchema, document));
    const stored = fromBinary(PrincipalSchema, toBinary(PrincipalSchema, message));
    expect(JSON.stringify(encode(PrincipalSchema, stored))).toBe(JSON.stringify(document));
    expect(Object.getPrototypeOf(message.metadata?.entries)).toBe(Object.prototype);
  });

  test("free JSON keeps a member named __proto__", () => {
    const text = '{"jsonrpc":"2.0","method":"m","params":{"__proto__":{"a":1}}}';
    const message = accepted(decode(JsonRpcRequestSchema, JSON.parse(text)));
    const stored = fromBinary(JsonRpcRequestSchema, toBinary(JsonRpcRequestSchema, message));
    expect(JSON.stringify(encode(JsonRpcRequestSchema, stored))).toBe(text);
  });
});

describe("members of a oneof that share a name", () => {
  const [first, second] = attenuated.signatures;

  test("are distinguished by the kind of the value", () => {
    expect(accepted(decode(TokenSignatureSchema, first)).covers).toEqual({
      case: "authority",
      value: TokenCover.AUTHORITY,
    });
    expect(accepted(decode(TokenSignatureSchema, second)).covers).toEqual({ case: "attenuation", value: 0n });
  });

  test.each([[true], [null], [[]]])("refuse %j, which matches no member", (covers) => {
    expect(refusal(decode(TokenSignatureSchema, { ...first, covers }))).toMatchObject({
      reason: "wrong_type",
      path: "/covers",
    });
  });

  test.each([
    [{ jsonrpc: "2.0", method: "m" }, undefined],
    [{ jsonrpc: "2.0", method: "m", id: null }, "idNull"],
    [{ jsonrpc: "2.0", method: "m", id: "" }, "idText"],
    [{ jsonrpc: "2.0", method: "m", id: 1.5 }, "idNumber"],
  ])("%j", (document, chosen) => {
    const message = accepted(decode(JsonRpcRequestSchema, document));
    expect(message.id.case).toBe(chosen);
    expect(encode(JsonRpcRequestSchema, message)).toEqual(document);
  });

  test("times as text or as milliseconds", () => {
    const status = { task_id: "t", status: "running", checkpoint_available: false };
    const document = { ...status, created_at: "2026-01-15T10:30:00Z", updated_at: 1768473000000 };
    const message = accepted(decode(TaskStatusResultSchema, document));
    expect(message.createdAt.case).toBe("createdAtIso");
    expect(message.updatedAt).toEqual({ case: "updatedAtMs", value: 1768473000000n });
    expect(encode(TaskStatusResultSchema, message)).toEqual(document);
  });
});

describe("values", () => {
  test("bytes hold JSON as its text", () => {
    const message = accepted(decode(InvokeRequestSchema, { cap: "echo", in: { a: [1, "é"] } }));
    expect(new TextDecoder().decode(message.input)).toBe('{"a":[1,"é"]}');
  });

  test("a single-precision number returns as it was written", () => {
    const message = accepted(decode(DiscoverFilterSchema, { threshold: 0.7 }));
    const stored = fromBinary(DiscoverFilterSchema, toBinary(DiscoverFilterSchema, message));
    expect(encode(DiscoverFilterSchema, stored)).toEqual({ threshold: 0.7 });
  });

  test.each([
    ["a string", { score: 1, passed: true, details: "\ud800" }, "/details"],
    ["free JSON", { passed: true, score: "\ud800" }, "/score"],
  ])("refuses half of a surrogate pair in %s", (_name, document, path) => {
    expect(refusal(decode(CheckResultSchema, document))).toMatchObject({ path });
  });

  test("a path names the item at fault", () => {
    const attenuations = [
      { ...attenuation, allowedCapabilities: [{ namespace: "web", action: 1, resource: "*" }] },
    ];
    const authority = {
      ...attenuated.authority,
      capabilities: attenuations[0]?.allowedCapabilities as JsonValue,
    };
    expect(refusal(decode(AuthoritySchema, authority)).path).toBe("/capabilities/0/action");
  });

  test("limits nesting, in recursive messages as in free JSON", () => {
    const spec = (levels: number): JsonValue =>
      levels === 0 ? { method: "schema_match" } : { method: "composite", steps: [spec(levels - 1)] };
    expect(decode(VerificationSpecSchema, spec(MAX_DEPTH / 2 - 1)).ok).toBe(true);
    expect(refusal(decode(VerificationSpecSchema, spec(MAX_DEPTH / 2))).reason).toBe("too_deep");
    let free: JsonValue = 1;
    for (let i = 0; i < MAX_DEPTH; i++) free = [free];
    expect(refusal(decode(VerificationSpecSchema, { method: "schema_match", schema: free })).reason).toBe(
      "too_deep",
    );
    expect(refusal(decode(ContextEnvelopeSchema, { data: free })).reason).toBe("too_deep");
  });

  test("a document at the depth limit survives the binary form", () => {
    let free: JsonValue = 1;
    for (let i = 0; i < MAX_DEPTH - 1; i++) free = { a: free };
    const message = accepted(decode(JsonRpcRequestSchema, { jsonrpc: "2.0", method: "m", params: free }));
    expect(() => fromBinary(JsonRpcRequestSchema, toBinary(JsonRpcRequestSchema, message))).not.toThrow();
  });
});

describe("an error", () => {
  const long = "x".repeat(10_000);

  test("truncates a quoted word", () => {
    const { message } = refusal(decode(RevocationEntrySchema, { ...revocation, scope: long }));
    expect(message.length).toBeLessThan(2 * MAX_ECHO);
  });

  test("truncates quoted names", () => {
    const { path } = refusal(decode(CheckResultSchema, { passed: true, [long]: 1 }));
    expect(path).toBe(`/${"x".repeat(MAX_ECHO)}…`);
  });

  test("escapes names as JSON pointers do", () => {
    expect(refusal(decode(CheckResultSchema, { passed: true, "a/b~c": 1 })).path).toBe("/a~1b~0c");
  });

  test("is the only effect of a hostile value", () => {
    const trap = new Proxy({}, { getOwnPropertyDescriptor: () => expect.fail("trap") as never });
    expect(decode(CheckResultSchema, trap).ok).toBe(false);
  });
});

describe("encode refuses", () => {
  test.each([
    ["a number that is not finite", CheckResultSchema, create(CheckResultSchema, { score: Number.NaN })],
    ["an enum value without a word", RevocationEntrySchema, create(RevocationEntrySchema)],
    ["an integer beyond 2^53-1", AuthoritySchema, create(AuthoritySchema, { chainDepth: 2n ** 53n })],
    [
      "bytes that hold no JSON",
      InvokeRequestSchema,
      create(InvokeRequestSchema, { input: Uint8Array.of(123) }),
    ],
    [
      "an extra member with a known name",
      ExitCodeOutputSchema,
      create(ExitCodeOutputSchema, { rest: { exitCode: 1 } }),
    ],
  ])("%s", (_name, schema, message) => {
    expect(() => encode(schema as never, message as never)).toThrow(WireEncodeError);
  });
});
