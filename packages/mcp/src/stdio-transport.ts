import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { systemTimers, type Timers } from "@depute/core";
import {
  deserializeMessage,
  isJSONRPCNotification,
  isJSONRPCRequest,
  type JSONRPCMessage,
  type RequestId,
  serializeMessage,
  type Transport,
} from "@modelcontextprotocol/client";
import { getDefaultEnvironment } from "@modelcontextprotocol/client/stdio";
import { Lines } from "./lines.ts";
import { oversize } from "./oversize.ts";
import type { UpstreamAddress } from "./rules/read-config.ts";

/** Bytes that may wait for a server that does not read; what would be more is refused. */
const MAX_WAITING_BYTES = 67_108_864;
/** Bytes of one line; a server that goes on beyond is ended. */
const MAX_LINE_BYTES = 1_073_741_824;
/** Time for a server to end by itself, and then by a signal. */
const END_MS = 2000;
/** Time for the last output of a server that has ended, which a child of its own may keep open. */
const LAST_OUTPUT_MS = 1000;

/** A message was not sent: the server has seen no byte of it. */
export class NotWritten extends Error {
  override readonly name = "NotWritten";
}

/** A request on its way. */
export interface Sent {
  /** Whether any byte of it may have reached the server. */
  readonly isWritten: boolean;
}

interface Waiting {
  readonly text: string;
  readonly bytes: number;
  readonly id: RequestId | undefined;
  isWritten: boolean;
  readonly done: () => void;
  readonly failed: (error: Error) => void;
}

export interface StdioOptions {
  readonly address: Extract<UpstreamAddress, { kind: "stdio" }>;
  /** Bytes of one message of the server; the caller of a larger answer gets an error instead. */
  readonly maxAnswerBytes: number;
  readonly timers?: Timers;
}

