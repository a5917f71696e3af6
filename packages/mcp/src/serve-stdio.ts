import type { JSONRPCMessage, Server, Transport } from "@modelcontextprotocol/server";
import { StdioServerTransport, serveStdio } from "@modelcontextprotocol/server/stdio";
import { downstream } from "./downstream.ts";
import { fromMember, type Presentation } from "./presentation.ts";
import type { McpProxy } from "./proxy.ts";
import { strip } from "./rules/strip.ts";
import type { ListName } from "./subscription.ts";
import type { Ask } from "./upstream.ts";

/** One client over stdio, and the server behind the proxy that belongs to it alone. */
export interface StdioFace {
  /** Answers what the server asks of the client: judged first, then put to the client. */
  ask(method: Ask, params: unknown): Promise<unknown>;
  /** Tells the client that a list has changed. */
  changed(list: ListName): void;
  /** Resolves when the client has left. */
  readonly ended: Promise<void>;
  close(): Promise<void>;
}

export interface StdioFaceOptions {
  /** Known once the proxy is made. */
  readonly proxy: () => McpProxy;
  /** The token of the proxy's own files, for a client that presents none. */
  readonly held: () => Presentation | undefined;
  readonly audience: () => string;
  readonly onError: (error: Error) => void;
  /** Standard input and output unless told otherwise. */
  readonly transport?: Transport;
}

/** Serves one client over stdio. A `_delegateos` on initialize counts for the session (DelegateOS 11.3). */
export function stdioFace(options: StdioFaceOptions): StdioFace {
  const { proxy, held, audience, onError, transport = new StdioServerTransport() } = options;
  let opened: Presentation | undefined;
  let server: Server | undefined;
  let end = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const seen = (message: JSONRPCMessage) => {
    if (!("method" in message) || message.method !== "initialize") return;
    const { member } = strip((message.params ?? {}) as Record<string, unknown>);
    if (member === undefined) return;
    try {
      opened = { ...fromMember(member, audience()), prove: async () => undefined };
    } catch (thrown) {
      // A token that is none opens no session with it; its calls are denied.
      onError(thrown as Error);
    }
  };
  const presentation = () => opened ?? held();
  const handle = serveStdio(
    async () => {
      server = await downstream({ proxy: proxy(), onError, presentation, session: "stdio" });
      return server;
    },
    { transport: watched(transport, seen, end), onerror: onError },
  );
  return {
    ended,
    async ask(method, params) {
      await proxy().admitAsk(method, params as Record<string, unknown>, presentation());
      if (server === undefined) throw new Error("no client is there to be asked");
      return server.request({ method, params: params as Record<string, unknown> });
    },
    changed(list) {
      server?.notification({ method: `notifications/${list}/list_changed` }).catch(onError);
    },
    close: () => handle.close(),
  };
}

/** A transport whose messages are seen before they are answered, and whose end is. */
function watched(inner: Transport, seen: (message: JSONRPCMessage) => void, end: () => void): Transport {
  const outer: Transport = {
    async start() {
      inner.onmessage = (message, extra) => {
        seen(message);
        outer.onmessage?.(message, extra);
      };
      inner.onerror = (error) => outer.onerror?.(error);
      inner.onclose = () => {
        outer.onclose?.();
        end();
      };
      await inner.start();
    },
    send: (message, sendOptions) => inner.send(message, sendOptions),
    close: () => inner.close(),
  };
  return outer;
}
