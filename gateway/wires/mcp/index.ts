import { readFileSync } from "node:fs";
import type { JsonValue } from "@bufbuild/protobuf";
import {
  ConfigError,
  HttpFace,
  McpProxy,
  PlatformAuthoriser,
  type ProxyConfig,
  readConfig,
  SHIPPED_MAPS,
  Upstream,
} from "@depute/mcp";
import {
  fromConnectError,
  type HttpRoute,
  ownHeaders,
  type ServiceDeps,
  SettingsError,
} from "@depute/service";
import type { WireDeps } from "../../src/json-rpc-route.ts";
import { answerMcp } from "./endpoint.ts";

export interface McpWire {
  readonly http: HttpRoute[];
  close(): Promise<void>;
}

const LISTS = ["tools", "resources", "prompts"] as const;

/** MCP servers behind the proxy, each at /mcp/{name}. */
export function mcpWire(config: ProxyConfig, connect: ServiceDeps["connect"], deps: WireDeps): McpWire {
  const longestCallMs = Math.max(0, ...[...config.upstreams.values()].map(({ timeoutMs }) => timeoutMs));
  const authoriser = new PlatformAuthoriser({
    tokens: connect("tokens"),
    registry: connect("registry"),
    clock: deps.clock,
    callOptions: () => ({ headers: ownHeaders("") }),
    refusalIn: fromConnectError,
    longestCallMs,
  });
  const faces = new Map<string, HttpFace>();
  for (const [name, upstream] of config.upstreams) {
    const { address } = upstream;
    if (address === undefined) throw new SettingsError(`mcp: /upstreams/${name}: stdio or http is wanted`);
    const path = `/mcp/${name}`;
    const audience = () => upstream.audience ?? `${deps.publicUrl}${path}`;
    const proxy = new McpProxy({
      config: upstream,
      upstream: new Upstream({
        config: upstream,
        address,
        onNotification: ({ method }) => {
          const list = LISTS.find((one) => method === `notifications/${one}/list_changed`);
          if (list !== undefined) faces.get(name)?.changed(list);
        },
      }),
      authoriser,
      clock: deps.clock,
      audience,
      onFault: (what, err) => deps.log.warn({ err, path }, `mcp: ${what}`),
    });
    const onError = (err: Error) => deps.log.debug({ err, path }, "mcp");
    faces.set(name, new HttpFace({ proxy, clock: deps.clock, audience, onError }));
  }
  return {
    http: [...faces].map(([name, face]) => ({
      methods: ["POST", "GET", "DELETE"],
      path: `/mcp/${name}`,
      handle: (request, response) => answerMcp(face, `/mcp/${name}`, deps, request, response),
    })),
    close: async () => {
      await Promise.all([...faces.values()].map((face) => face.close()));
    },
  };
}

/**
 * Reads the file of servers behind the proxy; an empty path means none.
 *
 * @throws SettingsError that names each fault by its place
 */
export function readMcpConfig(path: string): ProxyConfig {
  if (path === "") return { upstreams: new Map() };
  try {
    return readConfig(JSON.parse(readFileSync(path, "utf8")) as JsonValue, SHIPPED_MAPS);
  } catch (cause) {
    const what = cause instanceof ConfigError ? cause.faults.join("\n  ") : (cause as Error).message;
    throw new SettingsError(`cannot use the MCP configuration ${path}:\n  ${what}`, { cause });
  }
}
