import { createClient } from "@connectrpc/connect";
import { VerificationService } from "@depute/contracts/depute/verifier/v1/verification_service_pb";
import {
  HttpFace,
  McpProxy,
  PlatformAuthoriser,
  type ProxyConfig,
  platformSchemaCheck,
  Upstream,
} from "@depute/mcp";
import {
  fromConnectError,
  ownHeaders,
  type PathParameters,
  type Registry,
  type ServiceDeps,
  SettingsError,
} from "@depute/service";
import type { Clients } from "../../edge/clients.ts";
import { JSON_TYPES, type WebRoute, type Wire } from "../../edge/route.ts";
import { EVENT_STREAM } from "../../edge/wire-call.ts";
import type { WireDeps } from "../../edge/wire-deps.ts";
import { answerMcp } from "./endpoint.ts";
import { mcpErrors } from "./errors.ts";
import { answerMessage } from "./message.ts";
import { mcpMetrics } from "./metrics.ts";
import { ownServer } from "./own.ts";
import { presentedBy } from "./presented.ts";

/** The last segment of the address that the published DelegateOS client calls. */
const MESSAGE = "message";

/** Media types of MCP's answers: one JSON document, or a stream of events. (MCP, Streamable HTTP) */
const TYPES = [...JSON_TYPES, EVENT_STREAM];

export interface McpWire extends Wire {
  close(): Promise<void>;
}

/** Serves the MCP servers behind the proxy, each at /mcp/{name}, and Depute's own tools at /mcp. */
export function mcpWire(
  config: ProxyConfig,
  connect: ServiceDeps["connect"],
  clients: Clients,
  deps: WireDeps,
  metrics: Registry,
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
  const schemaCheck = platformSchemaCheck({
    verifier: connect("verifier"),
    callOptions: () => ({ headers: ownHeaders("") }),
    refusalIn: fromConnectError,
  });
  const observer = mcpMetrics(metrics);
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
        clock: deps.clock,
        timers: deps.timers,
        onListChanged: (list) => faces.get(name)?.changed(list),
        onResourceChanged: (uri) => faces.get(name)?.resourceChanged(uri),
      }),
      authoriser,
      schemaCheck,
      clock: deps.clock,
      timers: deps.timers,
      audience,
      onCall: observer(name),
      onFault: (subject, err) => deps.log.warn({ err, path }, `mcp: ${subject}`),
    });
    const onError = (err: Error) => deps.log.debug({ err, path }, "mcp");
    faces.set(name, new HttpFace({ proxy, clock: deps.clock, audience, onError }));
    proxies.set(name, proxy);
  }
  const ownServerView = ownServer(
    { ...clients, verification: createClient(VerificationService, connect("verifier")) },
    deps,
  );
  const methods = ["POST", "GET", "DELETE"] as const;
  const message = (path: string, nameOf: (parameters: PathParameters) => string): WebRoute => ({
    kind: "web",
    methods: ["POST"],
    path,
    answer: (wireRequest) =>
      answerMcp(wireRequest, (body) =>
        answerMessage(
          proxies,
          nameOf(wireRequest.parameters),
          body,
          wireRequest.received,
          wireRequest.web,
          wireRequest.web.url,
        ),
      ),
  });
  return {
    name: "mcp",
    claims: ["/mcp"],
    toError: mcpErrors(["/mcp", ...[...faces.keys()].map((name) => `/mcp/${name}`)]),
    routes: [
      ...[...faces].map(
        ([name, face]): WebRoute => ({
          kind: "web",
          methods,
          path: `/mcp/${name}`,
          gives: TYPES,
          answer: (wireRequest) =>
            answerMcp(wireRequest, (body) =>
              face.answer(wireRequest.web, body, presentedBy(wireRequest.received, wireRequest.web.url)),
            ),
        }),
      ),
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
    ],
    close: async () => {
      await ownServerView.close();
      await Promise.all([...faces.values()].map((face) => face.close()));
    },
  };
}
