import type { CallLimits } from "./call-limits.ts";
import { Faults } from "./faults.ts";
import { EMPTY_MAP, mergeMaps, readLimits, readToolMap } from "./read-map.ts";
import type { ToolMap } from "./tool-map.ts";

/** The address of a server. */
export type UpstreamAddress =
  | {
      readonly kind: "stdio";
      readonly command: string;
      readonly args: readonly string[];
      readonly env: Readonly<Record<string, string>>;
      readonly cwd?: string;
      /** Present if each MCP session has its own server process; absent if all clients share one process. */
      readonly process?: "session";
    }
  | { readonly kind: "http"; readonly url: string; readonly headers: Readonly<Record<string, string>> };

/** One server behind the proxy. */
export interface UpstreamConfig {
  readonly name: string;
  /** The server's address; absent if the command line supplies it. */
  readonly address?: UpstreamAddress;
  readonly map: ToolMap;
  /** The limits of each principal's calls. Calls of all tools, and of all methods with a rule, count together. */
  readonly limits: CallLimits;
  /** Whether every call needs a token. If false, a call without a token is allowed if its tool has a rule. */
  readonly requireToken: boolean;
  /**
   * Whether each request over HTTP needs a login, which the gateway verifies. If true, a client must send its token in
   * `_delegateos`, because the HTTP header contains the login.
   */
  readonly login: boolean;
  /** The target that a proof in `_delegateos` must name. Default: the proxy's own address. */
  readonly audience?: string;
  /** Maximum duration of one call, in milliseconds. */
  readonly timeoutMs: number;
  /**
   * The era of MCP revisions that the server supports. With `auto`, the proxy tries `modern` first, so a legacy server
   * takes longer to start.
   */
  readonly revision: (typeof REVISIONS)[number];
  /** Maximum size of a message from the server, in bytes. */
  readonly maxAnswerBytes: number;
  /** Milliseconds for which a list of definitions is valid. With 0, the proxy reads the list before each use. */
  readonly definitionTtlMs: number;
  /**
   * Whether the server decides how long its lists are valid, by their `ttlMs` and by change notifications. If false,
   * `definitionTtlMs` decides.
   */
  readonly trustPromises: boolean;
  /** Maximum number of calls for which one reservation of the token's budget is made; 1 means each call has its own. */
  readonly callsPerReservation: number;
  /** The id of the server in the `mcp_bindings` of CAP manifests. */
  readonly serverId: string;
}

export interface ProxyConfig<Server extends UpstreamConfig = UpstreamConfig> {
  readonly upstreams: ReadonlyMap<string, Server>;
}

/** Thrown for an invalid configuration. Each fault names the place in the configuration. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(faults.join("; "));
    this.faults = faults;
  }
}

const MEMBERS = [
  "$comment",
  "stdio",
  "http",
  "maps",
  "map",
  "limits",
  "requireToken",
  "login",
  "audience",
  "timeoutMs",
  "maxAnswerBytes",
  "definitionTtlMs",
  "trustPromises",
  "callsPerReservation",
  "serverId",
  "revision",
];
/** Eras of MCP revisions. `modern` means 2026-07-28 and later; `legacy` means all earlier revisions. */
const REVISIONS = ["auto", "modern", "legacy"] as const;
/** The clients that share one server process over stdio: all clients, or those of one MCP session. */
const PROCESSES = ["shared", "session"] as const;
const NAME = /^[a-z0-9][a-z0-9_-]{0,63}$/;
/** The members with numbers: the default, and the limits. */
const NUMBERS = {
  timeoutMs: { preset: 60_000, min: 1, max: 3_600_000 },
  // Below the minimum, the proxy would refuse a server's description of itself. Up to the maximum, every message fits
  // into a JavaScript string.
  maxAnswerBytes: { preset: 10_485_760, min: 65_536, max: 268_435_456 },
  definitionTtlMs: { preset: 0, min: 0, max: 3_600_000 },
  callsPerReservation: { preset: 16, min: 1, max: 256 },
};

/**
 * Reads the configuration of a proxy: `{"upstreams": {"files": {"stdio": {...}, "maps": ["filesystem"], "map": {...}}}}`.
 *
 * @param shipped the maps that come with the package, by name
 * @throws ConfigError with every fault
 */
