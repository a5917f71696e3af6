import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

/** The way in which a connection ends: by a reset, by an orderly end, or by silence, as after a cable is unplugged. */
export type Cut = "reset" | "end" | "silence";

/** A loopback port that forwards to a server until the test cuts the connections. */
export class CuttingProxy {
  readonly port: number;
  readonly #server;
  readonly #pairs: Set<Pair>;
  readonly #wires: Wires;

  private constructor(server: ReturnType<typeof createServer>, port: number, pairs: Set<Pair>, wires: Wires) {
    this.#server = server;
    this.port = port;
    this.#pairs = pairs;
    this.#wires = wires;
  }

  /** @param target a host and a port, or the path of a socket */
  static async start(target: { host: string; port: number } | { path: string }): Promise<CuttingProxy> {
    const pairs = new Set<Pair>();
    const wires: Wires = { isSilent: false, isDown: false, onRequest: [], onResponse: [] };
    const server = createServer((inside) => {
      if (wires.isDown) return void inside.resetAndDestroy();
      const outside = connect(target);
      const pair = { inside, outside };
      pairs.add(pair);
      const pass = (from: Socket, to: Socket, isRequest: boolean) => {
        from.on("data", (chunk: Buffer) => {
          // TCP never loses data in the middle of a stream, so a connection that lost data stays silent.
          if (wires.isSilent || mute.has(from)) return void mute.add(from).add(to);
          const cut = takeCut(isRequest ? wires.onRequest : wires.onResponse, chunk);
          if (cut === undefined) to.write(chunk);
          else cut();
        });
        from.on("error", () => {});
        from.on("close", () => {
          pairs.delete(pair);
          if (!mute.has(from)) to.destroy();
        });
      };
      pass(inside, outside, true);
      pass(outside, inside, false);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("no port");
    return new CuttingProxy(server, address.port, pairs, wires);
  }

  /** Cuts every connection. Until `restore`, new connections are refused, or silent after `silence`. */
  cut(how: Cut): void {
    if (how === "silence") {
      this.#wires.isSilent = true;
      return;
    }
    this.#wires.isDown = true;
    for (const { inside, outside } of this.#pairs) {
      if (how === "reset") inside.resetAndDestroy();
      else inside.end();
      outside.destroy();
    }
  }

  restore(): void {
    this.#wires.isSilent = false;
    this.#wires.isDown = false;
  }

  /**
   * Cuts the connections when a client sends a text, which then never reaches the server. Resolves after the cut.
   *
   * @param isAfter cuts when the server's response contains the text; the response never reaches the client
   */
  cutAt(text: string, how: Cut, { isAfter = false } = {}): Promise<void> {
    const { onRequest, onResponse } = this.#wires;
    return new Promise((resolve) => {
      const cut = () => {
        this.cut(how);
        resolve();
      };
      (isAfter ? onResponse : onRequest).push({ text, cut });
    });
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    for (const { inside, outside } of this.#pairs) {
      inside.destroy();
      outside.destroy();
    }
    await closed;
  }
}

interface Pair {
  readonly inside: Socket;
  readonly outside: Socket;
}

interface PendingCut {
  readonly text: string;
  readonly cut: () => void;
}

interface Wires {
  isSilent: boolean;
  isDown: boolean;
  readonly onRequest: PendingCut[];
  readonly onResponse: PendingCut[];
}

/** Sockets whose data the proxy no longer forwards. */
const mute = new WeakSet<Socket>();

/** Removes and returns the first pending cut whose text the chunk contains. */
function takeCut(pending: PendingCut[], chunk: Buffer): (() => void) | undefined {
  const at = pending.findIndex(({ text }) => chunk.includes(text));
  return at < 0 ? undefined : pending.splice(at, 1)[0]?.cut;
}
