import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll } from "vitest";
import type { Json } from "../gateway/platform.ts";

/** A delivery that a receiver got. */
export interface Delivery {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Json;
}

/**
 * A receiver's answer to one delivery. The function ends the response, or leaves it open. `earlier` is the number
 * of earlier deliveries to the same path.
 */
export type Reply = (response: ServerResponse, delivery: Delivery, earlier: number) => void;

/** A real HTTP receiver of webhooks. Each of its paths keeps its own deliveries, and may have its own reply. */
export class Receiver {
  readonly #deliveries = new Map<string, Delivery[]>();
  readonly #replies = new Map<string, Reply>();
  #server!: Server;

  constructor() {
    beforeAll(async () => {
      this.#server = createServer(async (request, response) => {
        let text = "";
        for await (const chunk of request) text += chunk;
        const path = request.url ?? "";
        const delivery = { path, headers: request.headers, body: JSON.parse(text) };
        const earlier = this.at(path);
        this.#deliveries.set(path, [...earlier, delivery]);
        const reply = this.#replies.get(path);
        if (reply === undefined) response.writeHead(204).end();
        else reply(response, delivery, earlier.length);
      });
      await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    });
    afterAll(async () => {
      this.#server.closeAllConnections();
      await new Promise((resolve) => this.#server.close(resolve));
    });
  }

  /** Returns the address of a path. If `reply` is given, it answers the later deliveries to the path. */
  url(path: string, reply?: Reply, host = "127.0.0.1"): string {
    if (reply !== undefined) this.#replies.set(path, reply);
    return `http://${host}:${(this.#server.address() as AddressInfo).port}${path}`;
  }

  /** Returns the deliveries to a path so far. */
  at(path: string): readonly Delivery[] {
    return this.#deliveries.get(path) ?? [];
  }

  /** Returns the deliveries to a path in order, each in the form of `wordOf`. */
  seen(path: string): string[] {
    return this.at(path).map(({ body }) => wordOf(body));
  }
}

/**
 * Returns a stream's element in short: a status as its state, e.g. `WORKING`, an artifact as `artifact` and its
 * text.
 */
export function wordOf({ statusUpdate, artifactUpdate }: Json): string {
  if (statusUpdate !== undefined) return String(statusUpdate.status.state).replace("TASK_STATE_", "");
  return `artifact ${artifactUpdate.artifact.parts[0].text}`;
}
