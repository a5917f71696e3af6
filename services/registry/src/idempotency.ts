import { type DescMessage, fromBinary, type MessageShape, toBinary, toJson } from "@bufbuild/protobuf";
import { canonicalBytes, invalid } from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";
import type { ReadTx, WriteTx } from "@depute/store";
import { type RequestKey, recall, remember } from "./store/requests.ts";

// Deeper than protobuf's own limit on nesting.
const MAX_DEPTH = 256;

/** One mutating call that may be repeated. */
export interface Repeatable<Answer extends DescMessage> {
  /** The answer that the same call got before; undefined for a first call. Throws DeputeError REQUEST_ID_REUSED. */
  before(tx: ReadTx): Promise<MessageShape<Answer> | undefined>;
  /** Keeps the answer in the transaction of the change. */
  keep(tx: WriteTx, answer: MessageShape<Answer>, now: number): Promise<void>;
}

/**
 * Makes a call repeatable by its request id, which is the caller's own.
 *
 * The digest is over canonical JSON: two encoders may write the members of a map in different order.
 *
 * @throws DeputeError INVALID_REQUEST when the request has no JSON form
 */
export function repeatable<Request extends DescMessage, Answer extends DescMessage>(
  schemas: { readonly request: Request; readonly answer: Answer },
  caller: string,
  requestId: string,
  request: MessageShape<Request>,
): Repeatable<Answer> {
  const key: RequestKey = { caller, requestId, digest: digestOf(schemas.request, request) };
  return {
    async before(tx) {
      const answer = await recall(tx, key);
      return answer && fromBinary(schemas.answer, answer);
    },
    keep: (tx, answer, now) => remember(tx, key, toBinary(schemas.answer, answer), now),
  };
}

/**
 * The digest of a request: SHA-256, 64 digits, over its type and its canonical JSON.
 *
 * @throws DeputeError INVALID_REQUEST when it has no JSON form
 */
export function digestOf<Desc extends DescMessage>(schema: Desc, request: MessageShape<Desc>): string {
  try {
    return sha256Hex(canonicalBytes([schema.typeName, toJson(schema, request)], MAX_DEPTH));
  } catch {
    throw invalid("", "the request holds a number or a text without a JSON form");
  }
}
