import { readFileSync, statSync } from "node:fs";
import { createClient, type Transport } from "@connectrpc/connect";
import { ProofSessions } from "@depute/client";
import { HolderSessionService } from "@depute/contracts/depute/tokens/v1/holder_session_service_pb";
import { systemClock, systemTimers } from "@depute/core";
import type { Keypair } from "@depute/dct";
import { nativeEngine } from "@depute/dct/native";
import {
  currentRequest,
  heldToken,
  holderKey,
  type KeySessions,
  McpProxy,
  PlatformAuthoriser,
  type Presentation,
  platformSchemaCheck,
  provingTransport,
  stdioFace,
  Upstream,
} from "@depute/mcp";
import {
  createServiceTransport,
  defineSettings,
  fromConnectError,
  REQUEST_ID_HEADER,
  readSettings,
  SealedSecrets,
  SettingsError,
} from "@depute/service";
import { serverSettings, splitCommand, upstreamOf } from "./mcp-config.ts";

const settings = defineSettings({
  ...serverSettings,
  platform: { type: "url", default: "http://127.0.0.1:8080", help: "the gateway that decides" },
  platformPublicUrl: {
    type: "url",
    default: "",
    help: "address under which clients know the platform; empty: the same",
  },
  tokenFile: {
    type: "string",
    default: "",
    help: "token for a client that presents none; read again when it changes",
  },
  keyFile: { type: "string", default: "", help: "the token's key: 32 bytes in base64url" },
  platformPrincipal: {
    type: "string",
    default: "",
    help: "principal of the platform; calls with the key then use holder sessions that it signs; empty: a proof for each call",
  },
  credentialFile: {
    type: "string",
    default: "",
    help: "secret by which the platform knows this proxy, sent as Bearer; empty: a proof of the token's key, if any",
  },
});

/**
 * `depute mcp-proxy --config F -- COMMAND ARGS`: serves an MCP server over stdio. A client can call a tool only with a
 * token that allows the call.
 */
export async function mcpProxy(args: readonly string[]): Promise<void> {
  const { flags, command } = splitCommand(args);
  const options = readSettings(settings, flags, {
    name: "depute mcp-proxy",
    description: "Runs an MCP server and lets through what tokens grant. The server's command follows `--`.",
  });
  const config = upstreamOf(options, command);
  const key = options.keyFile === "" ? undefined : readKey(options.keyFile);
  if (options.tokenFile !== "" && key === undefined) throw new SettingsError("--token-file needs --key-file");
  const audience = config.audience ?? `mcp:${config.name}`;
  const publicUrl = options.platformPublicUrl === "" ? options.platform : options.platformPublicUrl;
  const service = createServiceTransport(options.platform, { service: "gateway" });
  const secret = options.credentialFile === "" ? undefined : textIn(options.credentialFile);
  if (secret !== undefined && secret() === undefined)
    throw new SettingsError(`the credential ${options.credentialFile} cannot be read, or is empty`);
  const sessionsOf =
    key === undefined || options.platformPrincipal === ""
      ? undefined
      : holderSessions({ service, key, publicUrl, platform: options.platformPrincipal });
  // A call to the platform may have only one kind of credentials. If the proxy has a secret, it sends no proof.
  const transport =
    key === undefined || secret !== undefined
      ? service
      : provingTransport(service, key, publicUrl, sessionsOf?.("", publicUrl));
  // Standard output is the MCP connection to the client, so messages for people go to standard error.
  const say = (logFault: string) => (thrown: unknown) =>
    console.error(`depute mcp-proxy: ${logFault}:`, messageOf(thrown));

  const upstream = new Upstream({
    config,
    address: config.address,
    clock: systemClock,
    timers: systemTimers,
    ask: (method, params) => face.ask(method, params),
    declared: () => face.declared(),
    onLog: (message) => face.logged(message),
    onListChanged: (list) => face.changed(list),
    onResourceChanged: (uri) => face.resourceChanged(uri),
    onTaskStatus: (task, connection) => proxy.taskChanged(task, connection),
  });
  const callOptions = () => {
    const headers = new Headers();
    const { requestId = "" } = currentRequest() ?? {};
    if (requestId !== "") headers.set(REQUEST_ID_HEADER, requestId);
    if (secret !== undefined) headers.set("authorization", `Bearer ${secret() ?? ""}`);
    return { headers };
  };
  const proxy = new McpProxy({
    config,
    upstream,
    // The MCP server loses its tasks when it ends. So a key that exists only in this process is enough to seal their
    // ids.
    seal: SealedSecrets.ofProcess(),
    authoriser: new PlatformAuthoriser({
      server: config.name,
      tokens: transport,
      registry: transport,
      clock: systemClock,
      callOptions,
      refusalIn: fromConnectError,
      longestCallMs: config.timeoutMs,
    }),
    schemaCheck: platformSchemaCheck({ verifier: transport, callOptions, refusalIn: fromConnectError }),
    clock: systemClock,
    timers: systemTimers,
    audience: () => audience,
    onFault: (what, thrown) => say(what)(thrown),
  });
  const token = options.tokenFile === "" ? () => undefined : textIn(options.tokenFile);
  const holderOf = (): Presentation | undefined => {
    const text = token();
    if (text === undefined || key === undefined) return undefined;
    const sessions = sessionsOf?.(text, audience);
    return heldToken({ token: text, key, audience, now: systemClock.now, ...(sessions && { sessions }) });
  };
  const face = stdioFace({
    proxy: () => proxy,
    held: holderOf,
    audience: () => audience,
    onError: say("client"),
  });
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void face.close());
  await face.ended;
  await proxy.close();
  service.close();
}

