import type { DescMessage, JsonObject, MessageShape } from "@bufbuild/protobuf";
import { AttestationSchema } from "@depute/contracts/delegateos/v0/attestation_pb";
import { TaskContractSchema } from "@depute/contracts/delegateos/v0/contract_pb";
import { canonicalJson, DeputeError, ErrorReason, encodeBase64Url, invalid } from "@depute/core";
import {
  type CryptoEngine,
  type ObjectKind,
  objectSigningInput,
  type SignedObjects,
  verifyObject,
} from "@depute/dct";
import { decode, encode, WireEncodeError } from "@depute/wire";
import { MAX_HELD_OUTPUT_BYTES } from "./rules/attestation-validation.ts";
import type { SignedDocument } from "./store/documents.ts";
import type { YieldToEventLoop } from "./yield-to-event-loop.ts";

/**
 * Kinds of signed documents in this service. RPCs carry a document as a protobuf message; signatures and the store use
 * its JSON.
 */
export type DocumentKind = Exclude<ObjectKind, "revocation">;

const SCHEMAS = { contract: TaskContractSchema, attestation: AttestationSchema } as const;
type MessageOf<K extends DocumentKind> = MessageShape<(typeof SCHEMAS)[K]>;

/**
 * Maximum size of a document in bytes of canonical JSON. An attestation may contain an output, so its limit is larger.
 */
const MAX_BYTES: Record<DocumentKind, number> = {
  contract: 256 * 1024,
  attestation: MAX_HELD_OUTPUT_BYTES + 256 * 1024,
};

/**
 * Converts a message to the document's JSON.
 *
 * @throws DeputeError INVALID_REQUEST if the message has no JSON form
 */
export function toDocument<K extends DocumentKind>(kind: K, message: MessageOf<K>): SignedObjects[K] {
  try {
    const schema: DescMessage = SCHEMAS[kind];
    return encode(schema, message) as JsonObject as unknown as SignedObjects[K];
  } catch (error) {
    if (error instanceof WireEncodeError) throw invalid(kind, error.message);
    throw error;
  }
}

/** Converts a stored document to its message. */
export function toMessage<K extends DocumentKind>(kind: K, document: unknown): MessageOf<K> {
  const schema: DescMessage = SCHEMAS[kind];
  const decoded = decode(schema, document);
  if (!decoded.ok)
    throw new Error(`a stored ${kind} is damaged: ${decoded.error.path} ${decoded.error.message}`);
  return decoded.message as MessageOf<K>;
}

/**
 * Verifies a document's signature and prepares the document for the store. Lets other work run on the event loop
 * between steps, because documents may be large.
 *
 * @param now epoch milliseconds
 * @throws DeputeError SIGNATURE_INVALID, INVALID_REQUEST, LIMIT_EXCEEDED
 */
export async function toStored<K extends DocumentKind>(
  engine: CryptoEngine,
  kind: K,
  document: SignedObjects[K],
  now: number,
  yieldToEventLoop: YieldToEventLoop,
): Promise<SignedDocument> {
  const verified = verifyObject(engine, kind, document);
  await yieldToEventLoop();
  if (!verified.ok) {
    const { problem, detail } = verified.refusal;
    if (problem === "malformed") throw invalid(kind, detail);
    throw new DeputeError(ErrorReason.SIGNATURE_INVALID, `${kind}: ${detail}`, {
      violations: [{ field: `${kind}.signature`, description: detail }],
    });
  }
  const text = canonicalJson(document);
  const bytes = Buffer.byteLength(text);
  if (bytes > MAX_BYTES[kind]) {
    throw new DeputeError(ErrorReason.LIMIT_EXCEEDED, `the ${kind} is larger than ${MAX_BYTES[kind]} bytes`, {
      metadata: { limit: `${kind}_bytes`, max: String(MAX_BYTES[kind]) },
    });
  }
  await yieldToEventLoop();
  const digest = encodeBase64Url(objectSigningInput(engine, document));
  return { id: document.id, digest, document: text, storeTime: now };
}
