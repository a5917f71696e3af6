import type { CallOptions, Client } from "@connectrpc/connect";
import type {
  GetInclusionProofRequest,
  LogService,
} from "@depute/contracts/depute/verifier/v1/log_service_pb";
import { DeputeError, decodeBase64Url, ErrorReason, invalid } from "@depute/core";
import type { PathParameters } from "@depute/service";
import { type Answer, entryDocument, hashDocument, headDocument } from "./documents.ts";

/** The request data that a method needs. */
export interface LogRequest {
  readonly query: URLSearchParams;
  readonly parameters: PathParameters;
  readonly options: CallOptions;
}

const MAX_INDEX = 2 ** 40;
const MAX_COUNT = 1000;
const DEFAULT_COUNT = 100;

type Subject = Exclude<GetInclusionProofRequest["subject"], { case: undefined }>;

/**
 * Implements the HTTP addresses of the transparency log. A proof is for the tree size that the request states. If the
 * request states none, the proof is for the current size, and the answer also contains the signed head. Each method
 * throws DeputeError INVALID_REQUEST for invalid parameters, or LOG_ENTRY_NOT_FOUND for a missing leaf, and forwards
 * the ConnectErrors of LogService.
 */
export class LogMethods {
  readonly #log: Client<typeof LogService>;

  constructor(log: Client<typeof LogService>) {
    this.#log = log;
  }

  /** Returns the current signed head of the log. */
  async head({ options }: LogRequest): Promise<Answer> {
    const { head } = await this.#log.getLogHead({}, options);
    return { body: headDocument(head), immutable: false };
  }

  /**
   * Returns leaves in order. `first` is the first index (default 0), `count` the number of leaves (default 100, maximum
   * 1,000). A full page never changes.
   */
  async entries({ query, options }: LogRequest): Promise<Answer> {
    const first = numberIn(query, "first", MAX_INDEX) ?? 0;
    const count = numberIn(query, "count", MAX_COUNT) ?? DEFAULT_COUNT;
    if (count === 0) throw invalid("count", `must be from 1 to ${MAX_COUNT}`);
    const { entries } = await this.#log.listLogEntries(
      { firstIndex: BigInt(first), pageSize: count },
      options,
    );
    return { body: { entries: entries.map(entryDocument) }, immutable: entries.length === count };
  }

  /** Returns one leaf of the log. */
  async entry({ parameters, options }: LogRequest): Promise<Answer> {
    const index = readNumber("index", parameters.index ?? "", MAX_INDEX);
    const { entries } = await this.#log.listLogEntries({ firstIndex: BigInt(index), pageSize: 1 }, options);
    const [entry] = entries;
    if (entry === undefined) {
      throw new DeputeError(ErrorReason.LOG_ENTRY_NOT_FOUND, "the log contains no leaf with this index", {
        metadata: { index: String(index) },
      });
    }
    return { body: entryDocument(entry), immutable: true };
  }

  /**
   * Proves that a leaf is in the tree of `tree_size` leaves. The parameter `index`, `digest` (base64url) or
   * `attestation` identifies the leaf.
   */
  async inclusion({ query, options }: LogRequest): Promise<Answer> {
    const size = numberIn(query, "tree_size", MAX_INDEX);
    const proof = await this.#log.getInclusionProof(
      { subject: subjectIn(query), treeSize: BigInt(size ?? 0) },
      options,
    );
    if (proof.entry === undefined) throw new Error("the log answered with a proof without its leaf");
    const body = {
      entry: entryDocument(proof.entry),
      treeSize: Number(proof.treeSize),
      hashes: proof.hashes.map(hashDocument),
      ...(proof.head !== undefined && { head: headDocument(proof.head) }),
    };
    return { body, immutable: isFixedSize(size) };
  }

  /** Proves that the tree of `second` leaves begins with the leaves of the tree of `first` leaves. */
  async consistency({ query, options }: LogRequest): Promise<Answer> {
    const first = numberIn(query, "first", MAX_INDEX);
    if (first === undefined) throw invalid("first", "is required");
    const second = numberIn(query, "second", MAX_INDEX);
    const proof = await this.#log.getConsistencyProof(
      { firstSize: BigInt(first), secondSize: BigInt(second ?? 0) },
      options,
    );
    const body = {
      first,
      second: Number(proof.secondSize),
      hashes: proof.hashes.map(hashDocument),
      ...(proof.head !== undefined && { head: headDocument(proof.head) }),
    };
    return { body, immutable: isFixedSize(second) };
  }
}

/**
 * Whether a request states a fixed size of the tree. The answer to such a request never changes. Size 0 means the
 * current size, which grows.
 */
function isFixedSize(size: number | undefined): boolean {
  return size !== undefined && size !== 0;
}

function subjectIn(query: URLSearchParams): Subject {
  const requested = ["index", "digest", "attestation"].filter((name) => query.has(name));
  if (requested.length !== 1)
    throw invalid("index", "exactly one of index, digest and attestation is required");
  const index = numberIn(query, "index", MAX_INDEX - 1);
  if (index !== undefined) return { case: "index", value: BigInt(index) };
  const id = query.get("attestation");
  if (id !== null) return { case: "attestationId", value: id };
  const digest = decodeBase64Url(query.get("digest") ?? "");
  if (digest?.length !== 32) throw invalid("digest", "must be 32 bytes in base64url without padding");
  return { case: "digest", value: digest };
}

function numberIn(query: URLSearchParams, name: string, max: number): number | undefined {
  const texts = query.getAll(name);
  if (texts.length > 1) throw invalid(name, "must occur only once");
  return texts[0] === undefined ? undefined : readNumber(name, texts[0], max);
}

function readNumber(name: string, text: string, max: number): number {
  const number = Number(text);
  if (!/^\d{1,13}$/.test(text) || number > max)
    throw invalid(name, `must be a whole number from 0 to ${max}`);
  return number;
}