export function readConfig(document: unknown, shipped: ReadonlyMap<string, unknown>): ProxyConfig {
  const faults = new Faults();
  const root = faults.object(document, "", ["$comment", "upstreams"]) ?? {};
  const entries = Object.entries(faults.object(root.upstreams, "/upstreams") ?? {});
  const upstreams = entries.map(([name, value]) => {
    const path = `/upstreams/${name}`;
    if (!NAME.test(name)) faults.add(path, "the name must be 1 to 64 characters of a-z, 0-9, - and _");
    return [name, readUpstream(name, value, path, shipped, faults)] as const;
  });
  if (faults.found.length > 0) throw new ConfigError(faults.found);
  return { upstreams: new Map(upstreams) };
}

function readUpstream(
  name: string,
  value: unknown,
  path: string,
  shipped: ReadonlyMap<string, unknown>,
  faults: Faults,
): UpstreamConfig {
  const upstream = faults.object(value, path, MEMBERS) ?? {};
  const own = upstream.map === undefined ? EMPTY_MAP : readToolMap(upstream.map, `${path}/map`, faults);
  const namedMaps = faults.texts(upstream.maps, `${path}/maps`).map((known, i) => {
    if (shipped.has(known)) return readToolMap(shipped.get(known), `map ${known}`, faults);
    faults.add(`${path}/maps/${i}`, `the map does not exist: use ${[...shipped.keys()].join(", ")}`);
    return EMPTY_MAP;
  });
  const number = (member: keyof typeof NUMBERS) => {
    const { preset, min, max } = NUMBERS[member];
    const known = faults.count(upstream[member] ?? preset, `${path}/${member}`) ?? preset;
    if (known < min || known > max) faults.add(`${path}/${member}`, `must be from ${min} to ${max}`);
    return known;
  };
  const requireToken = faults.flag(upstream.requireToken ?? true, `${path}/requireToken`);
  const login = faults.flag(upstream.login ?? false, `${path}/login`);
  const trustPromises = faults.flag(upstream.trustPromises ?? false, `${path}/trustPromises`);
  const address = readAddress(upstream, path, faults);
  const revision = REVISIONS.find((known) => known === (upstream.revision ?? "auto"));
  if (revision === undefined) faults.add(`${path}/revision`, `must be one of ${REVISIONS.join(", ")}`);
  const serverId =
    upstream.serverId === undefined ? name : faults.text(upstream.serverId, `${path}/serverId`);
  return {
    name,
    ...(address === undefined ? {} : { address }),
    map: [...namedMaps, own].reduce(mergeMaps, EMPTY_MAP),
    limits: readLimits(upstream.limits, `${path}/limits`, faults),
    requireToken: requireToken !== false,
    login: login === true,
    ...(upstream.audience === undefined
      ? {}
      : { audience: faults.text(upstream.audience, `${path}/audience`) ?? "" }),
    timeoutMs: number("timeoutMs"),
    maxAnswerBytes: number("maxAnswerBytes"),
    definitionTtlMs: number("definitionTtlMs"),
    trustPromises: trustPromises === true,
    callsPerReservation: number("callsPerReservation"),
    revision: revision ?? "auto",
    serverId: serverId ?? name,
  };
}

function readAddress(
  { stdio, http }: Record<string, unknown>,
  path: string,
  faults: Faults,
): UpstreamAddress | undefined {
  if (stdio !== undefined && http !== undefined) return faults.add(path, "must have stdio or http, not both");
  if (stdio !== undefined) {
    const at = `${path}/stdio`;
    const process = faults.object(stdio, at, ["command", "args", "env", "cwd", "process"]) ?? {};
    const sharing = PROCESSES.find((known) => known === (process.process ?? "shared"));
    if (sharing === undefined) faults.add(`${at}/process`, `must be one of ${PROCESSES.join(", ")}`);
    return {
      kind: "stdio",
      command: faults.text(process.command, `${at}/command`) ?? "",
      args: faults.texts(process.args, `${at}/args`),
      env: faults.textMap(process.env, `${at}/env`),
      ...(sharing === "session" && { process: sharing }),
      ...(process.cwd === undefined ? {} : { cwd: faults.text(process.cwd, `${at}/cwd`) ?? "" }),
    };
  }
  if (http === undefined) return undefined;
  const at = `${path}/http`;
  const server = faults.object(http, at, ["url", "headers"]) ?? {};
  const url = faults.text(server.url, `${at}/url`) ?? "";
  const parsed = URL.parse(url);
  if (parsed === null || !/^https?:$/.test(parsed.protocol))
    faults.add(`${at}/url`, "must be an http or https address");
  else if (parsed.username !== "" || parsed.password !== "" || parsed.hash !== "") {
    faults.add(`${at}/url`, "must not contain a user, a password or a fragment");
  }
  return { kind: "http", url, headers: faults.textMap(server.headers, `${at}/headers`) };
}
