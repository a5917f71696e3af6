import { create } from "@bufbuild/protobuf";
import {
  type Transcript,
  type TranscriptLogProof,
  TranscriptLogProofSchema,
  TranscriptSchema,
} from "@depute/contracts/asp/v0/transcript_pb";
import { formatTime } from "@depute/core";
import { type CryptoEngine, type Keypair, keypairFromSeed } from "@depute/dct";
import {
  foldNodes,
  inclusionRanges,
  type LeafRange,
  leafHash,
  logEntryBytes,
  nodeHash,
  type SessionHead,
  sessionHeadBytes,
  signLogHead,
} from "@depute/dct/transparency";
import { encode } from "@depute/wire";
import {
  entryHash,
  hashText,
  type PlatformKeys,
  sealTranscript,
  sessionHead,
  signatureText,
} from "../transcript-seal.ts";

/** Returns a transcript in the form that the ASP wire serves. */
export function documentOf(transcript: Transcript): string {
  return JSON.stringify(encode(TranscriptSchema, transcript));
}

/** A test platform with a sealing key and a transparency log. The log contains session heads and other leaves. */
export class SealingPlatform {
  readonly #engine: CryptoEngine;
  readonly #sealKey: Keypair;
  readonly #logKey: Keypair;

  constructor(engine: CryptoEngine, name = "platform") {
    const key = (purpose: string) =>
      keypairFromSeed(engine, engine.sha256(new TextEncoder().encode(`${name} ${purpose}`)));
    this.#engine = engine;
    this.#sealKey = key("seal");
    this.#logKey = key("log");
  }

  get keys(): PlatformKeys {
    return { sealKeys: [this.#sealKey.principal.id], logKeys: [this.#logKey.principal.id] };
  }

  seal(transcript: Transcript, nowMs: number): Transcript {
    const engine = this.#engine;
    const head = sessionHead(
      engine,
      transcript,
      transcript.messages.map((entry) => entryHash(engine, entry)),
    );
    return sealTranscript(engine, transcript, head, this.#logged(head, nowMs), this.#sealKey);
  }

  #logged(head: SessionHead, time: number): TranscriptLogProof {
    const { sha256 } = this.#engine;
    const [index, treeSize] = [4, 7];
    const digest = sha256(sessionHeadBytes(head));
    const leaves = Array.from({ length: treeSize }, (_, at) => sha256(new Uint8Array([at])));
    leaves[index] = leafHash(sha256, logEntryBytes({ kind: "session_head", digest, time }));
    const rootOf = ({ begin, end }: LeafRange): Uint8Array => {
      if (end - begin === 1) return leaves[begin] ?? foldNodes(sha256, []);
      const middle = begin + 2 ** (31 - Math.clz32(end - begin - 1));
      return nodeHash(sha256, rootOf({ begin, end: middle }), rootOf({ begin: middle, end }));
    };
    const rootHash = rootOf({ begin: 0, end: treeSize });
    const log = this.#logKey.principal.id;
    return create(TranscriptLogProofSchema, {
      index: BigInt(index),
      loggedAt: formatTime(time),
      hashes: inclusionRanges(index, treeSize).map((range) => hashText(rootOf(range))),
      logKey: log,
      treeSize: BigInt(treeSize),
      rootHash: hashText(rootHash),
      signedAt: formatTime(time),
      signature: signatureText(signLogHead(this.#engine, { log, treeSize, rootHash, time }, this.#logKey)),
    });
  }
}
