import { Socket } from "node:net";
import { Client, type ClientConfig } from "pg";

/**
 * A connection whose breaking is never an error without a listener, which would end the process: it shows in whatever
 * uses the connection, and in `isBroken`.
 */
export class StoreClient extends Client {
  readonly #socket: Socket;
  #isBroken = false;

  constructor(config?: ClientConfig) {
    const socket = new Socket();
    super({ ...config, stream: () => socket });
    this.#socket = socket;
    const note = () => {
      this.#isBroken = true;
    };
    this.on("error", note);
    this.on("end", note);
  }

  /** Whether the connection has ended, or is about to. */
  get isBroken(): boolean {
    return this.#isBroken || this.#socket.destroyed;
  }

  /** Ends the connection without a word to the database. Statements that wait for their answers fail. */
  destroy(): void {
    this.#isBroken = true;
    this.#socket.destroy();
  }
}
