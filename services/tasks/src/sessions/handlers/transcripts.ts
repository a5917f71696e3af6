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
import { DeputeError, ErrorReason, formatTime, fromTimestamp, nextTurn } from "@depute/core";
import { type Keypair, keypairFromSeed } from "@depute/dct";
import { nativeEngine } from "@depute/dct/native";
import type { SessionHead } from "@depute/dct/transparency";
import { fromConnectError, openSeedFile } from "@depute/service";
import type { SessionEngine } from "../engine/engine.ts";

/** The format of the document that publishes the keys of seals. */
const KEYS_FORMAT = "asp-transcript-keys/0.1";
/** Messages that are hashed or verified before others' calls have their turn. */
const BATCH = 50;
/** How long the log has for an answer, milliseconds. */
const TIMEOUT_MS = 10_000;

/** Refusals of the log that another export may not meet. */
const NO_ANSWER: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.DEPENDENCY_UNAVAILABLE,
  ErrorReason.DEADLINE_EXCEEDED,
  ErrorReason.SHUTTING_DOWN,
  ErrorReason.UNKNOWN_METHOD,
]);

/**
 * The key in `session-seal.key` of the data folder (mode 0600), made when it is not there. It seals transcripts and signs
 * nothing else.
 *
 * @throws SettingsError when the file is no key, or other users can read it
 */
export function openSealKey(dataDir: string): Keypair {
  const danger = "whoever reads it can seal transcripts in the platform's name";
  const seed = openSeedFile({ dataDir, name: "session-seal.key", danger });
  return keypairFromSeed(nativeEngine, seed, { name: "session-seal" });
}

export interface TranscriptsOptions {
  readonly engine: SessionEngine;
  readonly verifier: Transport;
  readonly keypair: Keypair;
}

/** Exports sealed transcripts, and checks what others bring. */
export class Transcripts {
  readonly #engine: SessionEngine;
  readonly #log: Client<typeof LogService>;
  readonly #keypair: Keypair;

  constructor({ engine, verifier, keypair }: TranscriptsOptions) {
    this.#engine = engine;
    this.#log = createClient(LogService, verifier);
    this.#keypair = keypair;
  }

  /**
   * A session's transcript with its seal. The head is in the log before anything is sealed, so no seal lacks its proof.
   *
   * @throws DeputeError SESSION_NOT_FOUND, DEPENDENCY_UNAVAILABLE (the log does not answer)
   */
  async export(session: Session, options: CallOptions): Promise<Transcript> {
    const transcript = await this.#engine.transcript(session);
    const hashes: string[] = [];
    for (const entry of transcript.messages) {
      hashes.push(entryHash(nativeEngine, entry));
      if (hashes.length % BATCH === 0) await nextTurn();
    }
    const head = sessionHead(nativeEngine, transcript, hashes);
    const proof = await this.#logged(head, options);
    return sealTranscript(nativeEngine, transcript, head, proof, this.#keypair);
  }

  /**
   * The keys by which seals of this platform are checked.
   *
   * @throws DeputeError DEPENDENCY_UNAVAILABLE (the log does not tell its key)
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
   * Applies the rules of the protocol to a transcript, and checks its seal.
   *
   * @throws DeputeError DEPENDENCY_UNAVAILABLE, for a sealed one when the log does not tell its key
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
      if (count % BATCH === 0) await nextTurn();
    }
  }

  async #keys(options: CallOptions): Promise<PlatformKeys> {
    const { head } = await this.#log.getLogHead({}, bounded(options)).catch(refuse);
    if (head === undefined) throw new Error("the log told no head");
    return { sealKeys: [this.#keypair.principal.id], logKeys: [head.log] };
  }

  async #logged(head: SessionHead, options: CallOptions): Promise<TranscriptLogProof> {
    return proofOf(await this.#log.appendSessionHead(head, bounded(options)).catch(refuse));
  }
}

function proofOf({ entry, hashes, head }: AppendSessionHeadResponse): TranscriptLogProof {
  if (entry?.appendTime === undefined || head?.headTime === undefined) {
    throw new Error("the log answered without its leaf or its head");
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

/** A caller that gives no deadline does not wait for the log without one. */
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
    "the transparency log does not answer, and transcripts are sealed by it: try again later",
    { metadata: { service: "verifier" }, cause: thrown },
  );
}
