import { readFileSync } from "node:fs";
import type { JsonValue } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { VerificationService } from "@depute/contracts/depute/verifier/v1/verification_service_pb";
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
  type PathParameters,
  type ServiceDeps,
  SettingsError,
} from "@depute/service";
import type { Clients } from "../../src/clients.ts";
import type { WireDeps } from "../../src/json-rpc-route.ts";
import { wireCall } from "../../src/wire-call.ts";
import { answerMcp } from "./endpoint.ts";
import { answerMessage, answerUnknown } from "./message.ts";
import { ownServer } from "./own.ts";
import { presentedBy } from "./presented.ts";

/** The last part of the address that the published DelegateOS client calls. */
const MESSAGE = "message";

export interface McpWire {
  readonly http: HttpRoute[];
  close(): Promise<void>;
}

/** MCP servers behind the proxy, each at /mcp/{name}, and Depute itself as one at /mcp. */
export function mcpWire(
  config: ProxyConfig,
  connect: ServiceDeps["connect"],
  clients: Clients,
  deps: WireDeps,
): McpWire {
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
  const proxies = new Map<string, McpProxy>();
  for (const [name, upstream] of config.upstreams) {
    if (name === MESSAGE)
      throw new SettingsError(`mcp: /upstreams/${name}: the name is an address of the platform's own`);
    const { address } = upstream;
    if (address === undefined) throw new SettingsError(`mcp: /upstreams/${name}: stdio or http is wanted`);
    const path = `/mcp/${name}`;
    const audience = () => upstream.audience ?? `${deps.publicUrl}${path}`;
    const proxy = new McpProxy({
      config: upstream,
      upstream: new Upstream({
        config: upstream,
        address,
        onListChanged: (list) => faces.get(name)?.changed(list),
      }),
      authoriser,
      clock: deps.clock,
      audience,
      onFault: (what, err) => deps.log.warn({ err, path }, `mcp: ${what}`),
    });
    const onError = (err: Error) => deps.log.debug({ err, path }, "mcp");
    faces.set(name, new HttpFace({ proxy, clock: deps.clock, audience, onError }));
    proxies.set(name, proxy);
  }
  const own = ownServer(
    { ...clients, verification: createClient(VerificationService, connect("verifier")) },
    deps,
  );
  const methods = ["POST", "GET", "DELETE"];
  const message = (path: string, nameOf: (parameters: PathParameters) => string): HttpRoute => ({
    methods: ["POST"],
    path,
    handle(request, response, parameters) {
      const address = request.url?.split("?", 1)[0] ?? path;
      const name = nameOf(parameters);
      return answerMcp(
        (web, body, url) => answerMessage(proxies, name, body, request, web, url),
        address,
        deps,
        request,
        response,
      );
    },
  });
  return {
    http: [
      ...[...faces].map(([name, face]): HttpRoute => {
        const path = `/mcp/${name}`;
        return {
          methods,
          path,
          handle: (request, response) =>
            answerMcp(
              (web, body, url) => face.answer(web, body, presentedBy(request, url)),
              path,
              deps,
              request,
              response,
            ),
        };
      }),
      {
        methods,
        path: "/mcp",
        handle(request, response) {
          const call = wireCall(request, response, deps.publicUrl);
          return answerMcp((web, body) => own.answer(web, body, call), "/mcp", deps, request, response);
        },
      },
      message(`/mcp/${MESSAGE}`, () => ""),
      message(`/mcp/${MESSAGE}/{server}`, ({ server = "" }) => server),
      {
        methods,
        path: "/mcp/{rest...}",
        handle: (request, response) =>
          answerMcp(async () => answerUnknown([...faces.keys()]), "/mcp", deps, request, response),
      },
    ],
    close: async () => {
      await own.close();
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
