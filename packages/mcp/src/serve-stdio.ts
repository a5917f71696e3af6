import { isObject } from "@depute/core";
import type { JSONRPCMessage, Server, Transport } from "@modelcontextprotocol/server";
import { StdioServerTransport, serveStdio } from "@modelcontextprotocol/server/stdio";
import type { LogMessage } from "./call-options.ts";
import { downstream } from "./downstream.ts";
import { fromMember, type Presentation } from "./presentation.ts";
import type { McpProxy } from "./proxy.ts";
import type { Declared } from "./rules/client-capabilities.ts";
import { strip } from "./rules/strip.ts";
import { StdioListens } from "./stdio-listens.ts";
import type { ListName } from "./subscription.ts";
import type { Ask } from "./upstream-options.ts";
import type { WatchedResources } from "./watched-resources.ts";

/** One client over stdio. The server behind the proxy serves only this client. */
export interface StdioFace {
  /** Checks a request that the server behind the proxy sends to the client, and forwards it. */
  ask(method: Ask, params: unknown): Promise<unknown>;
  /**
   * The capabilities that the client declared on `initialize`; undefined before `initialize`, and in revision
   * 2026-07-28.
   */
  declared(): Declared | undefined;
  /**
   * Passes a log message of the server to the client, unless the message is below the client's log level, or the
   * client uses revision 2026-07-28.
   */
  logged(message: LogMessage): void;
  /** Notifies the client that a resource has changed, if the client subscribed to it. */
  resourceChanged(uri: string): void;
  /** Notifies the client that a list has changed. */
  changed(list: ListName): void;
  /** Resolves when the client has disconnected. */
  readonly ended: Promise<void>;
  close(): Promise<void>;
}

export interface StdioFaceOptions {
  /** Returns the proxy, because it is created only after these options. */
  readonly proxy: () => McpProxy;
  /** Returns the token in the proxy's own files, which applies to clients that present no token. */
  readonly held: () => Presentation | undefined;
  readonly audience: () => string;
  readonly onError: (error: Error) => void;
  /** The client's transport. Default: standard input and output. */
  readonly transport?: Transport;
}

/**
 * Serves one client over stdio. A `_delegateos` in the request initialize applies to the whole MCP session
 * (DelegateOS 11.3).
 */
export function stdioFace(options: StdioFaceOptions): StdioFace {
  const { proxy, held, audience, onError, transport = new StdioServerTransport() } = options;
  let opened: Presentation | undefined;
  let declared: Declared | undefined;
  let server: Server | undefined;
  const watchers = new Map<Server, WatchedResources>();
  let end = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const seen = (message: JSONRPCMessage) => {
    if (!("method" in message) || message.method !== "initialize") return;
    const { capabilities } = (message.params ?? {}) as { capabilities?: unknown };
    declared = isObject(capabilities) ? capabilities : {};
    const { member } = strip((message.params ?? {}) as Record<string, unknown>);
    if (member === undefined) return;
    try {
      opened = { ...fromMember(member, audience()), prove: async () => undefined };
    } catch (thrown) {
      // The proxy reports an invalid token and does not use it. Later calls then use the token in the proxy's own
      // files, or none.
      onError(thrown as Error);
    }
  };
  const presentation = () => opened ?? held();
  let deliver: (message: JSONRPCMessage) => void = () => {};
  const listens = new StdioListens({
    proxy,
    presentation,
    onError,
    send: (message) => transport.send(message),
    deliver: (message) => deliver(message),
  });
  const client = watched(transport, {
    onEnd() {
      listens.close();
      end();
    },
    receive(message, next) {
      seen(message);
      deliver = next;
      // StdioListens handles only requests that exist since revision 2026-07-28.
      if (declared === undefined) listens.receive(message);
      else next(message);
    },
    sent: (message) => listens.sent(message),
  });
  const handle = serveStdio(
    async ({ era }) => {
      // Only clients that begin with the request `initialize` use a separate request to subscribe.
      const subscriptions = declared === undefined ? {} : { watchers };
      server = await downstream({
        proxy: proxy(),
        onError,
        era,
        presentation,
        session: "stdio",
        tellsRequestIds: true,
        listens: true,
        ...subscriptions,
      });
      return server;
    },
    { transport: client, onerror: onError },
  );
  return {
    ended,
    async ask(method, params) {
      const asked = await proxy().admitAsk(method, params as Record<string, unknown>, presentation());
      if (server === undefined) throw new Error("no client is connected, so the server cannot ask one");
      return server.request({ method, params: asked });
    },
    declared: () => declared,
    logged(message) {
      // In revision 2026-07-28, a client gets log messages only for requests that ask for them.
      if (declared !== undefined) server?.sendLoggingMessage(message).catch(onError);
    },
    resourceChanged(uri) {
      for (const watched of watchers.values()) watched.changed(uri);
      listens.resourceChanged(uri);
    },
    changed(list) {
      server?.notification({ method: `notifications/${list}/list_changed` }).catch(onError);
    },
    close: () => handle.close(),
  };
}

interface Observer {
  /** Receives each message of the client. `next` passes a message to the SDK. */
  receive(message: JSONRPCMessage, next: (message: JSONRPCMessage) => void): void;
  /** Returns the message that the client gets instead of the SDK's message. */
  sent(message: JSONRPCMessage): JSONRPCMessage;
  /** Called when the transport has ended. */
  onEnd(): void;
}

/** Wraps a transport, so that an observer sees each message and can change it. */
function watched(inner: Transport, { receive, sent, onEnd }: Observer): Transport {
  const outer: Transport = {
    async start() {
      inner.onmessage = (message, extra) => {
        receive(message, (passed) => outer.onmessage?.(passed, extra));
      };
      inner.onerror = (error) => outer.onerror?.(error);
      inner.onclose = () => {
        outer.onclose?.();
        onEnd();
      };
      await inner.start();
    },
    send: (message, sendOptions) => inner.send(sent(message), sendOptions),
    close: () => inner.close(),
  };
  return outer;
}
