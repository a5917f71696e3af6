import { createHash } from "node:crypto";
import { create, fromBinary, type JsonObject, type JsonValue, toBinary } from "@bufbuild/protobuf";
import { createValidator } from "@bufbuild/protovalidate";
import { AgentCardSchema } from "@depute/contracts/asp/v0/agent_card_pb";
import { EnvelopeSchema, Performative } from "@depute/contracts/asp/v0/envelope_pb";
import { canonicalJson } from "@depute/core";
import { describe, expect, test } from "vitest";
import { decodeValid, encode } from "./index.ts";
import { fixtures, readFixture } from "./testing/fixtures.ts";

const envelopes = fixtures
  .filter(({ file, messages }) => file.startsWith("asp/") && messages[""] === "asp.v0.Envelope")
  .map(({ file }) => ({ file, document: readFixture(file) as JsonObject }));

const PROPOSE = readFixture("asp/message-1-propose.json") as JsonObject;
const COMMIT = readFixture("asp/message-8-commit.json") as JsonObject;

function decoded(document: JsonValue) {
  const result = decodeValid(EnvelopeSchema, document);
  if (!result.ok) throw new Error(JSON.stringify(result.errors));
  return result.message;
}

/** Returns a copy of a document with one member set. */
function changed(document: JsonObject, path: string, value: JsonValue): JsonObject {
  const [name, ...rest] = path.split(".") as [string, ...string[]];
  const inner = rest.length === 0 ? value : changed(document[name] as JsonObject, rest.join("."), value);
  return { ...document, [name]: inner };
}

describe("an envelope can be hashed again after storage as a message", () => {
  test.each(envelopes)("$file", ({ document }) => {
    const stored = fromBinary(EnvelopeSchema, toBinary(EnvelopeSchema, decoded(document)));
    const { integrity, ...rest } = encode(EnvelopeSchema, stored) as JsonObject;
    const { hash, signature: _, ...integrityFields } = integrity as JsonObject;
    const digest = createHash("sha256").update(canonicalJson({ ...rest, integrity: integrityFields }));
    expect(`sha256:${digest.digest("hex")}`).toBe(hash);
  });
});

test("every performative has a fixture, and the fixtures chain", () => {
  const seen = new Set(envelopes.map(({ document }) => decoded(document).performative));
  expect(seen.size).toBe(Object.keys(Performative).length - 1);
  const chain = envelopes.filter(({ file }) => !file.endsWith("session-invitation.json"));
  const hashes = chain.map(({ document }) => (document.integrity as JsonObject).hash);
  const previous = chain.map(({ document }) => (document.integrity as JsonObject).previousHash);
  expect(previous.slice(1)).toEqual(hashes.slice(0, -1));
});

test.each<[string, JsonValue, string, string]>([
  ["version", "asp/1.0", "/version", "broken_rule"],
  ["performative", "SHOUT", "/performative", "unknown_word"],
  ["performative", "propose", "/performative", "unknown_word"],
  ["sequenceNumber", -1, "/sequenceNumber", "broken_rule"],
  ["timestamp", "2026-03-07T15:00:00.000+01:00", "/timestamp", "broken_rule"],
  ["recipient", ["agent://a.example/b"], "/recipient", "wrong_type"],
  ["recipient", "mailto:a", "/recipient", "broken_rule"],
  ["sender.trustScore", 101, "/sender/trustScore", "broken_rule"],
  ["sender.agentId", "agent://", "/sender/agentId", "broken_rule"],
  ["content.mimeType", "text/plain", "/content/mimeType", "broken_rule"],
  ["content.body.type", "Terms!", "/content/body/type", "broken_rule"],
  ["content.body.terms", "all", "/content/body/terms", "wrong_type"],
  ["integrity.signature", `ed25519:${"a".repeat(124)}`, "/integrity/signature", "broken_rule"],
  ["integrity.previousHash", "sha256:1a2b", "/integrity/previousHash", "broken_rule"],
  ["constraints", { allowedPerformatives: ["ASK"] }, "/constraints/allowedPerformatives/0", "unknown_word"],
])("refuses an envelope with %s %j", (path, value, pointer, reason) => {
  const result = decodeValid(EnvelopeSchema, changed(PROPOSE, path, value));
  expect(result.ok ? "accepted" : result.errors).toContainEqual(
    expect.objectContaining({ path: pointer, reason }),
  );
});

test("another performative gives another body of the same members", () => {
  const result = decodeValid(EnvelopeSchema, changed(PROPOSE, "performative", "REJECT"));
  expect(result.ok ? "accepted" : result.error).toMatchObject({ path: "/content/body/referenceId" });
});

test("refuses a message whose body differs from its performative", () => {
  const message = decoded(PROPOSE);
  const result = createValidator().validate(
    EnvelopeSchema,
    create(EnvelopeSchema, { ...message, performative: Performative.ACCEPT }),
  );
  expect(result.violations?.map(({ ruleId }) => ruleId)).toEqual(["asp.envelope.body"]);
});

test("requires terms, except in an invitation", () => {
  const body = { proposalId: "p", type: "terms", subject: "s" };
  const result = decodeValid(EnvelopeSchema, changed(PROPOSE, "content.body", body));
  expect(result.ok ? "accepted" : result.error).toMatchObject({
    path: "/content/body",
    rule: "asp.propose.terms",
  });
  decoded(changed(PROPOSE, "content.body", { ...body, type: "session-invitation" }));
});

test.each<[JsonValue, string]>([
  [{}, "obligationsByRole"],
  [[], "obligationList"],
  [[{ role: "buyer", party: "agent://a.example/b", action: "Pay." }], "obligationList"],
])("obligations %j keep their form", (obligations, expected) => {
  const document = changed(COMMIT, "content.body.obligations", obligations);
  const message = decoded(document);
  const kind = message.content?.body?.kind;
  expect(kind?.case === "commit" && kind.value.obligations.case).toBe(expected);
  expect(encode(EnvelopeSchema, message)).toEqual(document);
});

test.each<[JsonObject, string, string]>([
  [
    { kty: "OKP", crv: "Ed25519", x: "A".repeat(43), d: "A".repeat(43) },
    "/dpopPublicKey/d",
    "unknown_member",
  ],
  [{ kty: "EC", crv: "P-256", x: "A".repeat(43) }, "/dpopPublicKey", "broken_rule"],
  [{ kty: "OKP", crv: "P-256", x: "A".repeat(43) }, "/dpopPublicKey", "broken_rule"],
  [{ kty: "RSA", crv: "P-256", x: "A".repeat(43) }, "/dpopPublicKey/kty", "broken_rule"],
])("refuses a card with the key %j", (dpopPublicKey, path, reason) => {
  const card = readFixture("asp/agent-card.json") as JsonObject;
  const result = decodeValid(AgentCardSchema, { ...card, dpopPublicKey });
  expect(result.ok ? "accepted" : result.errors).toContainEqual(expect.objectContaining({ path, reason }));
});
