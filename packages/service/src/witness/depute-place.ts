import { type Client, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { RootSuccession } from "@depute/contracts/depute/tokens/v1/root_key_service_pb";
import { WitnessService } from "@depute/contracts/depute/verifier/v1/witness_service_pb";
import { ErrorReason } from "@depute/core";
import { reasonOf } from "../errors-on-wire.ts";
import { SettingsError } from "../settings.ts";
import { type LogName, textOf, toHead } from "./head-messages.ts";
import { HeadMovedError, type WitnessPlace } from "./witness-place.ts";

/** Maximum time of one call, in milliseconds. */
const TIMEOUT_MS = 10_000;
/** Maximum size of a response in bytes. A record with both heads has less than 1,000 bytes. */
const MAX_ANSWER_BYTES = 64 * 1024;

/** Returns a holder proof (RFC 9449) for one call, signed with the key of `seed`. */
export type HolderProof = (
  seed: Uint8Array,
  claims: { readonly htm: string; readonly htu: string },
) => string;

/** The functions of a log that a witness needs to check the log's heads. */
export interface WitnessedLog {
  readonly holderProof: HolderProof;
  /**
   * Returns the proof that the log at the second size extends the log at the first size. Absent for a log without such
   * proofs.
   */
  readonly consistency?: (firstSize: number, secondSize: number) => Promise<readonly Uint8Array[]>;
  /** Returns the statements by which root keys followed each other. Absent for a log whose signer never changes. */
  readonly successions?: () => readonly RootSuccession[];
}

export interface DeputePlaceOptions {
  /** The public address of the witness, with the prefix `depute+`. */
  readonly witness: string;
  readonly name: LogName;
  /**
   * The credentials of this platform at the witness: a bearer token, or the seed of a key for holder proofs. Empty for
   * an open witness on loopback.
   */
  readonly credentials: { readonly token?: string; readonly seed?: Uint8Array };
  /** PEM certificates of the witness's authorities; the system's when absent. */
  readonly ca?: string;
  readonly log: WitnessedLog;
}

/**
 * Returns a place for a log's head at another Depute platform, the witness. The witness stores the heads of both logs
 * of this platform in one record, and refuses a head that does not extend the stored head.
 *
 * @throws SettingsError for an address that cannot be used
 */
export function deputePlace({ witness, name, credentials, ca, log }: DeputePlaceOptions): WitnessPlace {
  const url = addressOf(witness);
  const transport = createConnectTransport({
    baseUrl: url,
    // Every reverse proxy serves HTTP/1.1.
    httpVersion: "1.1",
    // JSON lets a program other than Depute be the witness. The cost of JSON does not matter, because a process
    // publishes at most four heads of a log a second.
    useBinaryFormat: false,
    ...(ca !== undefined && { nodeOptions: { ca } }),
    defaultTimeoutMs: TIMEOUT_MS,
    readMaxBytes: MAX_ANSWER_BYTES,
    interceptors: [authenticated(url, credentials, log.holderProof)],
    acceptCompression: [],
  });
  const client = createClient(WitnessService, transport);
  return {
    address: `${url} (${name})`,
    removal: "let an operator of the witness delete the platform's record",
    async read() {
      return textOf(name, await recordOf(client));
    },
    async write(text) {
      const { head, size } = toHead(name, text);
      const kept = textOf(name, await recordOf(client));
      const firstSize = kept === undefined ? 0 : toHead(name, kept).size;
      const isProven = log.consistency !== undefined && kept !== undefined && firstSize < size;
      const consistencyProof = isProven ? [...((await log.consistency?.(firstSize, size)) ?? [])] : [];
      const successions = kept === undefined ? [] : [...(log.successions?.() ?? [])];
      const request = { head, firstSize: BigInt(firstSize), consistencyProof, successions };
      await client.publishLogHead(request).catch(refused);
    },
  };
}

function addressOf(witness: string): string {
  const text = witness.slice("depute+".length);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || url.username !== "" || url.search !== "" || url.hash !== "")
    throw new SettingsError("DEPUTE_WITNESS: write another platform's address like depute+https://host:port");
  return text.replace(/\/+$/, "");
}

function authenticated(
  url: string,
  { token, seed }: DeputePlaceOptions["credentials"],
  proof: HolderProof,
): Interceptor {
  return (next) => (request) => {
    const path = `/${request.service.typeName}/${request.method.name}`;
    if (token !== undefined) request.header.set("authorization", `Bearer ${token}`);
    if (seed !== undefined) request.header.set("dpop", proof(seed, { htm: "POST", htu: `${url}${path}` }));
    return next(request);
  };
}

async function recordOf(client: Client<typeof WitnessService>) {
  try {
    return (await client.getWitnessedPlatform({})).platform;
  } catch (error) {
    if (reasonOf(error) === ErrorReason.WITNESSED_PLATFORM_NOT_FOUND) return undefined;
    return refused(error);
  }
}

/**
 * @throws HeadMovedError if another head was published in the meantime; otherwise Error with the message of the refusal
 */
function refused(error: unknown): never {
  const reason = reasonOf(error);
  const { message } = ConnectError.from(error);
  if (reason === ErrorReason.LOG_HEAD_OLDER || reason === ErrorReason.LOG_HEAD_MOVED)
    throw new HeadMovedError(message, { cause: error });
  throw new Error(message, { cause: error });
}
