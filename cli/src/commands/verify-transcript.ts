import { open } from "node:fs/promises";
import {
  MAX_TRANSCRIPT_BYTES,
  readTranscript,
  stateName,
  type TranscriptVerdict,
  verifyTranscript,
} from "@depute/asp";
import { nativeEngine } from "@depute/dct/native";
import { defineSettings, readSettings, SettingsError } from "@depute/service";

const settings = defineSettings({
  keys: {
    type: "list",
    default: [],
    help: "keys as you know them, AGENT=KEY,...: agent://domain/unit/name and 43 characters of base64url; without any, a transcript is only shown to agree with itself",
  },
  relaxedIds: { type: "bool", default: false, help: "take ids that are no UUIDv7" },
});

/**
 * `depute verify-transcript FILE`: applies the rules of ASP to a session's transcript, offline. It says what the messages
 * lead to, and ends with status 1 when a message or the whole is not as it should be.
 *
 * @returns the process's exit status
 */
export async function verifyTranscriptFile(args: readonly string[]): Promise<number> {
  const [file, flags] = args[0]?.startsWith("-") === false ? [args[0], args.slice(1)] : ["", args];
  const { keys, relaxedIds } = readSettings(settings, flags, {
    name: "depute verify-transcript FILE",
    description:
      "Verifies the transcript of an ASP session, asking nobody. FILE is JSON, as GET /v1/asp/sessions/{id}/transcript or ExportTranscript give it.",
  });
  if (file === undefined || file === "")
    throw new SettingsError("name the file: depute verify-transcript FILE");
  const read = readTranscript(await bytesOf(file));
  if (!read.ok) {
    console.error(`not verified: ${file} is no transcript: ${read.detail}`);
    return 1;
  }
  const known = new Map(keys.map(entry));
  const verdict = verifyTranscript(read.transcript, {
    engine: nativeEngine,
    strictIds: !relaxedIds,
    ...(known.size === 0 ? {} : { keyOf: (agentId: string) => known.get(agentId) }),
  });
  if (!verdict.ok) {
    const { code, detail, ordinal } = verdict;
    console.error(`not verified: ${code}${ordinal === 0 ? "" : ` at message ${ordinal}`}: ${detail}`);
    return 1;
  }
  console.log(report(verdict, known.size > 0));
  return 0;
}

function report({ session, states }: TranscriptVerdict & { ok: true }, areKeysKnown: boolean): string {
  const { sessionId, parties, messageCount, lastHash, state } = session;
  return [
    `verified: session ${sessionId}, ${messageCount} messages, ${stateName(state)}`,
    `states: ${states.map(stateName).join(" ")}`,
    ...parties.map(({ agentId, key }) => `party: ${agentId} ${key}`),
    `newest: ${lastHash}`,
    ...(areKeysKnown ? [] : ["the keys are the transcript's own: compare them, or give yours with --keys"]),
  ].join("\n");
}

/** @throws SettingsError for what is no AGENT=KEY */
function entry(text: string): [agentId: string, key: string] {
  const [, agentId, key] = /^(agent:\/\/[^=]+)=([A-Za-z0-9_-]{43})$/.exec(text) ?? [];
  if (agentId === undefined || key === undefined) {
    throw new SettingsError(`--keys: ${text} is not AGENT=KEY, with a key of 43 characters of base64url`);
  }
  return [agentId, key];
}

/** @throws SettingsError for a file that cannot be read, or is too long */
async function bytesOf(file: string): Promise<Uint8Array> {
  const handle = await open(file).catch((cause: unknown) => {
    throw new SettingsError(`cannot read ${file}: ${(cause as Error).message}`, { cause });
  });
  try {
    const { size } = await handle.stat();
    if (size > MAX_TRANSCRIPT_BYTES) {
      throw new SettingsError(`${file} is longer than ${MAX_TRANSCRIPT_BYTES} bytes`);
    }
    return await handle.readFile();
  } finally {
    await handle.close();
  }
}
