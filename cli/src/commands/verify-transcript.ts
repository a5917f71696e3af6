import { open } from "node:fs/promises";
import {
  MAX_TRANSCRIPT_BYTES,
  type PlatformKeys,
  readTranscript,
  readTranscriptKeys,
  stateName,
  type TranscriptVerdict,
  verifyTranscript,
} from "@depute/asp";
import { nativeEngine } from "@depute/dct/native";
import { defineSettings, readSettings, SettingsError } from "@depute/service";

const settings = defineSettings({
  trust: {
    type: "string",
    default: "",
    help: "the file with the platform's keys, the answer of its GET /v1/asp/keys or GetTranscriptKeys; fetch it once over a trusted connection",
  },
  sealKeys: {
    type: "list",
    default: [],
    help: "the platform's sealing keys, in place of a file: 43 characters of base64url each",
  },
  logKeys: {
    type: "list",
    default: [],
    help: "the keys of the platform's transparency log, in place of a file: 43 characters of base64url each",
  },
  keys: {
    type: "list",
    default: [],
    help: "keys of agents as you know them, AGENT=KEY,...: agent://domain/unit/name and 43 characters of base64url",
  },
  relaxedIds: { type: "bool", default: false, help: "take ids that are no UUIDv7" },
});

/** The exit statuses of the command. */
const EXIT = { sealed: 0, altered: 1, usage: 2, unsealed: 3 } as const;

/**
 * `depute verify-transcript FILE`: applies the rules of ASP to a session's transcript and checks its seal, offline. The
 * command prints the state to which the messages lead.
 *
 * @returns the exit status: 0 sealed and valid, 1 altered or not a transcript, 2 wrong usage or missing keys of the
 * platform for a sealed transcript, 3 consistent but unsealed
 */
export async function verifyTranscriptFile(args: readonly string[]): Promise<number> {
  try {
    return await verified(args);
  } catch (thrown) {
    if (!(thrown instanceof SettingsError)) throw thrown;
    console.error(`depute: ${thrown.message}`);
    return EXIT.usage;
  }
}

async function verified(args: readonly string[]): Promise<number> {
  const [file, flags] = args[0]?.startsWith("-") === false ? [args[0], args.slice(1)] : ["", args];
  const { keys, relaxedIds, ...trusted } = readSettings(settings, flags, {
    name: "depute verify-transcript FILE",
    description:
      "Verifies the transcript of an ASP session, offline. FILE is JSON, as GET /v1/asp/sessions/{id}/transcript or ExportTranscript give it. Exit status: 0 sealed and valid, 1 altered, 2 wrong usage, 3 unsealed.",
  });
  if (file === undefined || file === "")
    throw new SettingsError("name the file: depute verify-transcript FILE");
  const platform = await platformKeys(trusted);
  const known = new Map(keys.map(entry));
  const read = readTranscript(await bytesOf(file, MAX_TRANSCRIPT_BYTES));
  if (!read.ok) {
    console.error(`not verified: ${file} is not a transcript: ${read.detail}`);
    return EXIT.altered;
  }
  const verdict = verifyTranscript(read.transcript, {
    engine: nativeEngine,
    strictIds: !relaxedIds,
    ...(known.size === 0 ? {} : { keyOf: (agentId: string) => known.get(agentId) }),
    ...(platform === undefined ? {} : { platform }),
  });
  if (!verdict.ok) {
    const { code, detail, ordinal } = verdict;
    console.error(`not verified: ${code}${ordinal === 0 ? "" : ` at message ${ordinal}`}: ${detail}`);
    return EXIT.altered;
  }
  if (verdict.seal === "unchecked") {
    throw new SettingsError(
      "the transcript is sealed, and the check of its seal needs the platform's keys: set --trust FILE with the answer of the platform's GET /v1/asp/keys, or --seal-keys and --log-keys",
    );
  }
  console.log(report(verdict, known.size > 0));
  return verdict.seal === "sealed" ? EXIT.sealed : EXIT.unsealed;
}

function report({ session, states, seal }: TranscriptVerdict & { ok: true }, areKeysKnown: boolean): string {
  const { sessionId, parties, messageCount, lastHash, state } = session;
  const isSealed = seal === "sealed";
  return [
    isSealed
      ? `verified: session ${sessionId}, ${messageCount} messages, ${stateName(state)}, sealed`
      : `unsealed: session ${sessionId}, ${messageCount} messages, ${stateName(state)}: the messages follow from each other, but later ones may have been cut off and times changed`,
    `states: ${states.map(stateName).join(" ")}`,
    ...parties.map(({ agentId, key }) => `party: ${agentId} ${key}`),
    `newest: ${lastHash}`,
    ...(areKeysKnown || isSealed
      ? []
      : ["the keys come from the transcript itself: compare them, or pass yours with --keys"]),
  ].join("\n");
}

interface Trusted {
  readonly trust: string;
  readonly sealKeys: readonly string[];
  readonly logKeys: readonly string[];
}

/**
 * Returns the trusted keys of the platform; undefined if the flags name none.
 *
 * @throws SettingsError if a key file is unreadable, a key is malformed, the flags name only one of seal keys and log
 * keys, or the flags name `--trust` and other keys
 */
async function platformKeys({ trust, sealKeys, logKeys }: Trusted): Promise<PlatformKeys | undefined> {
  if (trust !== "") {
    if (sealKeys.length + logKeys.length > 0) {
      throw new SettingsError("set either --trust, or --seal-keys and --log-keys, but not both");
    }
    const read = readTranscriptKeys(await bytesOf(trust, MAX_TRUST_BYTES));
    if (!read.ok) throw new SettingsError(`${trust} does not contain the platform's keys: ${read.detail}`);
    return read.keys;
  }
  if (sealKeys.length === 0 && logKeys.length === 0) return undefined;
  if (sealKeys.length === 0 || logKeys.length === 0) {
    throw new SettingsError("--seal-keys and --log-keys must be set together");
  }
  for (const key of [...sealKeys, ...logKeys]) {
    if (!KEY.test(key)) throw new SettingsError(`${key} is not a key of 43 characters of base64url`);
  }
  return { sealKeys, logKeys };
}

const KEY = /^[A-Za-z0-9_-]{43}$/;
/** Maximum size of a key file in bytes. */
const MAX_TRUST_BYTES = 65_536;

/**
 * Splits a text AGENT=KEY.
 *
 * @throws SettingsError if the text has another form
 */
function entry(text: string): [agentId: string, key: string] {
  const [, agentId, key] = /^(agent:\/\/[^=]+)=([A-Za-z0-9_-]{43})$/.exec(text) ?? [];
  if (agentId === undefined || key === undefined) {
    throw new SettingsError(`--keys: ${text} is not AGENT=KEY, with a key of 43 characters of base64url`);
  }
  return [agentId, key];
}

/**
 * Reads a file.
 *
 * @throws SettingsError if the file cannot be read, or is longer than `maxBytes`
 */
async function bytesOf(file: string, maxBytes: number): Promise<Uint8Array> {
  const handle = await open(file).catch((cause: unknown) => {
    throw new SettingsError(`cannot read ${file}: ${(cause as Error).message}`, { cause });
  });
  try {
    const { size } = await handle.stat();
    if (size > maxBytes) throw new SettingsError(`${file} is longer than ${maxBytes} bytes`);
    return await handle.readFile();
  } finally {
    await handle.close();
  }
}
