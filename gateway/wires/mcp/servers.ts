import { isDeepStrictEqual } from "node:util";
import {
  type CallDecision,
  HttpFace,
  McpProxy,
  type ProxyConfig,
  type ProxyOptions,
  type Seal,
  Upstream,
  type UpstreamConfig,
} from "@depute/mcp";
import type { WireDeps } from "../../edge/wire-deps.ts";
import type { ServableUpstream } from "./config.ts";
import type { ServerObserver } from "./metrics.ts";

/** Milliseconds to wait before a removed server is closed, so that its last answers can reach their clients. */
const SEND_MS = 1000;

export interface McpServersOptions {
  readonly deps: WireDeps;
  readonly observer: (server: string) => ServerObserver;
  /** Receives each decision on a call of a server; see `ProxyOptions.onDecision`. */
  readonly onDecision: (server: string, decision: CallDecision) => void;
  /** Seals the ids of the MCP servers' tasks, so that no client can forge an id. */
  readonly seal: Seal;
  /** Returns, for a server, the dependencies with which its proxy decides whether a call is allowed. */
  readonly decisions: (config: UpstreamConfig) => Pick<ProxyOptions, "authoriser" | "schemaCheck">;
}

interface RunningServer {
  readonly config: ServableUpstream;
  readonly proxy: McpProxy;
  readonly face: HttpFace;
}

/** The MCP servers behind the proxy, by name. `apply` replaces the servers even while calls run. */
export class McpServers {
  readonly #options: McpServersOptions;
  #running: ReadonlyMap<string, RunningServer> = new Map();
  /** Removed servers whose calls have not ended. */
  readonly #draining = new Set<Promise<void>>();

  constructor(options: McpServersOptions) {
    this.#options = options;
  }

  get names(): readonly string[] {
    return [...this.#running.keys()];
  }

  /**
   * Returns the proxies of the servers that need no login, by server name. The address /mcp/message serves only these
   * servers, because its clients can present a token, but not a login.
   */
  get proxies(): ReadonlyMap<string, McpProxy> {
    const open = [...this.#running].filter(([, { config }]) => !config.login);
    return new Map(open.map(([name, { proxy }]) => [name, proxy]));
  }

  /** Whether each request to the server needs a login; false if the server is unknown. */
  needsLogin(name: string): boolean {
    return this.#running.get(name)?.config.login === true;
  }

  face(name: string): HttpFace | undefined {
    return this.#running.get(name)?.face;
  }

  /**
   * Serves exactly the servers of `config`. A server with an unchanged configuration continues. A removed server, and
   * the earlier form of a changed one, gets no new requests. Its running calls may finish within their time limit, and
   * then it is closed.
   */
  apply(config: ProxyConfig<ServableUpstream>): void {
    const before = this.#running;
    this.#running = new Map(
      [...config.upstreams].map(([name, upstream]) => {
        const known = before.get(name);
        const isSame = known !== undefined && isDeepStrictEqual(known.config, upstream);
        return [name, isSame ? known : this.#start(name, upstream)];
      }),
    );
    for (const [name, server] of before) {
      if (!this.#running.has(name)) this.#options.observer(name).removed();
      if (this.#running.get(name) !== server) this.#retire(server);
    }
  }

  /** Closes the current servers, and waits until the removed ones have drained. */
  async close(): Promise<void> {
    await Promise.all([...this.#running.values()].map(({ face }) => face.close()));
    await Promise.all(this.#draining);
  }

  #start(name: string, config: ServableUpstream): RunningServer {
    const { deps, decisions, observer, seal } = this.#options;
    const { added, onCall, onTaskRequest, onState } = observer(name);
    const { clock, timers, log } = deps;
    const path = `/mcp/${name}`;
    const audience = () => config.audience ?? `${deps.publicUrl}${path}`;
    const proxy = new McpProxy({
      ...decisions(config),
      config,
      seal,
      onCall,
      onTaskRequest,
      onDecision: (decision) => this.#options.onDecision(name, decision),
      upstream: new Upstream({
        config,
        address: config.address,
        clock,
        timers,
        onState: (state) => {
          if (this.#running.get(name)?.proxy === proxy) onState(state);
          if (state.kind === "failed")
            log.warn({ path, ...state }, "mcp: the server crashed, or did not start");
        },
        onListChanged: (list) => face.changed(list),
        onResourceChanged: (uri) => face.resourceChanged(uri),
        onTaskStatus: (task, connection) => proxy.taskChanged(task, connection),
      }),
      clock,
      timers,
      audience,
      onFault: (subject, err) => log.warn({ err, path }, `mcp: ${subject}`),
    });
    const onError = (err: Error) => log.debug({ err, path }, "mcp");
    const face = new HttpFace({ proxy, clock, timers, audience, onError });
    added();
    return { config, proxy, face };
  }

  #retire({ config, proxy, face }: RunningServer): void {
    const { timers, log, stopping } = this.#options.deps;
    const { promise: expired, resolve: expire } = Promise.withResolvers<void>();
    let cancel = timers.after(config.timeoutMs, expire);
    stopping.addEventListener("abort", () => expire(), { once: true });
    void proxy.idle().then(() => {
      cancel();
      cancel = timers.after(SEND_MS, expire);
    });
    const draining = expired
      .then(() => face.close())
      .catch((err: unknown) =>
        log.warn({ err, path: `/mcp/${config.name}` }, "mcp: cannot close a removed server"),
      )
      .finally(() => {
        this.#draining.delete(draining);
      });
    this.#draining.add(draining);
  }
}
