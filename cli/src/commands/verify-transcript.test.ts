import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exportTranscript } from "@depute/asp";
import { documentOf, played, SealingPlatform } from "@depute/asp/testing";
import { nativeEngine } from "@depute/dct/native";
import { afterAll, expect, test, vi } from "vitest";
import { verifyTranscriptFile } from "./verify-transcript.ts";

const folder = mkdtempSync(join(tmpdir(), "depute-verify-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function keep(name: string, content: unknown): string {
  const file = join(folder, name);
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
  return file;
}

const platform = new SealingPlatform(nativeEngine);
const stage = played();
const transcript = platform.seal(exportTranscript(stage.session, stage.entries, stage.nowMs), stage.nowMs);
interface Entry {
  readonly envelope: { readonly integrity: { readonly hash: string } };
}

const document = JSON.parse(documentOf(transcript)) as Record<string, unknown> & { messages: Entry[] };
const { seal: _seal, ...bare } = document;
const { sealKeys, logKeys } = platform.keys;
const [sealKey = "", logKey = ""] = [...sealKeys, ...logKeys];
const [alpha, beta] = stage.session.parties;

const sealed = keep("sealed.json", document);
const unsealed = keep("unsealed.json", bare);
const late = keep("late.json", { ...document, exportedAt: "2026-03-07T15:00:10.000Z" });
const altered = keep("altered.json", JSON.stringify(bare).replace("Seats", "Boats"));
const cut = keep("cut.json", {
  ...document,
  messages: document.messages.slice(0, -1),
  lastHash: document.messages.at(-2)?.envelope.integrity.hash,
});
const trust = keep("platform.json", { format: "asp-transcript-keys/0.1", sealKeys, logKeys });
const answer = keep("answer.json", { keys: { format: "asp-transcript-keys/0.1", sealKeys, logKeys } });

test.each([
  ["sealed, by a file of keys", [sealed, "--trust", trust], 0, ", sealed"],
  ["sealed, by the answer of GetTranscriptKeys", [sealed, "--trust", answer], 0, ", sealed"],
  ["sealed, by keys", [sealed, "--seal-keys", sealKey, "--log-keys", logKey], 0, ", sealed"],
  ["another export time", [late, "--trust", trust], 1, "not verified: wrong_seal"],
  ["the last message cut off", [cut, "--trust", trust], 1, "not verified: wrong_seal"],
  ["an altered message", [altered], 1, "not verified: wrong_hash at message 5"],
  [
    "another platform's seal",
    [sealed, "--seal-keys", logKey, "--log-keys", logKey],
    1,
    "not verified: unknown_seal_key",
  ],
  [
    "another key of an agent",
    [sealed, "--trust", trust, "--keys", `${alpha?.agentId}=${beta?.key}`],
    1,
    "not verified: untrusted_key",
  ],
  ["a file that is not a transcript", [trust], 1, "is not a transcript"],
  ["no argument", [], 2, "name the file"],
  ["a missing file", [join(folder, "nothing.json")], 2, "cannot read"],
  ["sealed, without keys", [sealed], 2, "GET /v1/asp/keys"],
  ["a file without keys", [sealed, "--trust", unsealed], 2, "does not contain the platform's keys"],
  ["one kind of key without the other", [sealed, "--seal-keys", sealKey], 2, "must be set together"],
  ["a malformed key", [sealed, "--seal-keys", "x", "--log-keys", logKey], 2, "x is not a key"],
  ["a file and keys", [sealed, "--trust", trust, "--log-keys", logKey], 2, "not both"],
  ["an unknown flag", [sealed, "--nothing"], 2, "--nothing"],
  ["no seal", [unsealed, "--trust", trust], 3, "unsealed: session"],
  ["no seal, and no keys of agents", [unsealed], 3, "the keys come from the transcript itself"],
] as const)("the exit status: %s", async (_name, args, status, message) => {
  const printed: string[] = [];
  const keepSaid = (text: string) => printed.push(text);
  const spies = [
    vi.spyOn(console, "log").mockImplementation(keepSaid),
    vi.spyOn(console, "error").mockImplementation(keepSaid),
  ];
  try {
    expect(await verifyTranscriptFile(args)).toBe(status);
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
  expect(printed.join("\n")).toContain(message);
});
