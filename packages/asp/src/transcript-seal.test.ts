import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { toJson } from "@bufbuild/protobuf";
import { TranscriptSchema } from "@depute/contracts/asp/v0/transcript_pb";
import { ExportTranscriptResponseSchema } from "@depute/contracts/depute/tasks/v1/session_service_pb";
import { canonicalBytes } from "@depute/core";
import { keypairFromSeed } from "@depute/dct";
import { nativeEngine } from "@depute/dct/native";
import { logHeadSigningInput } from "@depute/dct/transparency";
import { encode } from "@depute/wire";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readTranscript } from "./read-transcript.ts";
import { SealingPlatform } from "./testing/log.ts";
import { played } from "./testing/played.ts";
import type { Stage } from "./testing/stage.ts";
import { exportTranscript, verifyTranscript } from "./transcript.ts";
import { SEAL_TAG, signatureText } from "./transcript-seal.ts";

const platform = new SealingPlatform(nativeEngine);

const stage = played();
const unsealed = exportTranscript(stage.session, stage.entries, stage.nowMs);
const sealed = platform.seal(unsealed, stage.nowMs);
const file = new TextEncoder().encode(JSON.stringify(encode(TranscriptSchema, sealed)));

/** Returns the verdict on a file, for a reader that trusts the platform's keys. */
function verdictOf(bytes: Uint8Array, keys = platform.keys): string {
  const read = readTranscript(bytes);
  if (!read.ok) return "no transcript";
  const verdict = verifyTranscript(read.transcript, { engine: nativeEngine, platform: keys });
  return verdict.ok ? verdict.seal : verdict.code;
}

const verdictOfJson = (document: JsonValue) => verdictOf(new TextEncoder().encode(JSON.stringify(document)));
const documentOf = (bytes: Uint8Array) => JSON.parse(new TextDecoder().decode(bytes)) as JsonObject;

/** Whether two texts contain the same JSON. */
function isSameJson(one: Uint8Array, other: Uint8Array): boolean {
  try {
    const [a, b] = [one, other].map((bytes) => Buffer.from(canonicalBytes(documentOf(bytes))));
    return a?.equals(b ?? Buffer.alloc(0)) === true;
  } catch {
    return false;
  }
}

/** Returns the path of every value in a document that is neither an object nor an array. */
function leaves(value: JsonValue, path: readonly (string | number)[] = []): (readonly (string | number)[])[] {
  if (typeof value !== "object" || value === null) return [path];
  return Object.entries(value).flatMap(([name, member]) =>
    leaves(member as JsonValue, [...path, Array.isArray(value) ? Number(name) : name]),
  );
}

function changedAt(path: readonly (string | number)[], change: (value: JsonValue) => JsonValue): JsonObject {
  const copy = documentOf(file);
  let at = copy as unknown as Record<string | number, JsonValue>;
  for (const name of path.slice(0, -1)) at = at[name] as unknown as Record<string | number, JsonValue>;
  const last = path.at(-1) ?? "";
  at[last] = change(at[last] as JsonValue);
  return copy;
}

/** Returns a value of the same type that differs as little as possible. */
function other(value: JsonValue, place: number, bit: number): JsonValue {
  if (typeof value === "number") return value + (bit % 2 === 0 ? 1 : -1);
  if (typeof value === "boolean") return !value;
  const text = String(value);
  const at = place % Math.max(1, text.length);
  const code = text.charCodeAt(at) ^ (1 << (bit % 7));
  return text.slice(0, at) + String.fromCharCode(code) + text.slice(at + 1);
}

test("a sealed transcript verifies with the platform's keys alone", () => {
  expect(verdictOf(file)).toBe("sealed");
  expect(verdictOf(new TextEncoder().encode(JSON.stringify(documentOf(file), null, 2)))).toBe("sealed");
  const answer = toJson(ExportTranscriptResponseSchema, {
    $typeName: ExportTranscriptResponseSchema.typeName,
    transcript: sealed,
  });
  expect(verdictOfJson(answer as JsonObject)).toBe("sealed");
});

