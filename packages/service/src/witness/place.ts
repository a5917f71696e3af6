import { existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { open, rename } from "node:fs/promises";
import { isAbsolute, join, relative } from "node:path";
import type { Timers } from "@depute/core";
import { openSeedFile } from "../key-file.ts";
import { SettingsError } from "../settings.ts";
import { deputePlace, type WitnessedLog } from "./depute-place.ts";
import type { LogName } from "./head-messages.ts";
import type { WitnessPlace } from "./witness-place.ts";

export interface WitnessSettings {
  /** DEPUTE_WITNESS: a folder or an address; empty for none. */
  readonly witness: string;
  /** The bearer token for an address; empty for none. */
  readonly witnessToken: string;
  /** The file of the key that signs holder proofs for another Depute platform; empty for none. */
  readonly witnessKeyFile: string;
  /** The PEM file with the authorities of another Depute platform; empty for the authorities of the system. */
  readonly witnessCaFile: string;
  readonly dataDir: string;
}

/** Maximum time of one request in milliseconds. */
const TIMEOUT_MS = 10_000;
/** Maximum size of a head in bytes. */
const MAX_BYTES = 64 * 1024;

/**
 * Returns the place of a log's head: the file `NAME.head` in a folder, the address `WITNESS/NAME.head` with GET and
 * PUT, or the platform's record at another Depute platform.
 *
 * @returns undefined if no witness is configured
 * @throws SettingsError for a malformed address, for a folder that does not exist or is part of the data folder, for
 * credentials that this kind of witness does not use, for two kinds of credentials, and for a file that cannot be used
 */
export function witnessPlace(
  settings: WitnessSettings,
  name: LogName,
  log: WitnessedLog,
  timers: Timers,
  fetch: typeof globalThis.fetch = globalThis.fetch,
): WitnessPlace | undefined {
  const { witness, witnessToken, dataDir } = settings;
  if (witness === "") return undefined;
  if (/^depute\+https?:\/\//.test(witness)) return placeAtDepute(settings, name, log);
  for (const [setting, value] of [
    ["DEPUTE_WITNESS_KEY_FILE", settings.witnessKeyFile],
    ["DEPUTE_WITNESS_CA_FILE", settings.witnessCaFile],
  ]) {
    if (value !== "")
      throw new SettingsError(
        `${setting}: it is used only with a witness like depute+https://host; remove it, or name such a witness`,
      );
  }
  if (/^https?:\/\//.test(witness)) {
    if (!URL.canParse(witness))
      throw new SettingsError("DEPUTE_WITNESS: write a folder, or an address like https://host/heads");
    return addressPlace(`${witness.replace(/\/+$/, "")}/${name}.head`, witnessToken, timers, fetch);
  }
  if (!existsSync(witness) || !statSync(witness).isDirectory())
    throw new SettingsError(
      `DEPUTE_WITNESS: the folder ${witness} does not exist; create it, on another disk or machine`,
    );
  if (isWithin(witness, dataDir))
    throw new SettingsError(
      `DEPUTE_WITNESS: ${witness} is within the data folder, so an old copy of the folder would contain it; name another folder`,
    );
  return filePlace(join(witness, `${name}.head`));
}

function placeAtDepute(
  { witness, witnessToken, witnessKeyFile, witnessCaFile, dataDir }: WitnessSettings,
  name: LogName,
  log: WitnessedLog,
): WitnessPlace {
  if (witnessToken !== "" && witnessKeyFile !== "")
    throw new SettingsError(
      "DEPUTE_WITNESS_KEY_FILE: DEPUTE_WITNESS_TOKEN is set too; set only one of the two",
    );
  const danger = "its readers can publish heads in the platform's name";
  const key = { dataDir, name: "", configured: witnessKeyFile, danger };
  return deputePlace({
    ...{ witness, name, log },
    credentials: {
      ...(witnessToken !== "" && { token: witnessToken }),
      ...(witnessKeyFile !== "" && { seed: openSeedFile(key) }),
    },
    ...(witnessCaFile !== "" && { ca: authorities(witnessCaFile) }),
  });
}

function authorities(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new SettingsError(`DEPUTE_WITNESS_CA_FILE: ${file} cannot be read: ${(cause as Error).message}`, {
      cause,
    });
  }
}

function isWithin(path: string, folder: string): boolean {
  if (!existsSync(folder)) return false;
  const way = relative(realpathSync(folder), realpathSync(path));
  return way === "" || !(way.startsWith("..") || isAbsolute(way));
}

function filePlace(file: string): WitnessPlace {
  return {
    address: file,
    async read() {
      return existsSync(file) ? readFileSync(file, "utf8") : undefined;
    },
    async write(text) {
      const draft = `${file}.new`;
      const handle = await open(draft, "w", 0o600);
      try {
        await handle.writeFile(text);
        await handle.sync();
      } finally {
        await handle.close();
      }
      await rename(draft, file);
    },
  };
}

function addressPlace(
  address: string,
  token: string,
  timers: Timers,
  fetch: typeof globalThis.fetch,
): WitnessPlace {
  const request = async (init: RequestInit): Promise<{ status: number; text: string }> => {
    const stop = new AbortController();
    const cancel = timers.after(TIMEOUT_MS, () => stop.abort(new Error(`no answer within ${TIMEOUT_MS} ms`)));
    try {
      const headers = {
        "content-type": "application/json",
        ...(token !== "" && { authorization: `Bearer ${token}` }),
      };
      const answer = await fetch(address, { ...init, headers, redirect: "error", signal: stop.signal });
      return { status: answer.status, text: await limitedText(answer) };
    } finally {
      cancel();
    }
  };
  return {
    address,
    async read() {
      const { status, text } = await request({ method: "GET" });
      if (status === 404) return undefined;
      if (status !== 200) throw new Error(`it answers GET with status ${status}`);
      return text;
    },
    async write(text) {
      const { status } = await request({ method: "PUT", body: text });
      if (status < 200 || status > 299) throw new Error(`it answers PUT with status ${status}`);
    },
  };
}

async function limitedText(answer: Response): Promise<string> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of answer.body ?? []) {
    bytes += piece.length;
    if (bytes > MAX_BYTES) throw new Error(`its answer exceeds ${MAX_BYTES} bytes`);
    pieces.push(piece);
  }
  return new TextDecoder().decode(Buffer.concat(pieces));
}
