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
  type ServiceDeps,
  unknownPath,
} from "@depute/service";
import type { Clients } from "../../edge/clients.ts";
import type { WebWireRequest } from "../../edge/route.ts";
import type { WireDeps } from "../../edge/wire-deps.ts";
import { auditedBy } from "./audit.ts";
import { McpConfigFile } from "./config.ts";
import { answerMcp, idOf } from "./endpoint.ts";
import { loginOrChallenge } from "./errors.ts";
import { answerMessage } from "./message.ts";
import { mcpObservers } from "./metrics.ts";
import { ownServer } from "./own.ts";
import { presentedBy } from "./presented.ts";
import { McpServers } from "./servers.ts";

export interface McpHandlersOptions {
  /** The path of the configuration file that lists the servers behind the proxy; empty if there are no servers. */
  readonly configPath: string;
  readonly connect: ServiceDeps["connect"];
  readonly clients: Clients;
  readonly deps: WireDeps;
  readonly metrics: ServiceDeps["metrics"];
  readonly parts: HealthParts;
  readonly audit: ServiceDeps["audit"];
  /** Seals the ids of the MCP servers' tasks, so that no client can forge an id. */
  readonly seal: Seal;
}

/** The handlers of MCP's addresses. Each handler throws only errors that the wire's `toError` can convert. */
export interface McpHandlers {
  /** The names of the MCP servers that the configuration file currently lists behind Depute's MCP proxy. */
  readonly names: readonly string[];
  /** Whether each request to the server needs a login; false if the server is unknown. */
  needsLogin(server: string): boolean;
  /** Answers a request to Depute's own tools. */
  answerOwn(wireRequest: WebWireRequest): Promise<Response>;
  /**
   * Answers a request of the published DelegateOS client. If `server` is empty, the request goes to the only server.
   */
  answerMessage(server: string, wireRequest: WebWireRequest): Promise<Response>;
  /** Answers a request to a server behind the proxy. */
  answerServer(server: string, wireRequest: WebWireRequest): Promise<Response>;
  close(): Promise<void>;
}

/**
 * Starts the MCP servers of the configuration file, and Depute's own tools.
 *
 * @throws SettingsError if the configuration file cannot be used
 */
export function startMcp(options: McpHandlersOptions): McpHandlers {
  const { configPath, connect, clients, deps, metrics, parts, audit, seal } = options;
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
  const own = ownServer(
    { ...clients, verification: createClient(VerificationService, connect("verifier")) },
    deps,
  );
  return {
    get names() {
      return servers.names;
    },
    needsLogin: (name) => servers.needsLogin(name),
    answerOwn: (wireRequest) =>
      answerMcp(wireRequest, (body) => own.answer(wireRequest.web, body, wireRequest.call)),
    answerMessage: (name, wireRequest) => {
      const { received, web } = wireRequest;
      return answerMcp(wireRequest, (body) =>
        inRequest(originOf(wireRequest), () =>
          answerMessage(servers.proxies, name, body, received, web, web.url),
        ),
      );
    },
    answerServer: async (name, wireRequest) => {
      const { received, web } = wireRequest;
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
    close: async () => {
      file.close();
      await own.close();
      await servers.close();
    },
  };
}