/**
 * A server that runs as a child process. Unlike the SDK's own transport it outlives an answer that is too large, and knows
 * which requests the server cannot have seen: one message at a time is written, and the others wait here.
 */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  /** By its presence, and that of `pid`, the SDK knows that the server speaks over stdio. */
  readonly stderr = null;
  readonly #options: StdioOptions;
  readonly #timers: Timers;
  readonly #waiting: Waiting[] = [];
  #waitingBytes = 0;
  #isWriting = false;
  /** Whether a write failed: the server reads no more. */
  #isBroken = false;
  #last: Waiting | undefined;
  #child: ChildProcessByStdio<Writable, Readable, null> | undefined;

  constructor(options: StdioOptions) {
    this.#options = options;
    this.#timers = options.timers ?? systemTimers;
  }

  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  start(): Promise<void> {
    const { command, args, env, cwd } = this.#options.address;
    const child = spawn(command, [...args], {
      // The proxy's own environment holds secrets that are no business of the server's.
      env: { ...getDefaultEnvironment(), ...env },
      stdio: ["pipe", "pipe", "inherit"],
      windowsHide: true,
      ...(cwd === undefined ? {} : { cwd }),
    });
    this.#child = child;
    const lines = this.#lines();
    child.stdout.on("data", (chunk: Buffer) => lines.feed(chunk));
    for (const stream of [child.stdin, child.stdout]) stream.on("error", (error) => this.onerror?.(error));
    child.once("exit", () => {
      // A child of the server's own may hold its output open.
      const cancel = this.#timers.after(LAST_OUTPUT_MS, () => this.#gone(child));
      child.once("close", () => {
        cancel();
        this.#gone(child);
      });
    });
    return new Promise((resolve, reject) => {
      child.once("spawn", resolve);
      child.once("error", (error) => {
        reject(error);
        this.#gone(child);
      });
    });
  }

  /** Resolves when the message has been handed to the system. Rejects with NotWritten where that will not happen. */
  send(message: JSONRPCMessage): Promise<void> {
    if (this.#child === undefined) return Promise.reject(new NotWritten("the server has ended"));
    if (this.#withdraws(message)) return Promise.resolve();
    const text = serializeMessage(message);
    const bytes = Buffer.byteLength(text);
    if (this.#waitingBytes + bytes > MAX_WAITING_BYTES) {
      return Promise.reject(new NotWritten("the server does not read what it is sent"));
    }
    return new Promise((done, failed) => {
      const id = isJSONRPCRequest(message) ? message.id : undefined;
      const waiting: Waiting = { text, bytes, id, isWritten: false, done, failed };
      this.#waiting.push(waiting);
      this.#waitingBytes += bytes;
      if (id !== undefined) this.#last = waiting;
      this.#write();
    });
  }

  /**
   * Begins a request, and follows it.
   *
   * @param begin sends the request before it returns; otherwise nothing is known of it, and it counts as written
   */
  follow<T>(begin: () => T): { result: T; sent: Sent } {
    this.#last = undefined;
    const result = begin();
    return { result, sent: this.#last ?? { isWritten: true } };
  }

  async close(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    const ended = new Promise<boolean>((resolve) => child.once("exit", () => resolve(true)));
    const endsIn = (ms: number) => {
      const { promise, resolve } = Promise.withResolvers<boolean>();
      const cancel = this.#timers.after(ms, () => resolve(false));
      return Promise.race([ended, promise]).finally(cancel);
    };
    child.stdin.end();
    if (hasEnded(child) || (await endsIn(END_MS))) return this.#gone(child);
    child.kill("SIGTERM");
    if (!(await endsIn(END_MS))) child.kill("SIGKILL");
    this.#gone(child);
  }

  #lines(): Lines {
    const { maxAnswerBytes } = this.#options;
    return new Lines({
      maxBytes: maxAnswerBytes,
      onLine: (line) => {
        let message: JSONRPCMessage;
        try {
          message = deserializeMessage(line);
        } catch (thrown) {
          // A server that prints what is no message goes on.
          if (!(thrown instanceof SyntaxError)) this.onerror?.(thrown as Error);
          return;
        }
        this.onmessage?.(message);
      },
      onOversize: ({ id, hasMethod }) => {
        this.onerror?.(new Error(`the server sent a message of more than ${maxAnswerBytes} bytes`));
        if (id === undefined) return;
        const answer = oversize(id, maxAnswerBytes);
        // A request of the server gets the answer itself, so that the server does not wait for one.
        if (hasMethod) this.send(answer).catch((error: Error) => this.onerror?.(error));
        else this.onmessage?.(answer);
      },
      endlessBytes: Math.max(MAX_LINE_BYTES, maxAnswerBytes),
      onEndless: () => {
        this.onerror?.(new Error("the server sent a line without an end"));
        void this.close();
      },
    });
  }

  /** Takes a request back that still waits here, instead of sending its cancellation after it. */
  #withdraws(message: JSONRPCMessage): boolean {
    if (!isJSONRPCNotification(message) || message.method !== "notifications/cancelled") return false;
    const { requestId } = (message.params ?? {}) as { requestId?: RequestId };
    const at = this.#waiting.findIndex(({ id, isWritten }) => id === requestId && !isWritten);
    const [withdrawn] = at < 0 || requestId === undefined ? [] : this.#waiting.splice(at, 1);
    if (withdrawn === undefined) return false;
    this.#waitingBytes -= withdrawn.bytes;
    withdrawn.failed(new NotWritten("the request was cancelled before it was sent"));
    return true;
  }

  #write(): void {
    const child = this.#child;
    const [next] = this.#waiting;
    if (child === undefined || next === undefined || this.#isWriting) return;
    if (this.#isBroken || hasEnded(child)) {
      this.#drop();
      return;
    }
    this.#isWriting = true;
    next.isWritten = true;
    child.stdin.write(next.text, (error) => {
      this.#isWriting = false;
      this.#waiting.shift();
      this.#waitingBytes -= next.bytes;
      if (error === null || error === undefined) next.done();
      else {
        this.#isBroken = true;
        next.failed(error);
      }
      this.#write();
    });
  }

  /** What waits now will not be sent. */
  #drop(): void {
    for (const waiting of this.#waiting.splice(0)) {
      this.#waitingBytes -= waiting.bytes;
      waiting.failed(waiting.isWritten ? new Error("the server ended") : new NotWritten("the server ended"));
    }
  }

  #gone(child: object): void {
    if (this.#child !== child) return;
    this.#child = undefined;
    this.#drop();
    // What was not sent is told first, so that the SDK does not tell it as lost.
    setImmediate(() => this.onclose?.());
  }
}

function hasEnded({ exitCode, signalCode }: { exitCode: number | null; signalCode: string | null }): boolean {
  return exitCode !== null || signalCode !== null;
}
