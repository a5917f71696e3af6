import { create } from "@bufbuild/protobuf";
import { type CallOptions, type Client, createClient, type Transport } from "@connectrpc/connect";
import {
  entryHash,
  hashText,
  type PlatformKeys,
  type Session,
  sealTranscript,
  sessionHead,
  signatureText,
  type TranscriptVerdict,
  verifySteps,
} from "@depute/asp";
import {
  type Transcript,
  type TranscriptKeys,
  TranscriptKeysSchema,
  type TranscriptLogProof,
  TranscriptLogProofSchema,
} from "@depute/contracts/asp/v0/transcript_pb";
import {
  type AppendSessionHeadResponse,
  LogService,
} from "@depute/contracts/depute/verifier/v1/log_service_pb";
import { DeputeError, ErrorReason, formatTime, fromTimestamp, type Timers } from "@depute/core";
import { type Keypair, keypairFromSeed } from "@depute/dct";
import { nativeEngine } from "@depute/dct/native";
import type { SessionHead } from "@depute/dct/transparency";
import { fromConnectError, type KeySource, openSeed } from "@depute/service";
import type { SessionEngine } from "../engine/engine.ts";

/** The format name in the document with the public keys of the platform's seals. */
const KEYS_FORMAT = "asp-transcript-keys/0.1";
/** Number of messages to hash or verify before the event loop handles other calls. */
const BATCH = 50;
/** Timeout of a call to the transparency log, in milliseconds. */
const TIMEOUT_MS = 10_000;

/** Errors of the transparency log after which another export may succeed. */
const NO_ANSWER: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.DEPENDENCY_UNAVAILABLE,
  ErrorReason.DEADLINE_EXCEEDED,
  ErrorReason.SHUTTING_DOWN,
  ErrorReason.UNKNOWN_METHOD,
]);

/**
 * Opens the platform's key `session-seal`, or creates the key if it does not exist. The key signs only seals of
 * transcripts.
 *
 * @throws SettingsError with the causes of {@link openSeed}
 */
export async function openSealKey(keys: KeySource): Promise<Keypair> {
  const danger = "its readers can seal transcripts in the platform's name";
  const seed = await openSeed(keys, { name: "session-seal.key", danger });
  return keypairFromSeed(nativeEngine, seed, { name: "session-seal" });
}

export interface TranscriptsOptions {
  readonly engine: SessionEngine;
  readonly verifier: Transport;
  readonly keypair: Keypair;
  readonly timers: Timers;
}

/** Exports sealed transcripts, and checks transcripts that callers submit. */
export class Transcripts {
  readonly #timers: Timers;
  readonly #engine: SessionEngine;
  readonly #log: Client<typeof LogService>;
  readonly #keypair: Keypair;

  constructor({ engine, verifier, keypair, timers }: TranscriptsOptions) {
    this.#timers = timers;
    this.#engine = engine;
    this.#log = createClient(LogService, verifier);
    this.#keypair = keypair;
  }

  /**
   * Returns the sealed transcript of a session. First adds the session's head, with the hash of the last message, to
   * the transparency log. So every seal contains the proof that the log has this head.
   *
   * @throws DeputeError SESSION_NOT_FOUND, DEPENDENCY_UNAVAILABLE (the log does not answer)
   */
  async export(session: Session, options: CallOptions): Promise<Transcript> {
    const transcript = await this.#engine.transcript(session);
    const hashes: string[] = [];
    for (const entry of transcript.messages) {
      hashes.push(entryHash(nativeEngine, entry));
      if (hashes.length % BATCH === 0) await this.#timers.nextTurn();
    }
    const head = sessionHead(nativeEngine, transcript, hashes);
    const proof = await this.#logged(head, options);
    return sealTranscript(nativeEngine, transcript, head, proof, this.#keypair);
  }

  /**
   * Returns the keys that verify this platform's seals.
   *
   * @throws DeputeError DEPENDENCY_UNAVAILABLE (the transparency log does not return its key)
   */
  async keys(options: CallOptions): Promise<TranscriptKeys> {
    const { sealKeys, logKeys } = await this.#keys(options);
    return create(TranscriptKeysSchema, {
      format: KEYS_FORMAT,
      sealKeys: [...sealKeys],
      logKeys: [...logKeys],
    });
  }

  /**
   * Verifies a transcript and its seal by the rules of ASP.
   *
   * @throws DeputeError DEPENDENCY_UNAVAILABLE, for a sealed transcript when the transparency log does not return its
   * key
   */
  async verify(transcript: Transcript, options: CallOptions): Promise<TranscriptVerdict> {
    const platform = transcript.seal === undefined ? undefined : await this.#keys(options);
    const steps = verifySteps(transcript, {
      engine: nativeEngine,
      ...(platform === undefined ? {} : { platform }),
    });
    for (let count = 1; ; count++) {
      const step = steps.next();
      if (step.done === true) return step.value;
      if (count % BATCH === 0) await this.#timers.nextTurn();
    }
  }

  async #keys(options: CallOptions): Promise<PlatformKeys> {
    const { head } = await this.#log.getLogHead({}, bounded(options)).catch(refuse);
    if (head === undefined) throw new Error("the log returned no head");
    return { sealKeys: [this.#keypair.principal.id], logKeys: [head.log] };
  }

  async #logged(head: SessionHead, options: CallOptions): Promise<TranscriptLogProof> {
    return proofOf(await this.#log.appendSessionHead(head, bounded(options)).catch(refuse));
  }
}

function proofOf({ entry, hashes, head }: AppendSessionHeadResponse): TranscriptLogProof {
  if (entry?.appendTime === undefined || head?.headTime === undefined) {
    throw new Error("the log returned no leaf or no head");
  }
  return create(TranscriptLogProofSchema, {
    index: entry.index,
    loggedAt: formatTime(fromTimestamp(entry.appendTime)),
    hashes: hashes.map(hashText),
    logKey: head.log,
    treeSize: head.treeSize,
    rootHash: hashText(head.rootHash),
    signedAt: formatTime(fromTimestamp(head.headTime)),
    signature: signatureText(head.signature),
  });
}

/** Limits a call to the transparency log to TIMEOUT_MS, unless the caller has set a shorter timeout. */
function bounded(options: CallOptions): CallOptions {
  const { headers, signal, timeoutMs } = options;
  return {
    timeoutMs: Math.min(timeoutMs ?? TIMEOUT_MS, TIMEOUT_MS),
    ...(headers === undefined ? {} : { headers }),
    ...(signal === undefined ? {} : { signal }),
  };
}

function refuse(thrown: unknown): never {
  const refusal = fromConnectError(thrown);
  if (!NO_ANSWER.has(refusal.reason)) throw refusal;
  throw new DeputeError(
    ErrorReason.DEPENDENCY_UNAVAILABLE,
    "the transparency log does not answer, and the seal of a transcript requires it: try again later",
    { metadata: { service: "verifier" }, cause: thrown },
  );
}
