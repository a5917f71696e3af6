import { createClient } from "@connectrpc/connect";
import { VerificationService } from "@depute/contracts/depute/verifier/v1/verification_service_pb";
import {
  currentRequest,
  inRequest,
  PlatformAuthoriser,
  platformSchemaCheck,
  type RequestOrigin,
  type Seal,
} from "@depute/mcp";
import {
  fromConnectError,
  type HealthParts,
  ownHeaders,
  type PathParameters,
  type ServiceDeps,
  unknownPath,
} from "@depute/service";
import type { Clients } from "../../edge/clients.ts";
import { JSON_TYPES, type WebRoute, type WebWireRequest, type Wire } from "../../edge/route.ts";
import { EVENT_STREAM } from "../../edge/wire-call.ts";
import type { WireDeps } from "../../edge/wire-deps.ts";
import { auditedBy } from "./audit.ts";
import { McpConfigFile, MESSAGE } from "./config.ts";
import { answerMcp, idOf } from "./endpoint.ts";
import { loginOrChallenge, mcpErrors } from "./errors.ts";
import { metadataRoutes } from "./login.ts";
import { answerMessage } from "./message.ts";
import { mcpObservers } from "./metrics.ts";
import { ownServer } from "./own.ts";
import { presentedBy } from "./presented.ts";
import { McpServers } from "./servers.ts";

/** Media types of MCP's answers: one JSON document, or a stream of events. (MCP, Streamable HTTP) */
const TYPES = [...JSON_TYPES, EVENT_STREAM];

export interface McpWire extends Wire {
  close(): Promise<void>;
}

export interface McpWireOptions {
  readonly metrics: ServiceDeps["metrics"];
  readonly parts: HealthParts;
  readonly audit: ServiceDeps["audit"];
  /** Seals the ids of the MCP servers' tasks, so that no client can forge an id. */
  readonly seal: Seal;
}

/**
 * Serves the MCP servers behind the proxy, each at /mcp/{server}, and Depute's own tools at /mcp.
 *
 * @param configPath the file of the servers; empty for none
 * @throws SettingsError for a file that cannot be used
 */
export function mcpWire(
  configPath: string,
  connect: ServiceDeps["connect"],
  clients: Clients,
  deps: WireDeps,
  { metrics, parts, seal, audit }: McpWireOptions,
): McpWire {
  const { clock, timers, log } = deps;
  const tokens = connect("tokens");
  const registry = connect("registry");
  const callOptions = () => ({ headers: ownHeaders(currentRequest()?.requestId ?? "") });
  const originOf = ({ call, received }: WebWireRequest): RequestOrigin => ({
    requestId: call.requestId,
    address: deps.addresses.ofRequest(received),
  });
  const schemaCheck = platformSchemaCheck({
    verifier: connect("verifier"),
    callOptions,
    refusalIn: fromConnectError,
  });
  const servers = new McpServers({
    deps,
    seal,
    observer: mcpObservers(metrics, parts),
    onDecision: auditedBy(audit),
    decisions: ({ name: server, timeoutMs: longestCallMs }) => ({
      authoriser: new PlatformAuthoriser({
        server,
        tokens,
        registry,
        clock,
        callOptions,
        refusalIn: fromConnectError,
        longestCallMs,
      }),
      schemaCheck,
    }),
  });
  const file = new McpConfigFile({
    path: configPath,
    timers,
    log,
    apply: (config) => servers.apply(config),
  });
  const ownServerView = ownServer(
    { ...clients, verification: createClient(VerificationService, connect("verifier")) },
    deps,
  );
  const served = () => ["/mcp", ...servers.names.map((name) => `/mcp/${name}`)];
  const methods = ["POST", "GET", "DELETE"] as const;
  const message = (path: string, nameOf: (parameters: PathParameters) => string): WebRoute => ({
    kind: "web",
    methods: ["POST"],
    path,
    answer: (wireRequest) =>
      answerMcp(wireRequest, (body) => {
        const { parameters, received, web } = wireRequest;
        return inRequest(originOf(wireRequest), () =>
          answerMessage(servers.proxies, nameOf(parameters), body, received, web, web.url),
        );
      }),
  });
  return {
    name: "mcp",
    claims: ["/mcp"],
    toError: mcpErrors(served),
    routes: [
      ...metadataRoutes((name) => servers.needsLogin(name), deps),
      {
        kind: "web",
        methods,
        path: "/mcp",
        gives: TYPES,
        answer: (wireRequest) =>
          answerMcp(wireRequest, (body) => ownServerView.answer(wireRequest.web, body, wireRequest.call)),
      },
      message(`/mcp/${MESSAGE}`, () => ""),
      message(`/mcp/${MESSAGE}/{server}`, ({ server = "" }) => server),
      {
        kind: "web",
        methods,
        path: "/mcp/{server}",
        gives: TYPES,
        answer: (wireRequest) => {
          const { parameters, received, web } = wireRequest;
          const { server: name = "" } = parameters;
          const needsLogin = servers.needsLogin(name);
          const face = servers.face(name);
          if (face === undefined) throw unknownPath(new URL(web.url).pathname);
          return answerMcp(wireRequest, async (body) => {
            const origin = originOf(wireRequest);
            if (!needsLogin) return face.answer(web, body, presentedBy(received, web.url), "", origin);
            const login = await loginOrChallenge(`/mcp/${name}`, wireRequest, idOf(body), deps);
            return login instanceof Response ? login : face.answer(web, body, undefined, login, origin);
          });
        },
      },
    ],
    close: async () => {
      file.close();
      await ownServerView.close();
      await servers.close();
    },
  };
}
