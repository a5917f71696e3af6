import { type DescMessage, fromBinary, type MessageShape, toBinary, toJson } from "@bufbuild/protobuf";
import { canonicalBytes, invalid } from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";
import { type ReadTx, type RequestKey, RequestMemory, type WriteTx } from "@depute/store";

/** The stored responses to requests, for replays. */
export const requests = new RequestMemory("requests");

// Maximum nesting of a request in canonical JSON. No request reaches it, because protobuf's own limit is lower.
const MAX_DEPTH = 256;

/** Finds and stores the response of one mutating call. */
export interface IdempotentCall<Answer extends DescMessage> {
  /**
   * Returns the stored response of an earlier identical call; undefined for a first call.
   *
   * @throws DeputeError REQUEST_ID_REUSED
   */
  findAnswer(tx: ReadTx): Promise<MessageShape<Answer> | undefined>;
  /** Stores the response, in the same transaction as the change. */
  storeAnswer(tx: WriteTx, answer: MessageShape<Answer>, now: number): Promise<void>;
}

/**
 * Makes a call idempotent: a second call with the same request id gets the first response. Requests are compared by
 * the digest of their canonical JSON, because encoders may order map members differently.
 *
 * @throws DeputeError INVALID_REQUEST when the request has no JSON form
 */
export function idempotentCall<Request extends DescMessage, Answer extends DescMessage>(
  schemas: { readonly request: Request; readonly answer: Answer },
  caller: string,
  requestId: string,
  request: MessageShape<Request>,
): IdempotentCall<Answer> {
  const key: RequestKey = { caller, requestId, digest: digestOf(schemas.request, request) };
  return {
    async findAnswer(tx) {
      const answer = await requests.find(tx, key);
      return answer && fromBinary(schemas.answer, answer);
    },
    storeAnswer: (tx, answer, now) => requests.remember(tx, key, toBinary(schemas.answer, answer), now),
  };
}

/**
 * Returns the digest of a request: SHA-256 of the message type and canonical JSON, 64 hexadecimal digits.
 *
 * @throws DeputeError INVALID_REQUEST when the request has no JSON form
 */
export function digestOf<Desc extends DescMessage>(schema: Desc, request: MessageShape<Desc>): string {
  try {
    return sha256Hex(canonicalBytes([schema.typeName, toJson(schema, request)], MAX_DEPTH));
  } catch {
    throw invalid("", "the request contains a number or a string without a JSON form");
  }
}
