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
import { type Breath, createBreath } from "./breath.ts";
import { MAX_HELD_OUTPUT_BYTES } from "./rules/attestation-validation.ts";
import type { StoredDocument } from "./store/documents.ts";

/** The signed documents of this service: their messages on the RPCs, their JSON where they are signed and kept. */
export type DocumentKind = Exclude<ObjectKind, "revocation">;

const SCHEMAS = { contract: TaskContractSchema, attestation: AttestationSchema } as const;
type MessageOf<K extends DocumentKind> = MessageShape<(typeof SCHEMAS)[K]>;

/** Largest documents, in bytes of canonical JSON. An attestation may hold an output. */
const MAX_BYTES: Record<DocumentKind, number> = {
  contract: 256 * 1024,
  attestation: MAX_HELD_OUTPUT_BYTES + 256 * 1024,
};

/** The JSON of a message. @throws DeputeError INVALID_REQUEST for one that has none */
export function toDocument<K extends DocumentKind>(kind: K, message: MessageOf<K>): SignedObjects[K] {
  try {
    const schema: DescMessage = SCHEMAS[kind];
    return encode(schema, message) as JsonObject as unknown as SignedObjects[K];
  } catch (error) {
    if (error instanceof WireEncodeError) throw invalid(kind, error.message);
    throw error;
  }
}

/** The message of a stored document. */
export function toMessage<K extends DocumentKind>(kind: K, document: unknown): MessageOf<K> {
  const schema: DescMessage = SCHEMAS[kind];
  const decoded = decode(schema, document);
  if (!decoded.ok)
    throw new Error(`a stored ${kind} is damaged: ${decoded.error.path} ${decoded.error.message}`);
  return decoded.message as MessageOf<K>;
}

/**
 * A document as it is stored, if its signature is its signer's. A large one takes a few steps, between which others go.
 *
 * @param now milliseconds since the Unix epoch
 * @throws DeputeError SIGNATURE_INVALID, INVALID_REQUEST, LIMIT_EXCEEDED
 */
export async function toStored<K extends DocumentKind>(
  engine: CryptoEngine,
  kind: K,
  document: SignedObjects[K],
  now: number,
  breathe: Breath = createBreath(),
): Promise<StoredDocument> {
  const verified = verifyObject(engine, kind, document);
  await breathe();
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
  await breathe();
  const digest = encodeBase64Url(objectSigningInput(engine, document));
  return { id: document.id, digest, document: text, storeTime: now };
}