interface SessionOptions {
  /** A transport to the platform without credentials. */
  readonly service: Transport;
  readonly key: Keypair;
  readonly publicUrl: string;
  /** The principal that must have signed each holder session. */
  readonly platform: string;
}

/**
 * Returns a function that returns the holder sessions for a token and an audience. An empty token stands for none. The
 * function keeps the sessions of each audience until it is called with another token.
 */
function holderSessions({ service, key: keypair, publicUrl, platform }: SessionOptions) {
  const opener = createClient(HolderSessionService, service);
  const known = new Map<string, { token: string; sessions: KeySessions }>();
  const onFault = (thrown: unknown) =>
    console.error("depute mcp-proxy: cannot open a holder session:", messageOf(thrown));
  return (token: string, audience: string): KeySessions => {
    const kept = known.get(audience);
    if (kept?.token === token) return kept.sessions;
    const holder = { engine: nativeEngine, keypair, publicUrl, platform, ...(token !== "" && { token }) };
    const own = new ProofSessions(holder, opener, audience);
    const sessions = { ready: () => own.ready(onFault), forget: own.forget.bind(own) };
    known.set(audience, { token, sessions });
    return sessions;
  };
}

function readKey(path: string) {
  try {
    return holderKey(readFileSync(path, "utf8"));
  } catch (cause) {
    throw new SettingsError(`cannot use the key file ${path}: ${messageOf(cause)}`, { cause });
  }
}

/**
 * Returns a function that returns the text of a file, and reads the file again after it has changed. The function
 * returns undefined while the file is missing or empty. A token is usually valid for an hour, so a proxy that runs
 * longer must read new tokens from the file.
 */
function textIn(path: string): () => string | undefined {
  let changed = Number.NaN;
  let text: string | undefined;
  return () => {
    try {
      const { mtimeMs } = statSync(path);
      if (mtimeMs !== changed) text = readFileSync(path, "utf8").trim();
      changed = mtimeMs;
    } catch {
      // If the file is missing, the function returns undefined.
      text = undefined;
      changed = Number.NaN;
    }
    return text === "" ? undefined : text;
  };
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
