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

  /** @param target a port, or the path of a socket */
  static async start(target: { host: string; port: number } | { path: string }): Promise<CuttingProxy> {
    const pairs = new Set<Pair>();
    const wires: Wires = { isSilent: false, isDown: false, onPassing: [] };
    const server = createServer((inside) => {
      if (wires.isDown) return void inside.resetAndDestroy();
      const outside = connect(target);
      const pair = { inside, outside };
      pairs.add(pair);
      const pass = (from: Socket, to: Socket, isRequest: boolean) => {
        from.on("data", (chunk: Buffer) => {
          // TCP never loses data in the middle of a stream, so a connection that lost data stays silent.
          if (wires.isSilent || mute.has(from)) return void mute.add(from).add(to);
          if (isRequest) notice(wires, chunk, () => to.write(chunk));
          else to.write(chunk);
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
   * Waits until a client sends `text`, cuts the connections, and then resolves.
   *
   * @param isAfter whether the proxy still forwards the text to the server before the cut
   */
  cutAt(text: string, how: Cut, { isAfter = false } = {}): Promise<void> {
    return new Promise((resolve) => {
      this.#wires.onPassing.push({
        text,
        act: (forward) => {
          if (isAfter) forward();
          // The proxy cuts the connections one turn of the event loop later, so that the forwarded data is sent before
          // the cut.
          const cut = () => {
            this.cut(how);
            resolve();
          };
          if (isAfter) setImmediate(cut);
          else cut();
        },
      });
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

interface Wires {
  isSilent: boolean;
  isDown: boolean;
  readonly onPassing: { readonly text: string; readonly act: (forward: () => void) => void }[];
}

/** Sockets whose data the proxy no longer forwards. */
const mute = new WeakSet<Socket>();

function notice(wires: Wires, chunk: Buffer, forward: () => void): void {
  const at = wires.onPassing.findIndex(({ text }) => chunk.includes(text));
  const [passing] = at < 0 ? [] : wires.onPassing.splice(at, 1);
  if (passing === undefined) forward();
  else passing.act(forward);
}
