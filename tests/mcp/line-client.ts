import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Json } from "../gateway/platform.ts";

const REVISION = "2026-07-28";

/** A client of revision 2026-07-28 over stdio, without an SDK. */
export interface LineClient {
  /** Sends a request, and returns its id. */
  send(method: string, params: Json, capabilities?: Json): number;
  notify(method: string, params: Json): void;
  /** Waits for a message of the server that fits, removes it from the waiting messages, and returns it. */
  take(fits: (message: Json) => boolean): Promise<Json>;
  /** Sends a request, and returns its answer. */
  request(method: string, params: Json, capabilities?: Json): Promise<Json>;
  /** Returns the received messages that no `take` has removed. */
  waiting(): readonly Json[];
  close(): Promise<void>;
}

/** Starts a server over stdio. @param declared the capabilities of each request that states none of its own */
export function lineClient(args: readonly string[], declared: Json): LineClient {
  const child: ChildProcessWithoutNullStreams = spawn(process.execPath, args);
  const messages: Json[] = [];
  let arrived = Promise.withResolvers<void>();
  createInterface({ input: child.stdout }).on("line", (line) => {
    messages.push(JSON.parse(line));
    arrived.resolve();
    arrived = Promise.withResolvers();
  });
  child.stderr.resume();
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const write = (message: Json) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  let id = 0;
  const send: LineClient["send"] = (method, params, capabilities = declared) => {
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": REVISION,
      "io.modelcontextprotocol/clientCapabilities": capabilities,
    };
    write({ id: ++id, method, params: { ...params, _meta } });
    return id;
  };
  const take: LineClient["take"] = async (fits) => {
    for (;;) {
      const index = messages.findIndex(fits);
      if (index >= 0) return messages.splice(index, 1)[0];
      await arrived.promise;
    }
  };
  return {
    send,
    take,
    notify: (method, params) => void write({ method, params }),
    request: async (method, params, capabilities) => {
      const sent = send(method, params, capabilities);
      return take((message) => message.id === sent);
    },
    waiting: () => messages,
    async close() {
      child.stdin.end();
      await ended;
    },
  };
}
