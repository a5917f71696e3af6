import { type JsonObject, toJson } from "@bufbuild/protobuf";
import { digestOf, holdsIntegrity, seal } from "@depute/asp";
import { played } from "@depute/asp/testing";
import { type Envelope, EnvelopeSchema } from "@depute/contracts/asp/v0/envelope_pb";
import { canonicalJson, encodeBase64Url } from "@depute/core";
import { decodeValid, encode } from "@depute/wire";
import { engine, hex, utf8, type VectorCase, type VectorFile } from "./shared.ts";

/** Returns the seed of an agent: the SHA-256 of the text `fixture ` followed by the agent's id. */
export function agentSeed(agentId: string): Uint8Array {
  return engine.sha256(utf8(`fixture ${agentId}`));
}

const STAGE = played();

/** The messages of a session, and one message that uses every optional form. */
const MESSAGES: readonly Envelope[] = [...STAGE.entries.map(({ envelope }) => envelope), rich()];

export function aspEnvelopeVectors(): VectorFile {
  return {
    specification: "asp-envelopes.md",
    cases: [...MESSAGES.map(documentVector), ...MESSAGES.map(signVector), ...verifications()],
  };
}

/** Returns a message with unknown members, numbers in other spellings, empty lists, and a recipient as an object. */
function rich(): Envelope {
  const first = documentOf(STAGE.entries[0]?.envelope as Envelope);
  const document = {
    ...first,
    sequenceNumber: 7,
    recipient: { agentId: "agent://softwarecorp.io/sales/beta-vendor" },
    performative: "CLOSE",
    content: {
      mimeType: "application/json",
      body: { outcome: "done", ratings: [], "x-note": { b: [1.5, 1e21, null], a: "\u20ac\u2028" } },
      context: [],
    },
    constraints: {
      maxResponseTimeMs: 5000,
      allowedPerformatives: ["INFORM", "CLOSE"],
      requiredTrustScore: 50.5,
    },
    priority: "high",
  };
  const decoded = decodeValid(EnvelopeSchema, document as JsonObject);
  if (!decoded.ok) throw new Error(`the message is refused: ${decoded.error.path} ${decoded.error.message}`);
  return seal(engine, decoded.message as Envelope, agentSeed(senderOf(decoded.message as Envelope)));
}

function documentOf(envelope: Envelope): JsonObject {
  return encode(EnvelopeSchema, envelope) as JsonObject;
}

function senderOf(envelope: Envelope): string {
  return envelope.sender?.agentId ?? "";
}

function documentVector(envelope: Envelope, i: number): VectorCase {
  return {
    name: `document: message ${i + 1}`,
    operation: "document",
    input: { message: toJson(EnvelopeSchema, envelope) },
    expected: { document: documentOf(envelope) },
  };
}

function signVector(envelope: Envelope, i: number): VectorCase {
  const document = documentOf(envelope);
  const { hash, signature, previousHash } = document.integrity as JsonObject;
  return {
    name: `sign: message ${i + 1}`,
    operation: "sign",
    input: {
      seedHex: hex(agentSeed(senderOf(envelope))),
      document: { ...document, integrity: { previousHash } },
    },
    expected: {
      canonical: canonicalJson({ ...document, integrity: { previousHash } }),
      signedHex: hex(utf8("asp/0.1\n")) + hex(digestOf(engine, envelope).bytes),
      hash,
      signature,
    },
  };
}

function verifications(): VectorCase[] {
  const document = documentOf(MESSAGES[4] as Envelope);
  const integrity = document.integrity as JsonObject;
  const agentId = senderOf(MESSAGES[4] as Envelope);
  const publicKey = encodeBase64Url(engine.publicKey(agentSeed(agentId)));
  const ownSignature = engine.sign(digestOf(engine, MESSAGES[4] as Envelope).bytes, agentSeed(agentId));
  const rows: readonly (readonly [name: string, document: JsonObject, key?: string])[] = [
    ["an honest message", document],
    ["another key", document, encodeBase64Url(engine.publicKey(agentSeed("other")))],
    ["another sequence number", { ...document, sequenceNumber: 9 }],
    [
      "another previous hash",
      { ...document, integrity: { ...integrity, previousHash: `sha256:${"1".repeat(64)}` } },
    ],
    ["an added member", { ...document, priority: "high" }],
    [
      "a hash in upper case",
      { ...document, integrity: { ...integrity, hash: String(integrity.hash).toUpperCase() } },
    ],
    ["another hash", { ...document, integrity: { ...integrity, hash: `sha256:${"0".repeat(64)}` } }],
    [
      "a signature without the tag",
      { ...document, integrity: { ...integrity, signature: `ed25519:${hex(ownSignature)}` } },
    ],
    [
      "a signature without its prefix",
      { ...document, integrity: { ...integrity, signature: hex(ownSignature) } },
    ],
  ];
  return rows.map(([name, changed, key = publicKey]) => ({
    name: `verify: ${name}`,
    operation: "verify",
    input: { document: changed, publicKey: key },
    expected: { valid: isValid(changed, key) },
  }));
}

/** Whether the platform's functions accept the hash and the signature of a document. */
export function isValid(document: JsonObject, publicKey: string): boolean {
  const decoded = decodeValid(EnvelopeSchema, document);
  return (
    decoded.ok && holdsIntegrity(engine, decoded.message as Envelope, Buffer.from(publicKey, "base64url"))
  );
}