describe("a changed transcript fails the check", () => {
  test("with one changed bit in any value of the document", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...leaves(documentOf(file))),
        fc.nat(200),
        fc.nat(6),
        (path, place, bit) => {
          expect(verdictOfJson(changedAt(path, (value) => other(value, place, bit)))).not.toBe("sealed");
        },
      ),
      { numRuns: 200 },
    );
  });

  test("with one changed bit in any byte of the file, unless the JSON stays the same", () => {
    fc.assert(
      fc.property(fc.nat(file.length - 1), fc.nat(7), (place, bit) => {
        const bytes = Uint8Array.from(file);
        bytes[place] = (bytes[place] ?? 0) ^ (1 << bit);
        if (isSameJson(bytes, file)) return;
        expect(verdictOf(bytes)).not.toBe("sealed");
      }),
      { numRuns: 200 },
    );
  });

  test("as a truncated file", () => {
    fc.assert(
      fc.property(fc.nat(file.length - 1), (length) => {
        expect(verdictOf(file.subarray(0, length))).toBe("no transcript");
      }),
      { numRuns: 50 },
    );
  });

  test.each<[string, (document: JsonObject & { messages: JsonObject[]; seal: JsonObject }) => void, string]>([
    ["exportedAt", (it) => Object.assign(it, { exportedAt: "2026-03-07T15:00:10.000Z" }), "wrong_seal"],
    [
      "receivedAt",
      (it) => Object.assign(it.messages[6] ?? {}, { receivedAt: "2026-03-07T15:00:07.001Z" }),
      "wrong_seal",
    ],
    [
      "the last message and what follows from it",
      (it) => {
        it.messages.pop();
        const { envelope } = it.messages.at(-1) as { envelope: { integrity: JsonObject } };
        Object.assign(it, { lastHash: envelope.integrity.hash });
      },
      "wrong_seal",
    ],
    ["the order of participants", (it) => (it.participants as JsonValue[]).reverse(), "wrong_seal"],
    ["the order of messages", (it) => it.messages.reverse(), "malformed_transcript"],
    ["a member of a participant", (it) => delete (it.participants as JsonObject[])[2]?.orgId, "wrong_seal"],
    ["an unknown member", (it) => Object.assign(it, { note: "true" }), "no transcript"],
    ["the time of the log in another spelling", (it) => respell(it.seal, "loggedAt"), "wrong_seal"],
    ["the time of the log's head in another spelling", (it) => respell(it.seal, "signedAt"), "wrong_seal"],
  ])("with a change: %s", (_name, change, verdict) => {
    const document = documentOf(file) as JsonObject & { messages: JsonObject[]; seal: JsonObject };
    change(document);
    expect(verdictOfJson(document)).toBe(verdict);
  });

  test("with the seal of another session, or of an earlier export of the same session", () => {
    const elsewhere = played("019526b1-0000-7000-8000-000000000003");
    const sealOf = (one: Stage, nowMs: number) =>
      platform.seal(exportTranscript(one.session, one.entries, nowMs), nowMs).seal;
    for (const seal of [sealOf(elsewhere, stage.nowMs), sealOf(stage, stage.nowMs - 1)]) {
      const document = encode(TranscriptSchema, { ...sealed, ...(seal === undefined ? {} : { seal }) });
      expect(verdictOfJson(document)).toBe("wrong_seal");
    }
  });
});

/**
 * Rewrites a time in the proof of the log without its milliseconds, which are zero in this test. The text then
 * differs, but the time is the same.
 */
function respell(seal: JsonObject, name: string): void {
  const log = seal.log as JsonObject;
  log[name] = String(log[name]).replace(".000Z", "Z");
}

describe("a seal is checked with the reader's keys", () => {
  const stranger = new SealingPlatform(nativeEngine, "stranger");
  test.each([
    ["another sealing key", { ...platform.keys, sealKeys: stranger.keys.sealKeys }],
    ["another log", { ...platform.keys, logKeys: stranger.keys.logKeys }],
  ])("%s", (_name, keys) => {
    expect(verdictOf(file, keys)).toBe("unknown_seal_key");
  });

  test("a stranger's seal over changed messages", () => {
    const cut = exportTranscript(stage.session, stage.entries, stage.nowMs + 5);
    const document = encode(TranscriptSchema, stranger.seal(cut, stage.nowMs));
    expect(verdictOfJson(document)).toBe("unknown_seal_key");
  });

  test("without keys a seal is unchecked, and a transcript without one is unsealed", () => {
    const options = { engine: nativeEngine };
    expect(verifyTranscript(sealed, options)).toMatchObject({ ok: true, seal: "unchecked" });
    expect(verifyTranscript(unsealed, options)).toMatchObject({ ok: true, seal: "unsealed" });
    expect(verdictOfJson(encode(TranscriptSchema, unsealed))).toBe("unsealed");
  });
});

test("a seal is no other signature of its key, and no other signature is a seal (K9)", () => {
  const { principal, privateKey } = keypairFromSeed(nativeEngine, new Uint8Array(32).fill(7));
  const keys = { ...platform.keys, sealKeys: [principal.id] };
  const bytes = logHeadSigningInput({
    log: principal.id,
    treeSize: 1,
    rootHash: new Uint8Array(32),
    time: 0,
  });
  const untagged = canonicalBytes({ exportedAt: sealed.exportedAt, key: principal.id });
  for (const signed of [bytes, untagged]) {
    const signature = signatureText(nativeEngine.sign(signed, privateKey));
    const seal = { ...requireValue(sealed.seal), key: principal.id, signature };
    const options = { engine: nativeEngine, platform: keys };
    expect(verifyTranscript({ ...sealed, seal }, options)).toMatchObject({ ok: false, code: "wrong_seal" });
  }
  expect(SEAL_TAG).toMatch(/^delegateos-[a-z-]+-v1\0$/);
});

function requireValue<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("there is no seal");
  return value;
}

test("exports with the same newest message have one head at any time of export", () => {
  const later = exportTranscript(stage.session, stage.entries, stage.nowMs + 60_000);
  expect(platform.seal(later, stage.nowMs).seal?.recordHash).toBe(sealed.seal?.recordHash);
});
