import { Socket } from "node:net";
import { Client, type ClientConfig } from "pg";

/**
 * A socket that sends all data of one turn of the microtask queue together. So statements that do not wait for each
 * other need one system call.
 */
class GatheringSocket extends Socket {
  #isGathering = false;

  override write(
    data: string | Uint8Array,
    encoding?: BufferEncoding | ((error?: Error | null) => void),
    callback?: (error?: Error | null) => void,
  ): boolean {
    if (!this.#isGathering) {
      this.#isGathering = true;
      this.cork();
      process.nextTick(() => {
        this.#isGathering = false;
        this.uncork();
      });
    }
    return super.write(data, encoding as BufferEncoding, callback);
  }
}

/**
 * A connection that never raises an unhandled `error` event when it breaks, because such an event would end the
 * process. Instead, statements fail and `isBroken` is true.
 */
export class StoreClient extends Client {
  readonly #socket: Socket;
  #isBroken = false;

  constructor(config?: ClientConfig) {
    const socket = new GatheringSocket();
    super({ ...config, stream: () => socket });
    this.#socket = socket;
    const note = () => {
      this.#isBroken = true;
    };
    this.on("error", note);
    this.on("end", note);
  }

  /** Whether the connection has ended or is ending. */
  get isBroken(): boolean {
    return this.#isBroken || this.#socket.destroyed;
  }

  /** Closes the socket without a message to the database. Waiting statements fail. */
  destroy(): void {
    this.#isBroken = true;
    this.#socket.destroy();
  }
}
