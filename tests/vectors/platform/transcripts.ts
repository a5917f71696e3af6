import { create } from "@bufbuild/protobuf";
import { entryHash, SEAL_TAG, sessionHead, signatureText, stateName, verifySeal } from "@depute/asp";
import {
  type Transcript,
  TranscriptEntrySchema,
  TranscriptSchema,
} from "@depute/contracts/asp/v0/transcript_pb";
import { canonicalBytes, canonicalJson } from "@depute/core";
import { portableEngine as engine, keypairFromSeed } from "@depute/dct";
import { sessionHeadBytes, sessionHeadDocument } from "@depute/dct/transparency";
import { decode } from "@depute/wire";
import { hexBytes, hexText, type Operations } from "./answer.ts";

function transcriptOf(document: unknown): Transcript {
  const decoded = decode(TranscriptSchema, document);
  if (!decoded.ok) throw new Error(decoded.error.message);
  return decoded.message;
}

function headOf(transcript: Transcript) {
  const hashes = transcript.messages.map((entry) => entryHash(engine, entry));
  return sessionHead(engine, transcript, hashes);
}

export const transcriptOperations: Operations = {
  "entry-hash"({ entry }) {
    const decoded = decode(TranscriptEntrySchema, entry);
    return { expected: { hash: decoded.ok ? entryHash(engine, decoded.message) : decoded.error.message } };
  },

  head({ transcript }) {
    const head = headOf(transcriptOf(transcript));
    const digestHex = hexText(engine.sha256(sessionHeadBytes(head)));
    const { recordHash } = head;
    return { expected: { recordHash, head: canonicalJson(sessionHeadDocument(head)), digestHex } };
  },

  seal({ transcript, seedHex }) {
    const { principal, privateKey } = keypairFromSeed(engine, hexBytes(seedHex));
    const message = transcriptOf(transcript);
    const { exportedAt } = message;
    const head = sessionHeadDocument(headOf(message));
    const body = canonicalBytes({ exportedAt, head, key: principal.id, state: stateName(message.state) });
    const signed = Uint8Array.from([...new TextEncoder().encode(SEAL_TAG), ...body]);
    const signature = signatureText(engine.sign(signed, privateKey));
    return { expected: { key: principal.id, signedHex: hexText(signed), signature } };
  },

  "verify-seal"({ transcript, sealKeys, logKeys }) {
    const message = transcriptOf(transcript);
    const { seal, ...unsealed } = message;
    if (seal === undefined) return { refusal: "wrong_seal" };
    const head = headOf(message);
    const verdict = verifySeal(engine, create(TranscriptSchema, unsealed), seal, head, { sealKeys, logKeys });
    return verdict.ok ? { expected: { sealed: true } } : { refusal: verdict.code };
  },
};
