import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import type { Timers } from "@depute/core";
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

/** Maximum number of unsent bytes for a server that does not read. Further messages are refused. */
const MAX_WAITING_BYTES = 67_108_864;
/** Maximum length of a line in bytes. A server that sends a longer line is stopped. */
const MAX_LINE_BYTES = 1_073_741_824;
/**
 * Milliseconds within which a server must end after the proxy closed its input, and again after the proxy sent it a
 * signal.
 */
const END_MS = 2000;
/** Milliseconds to wait for the last output of an ended server, whose child processes may keep the pipe open. */
const LAST_OUTPUT_MS = 1000;

/** Thrown for a message that was not sent: the server has received none of its bytes. */
export class NotWritten extends Error {
  override readonly name = "NotWritten";
}

/** The state of a request that `follow` tracks. */
export interface Sent {
  /** Whether a byte of the request may have reached the server. */
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
  /** Maximum size in bytes of one message from the server. A larger response is replaced by an error for the caller. */
  readonly maxAnswerBytes: number;
  readonly timers: Timers;
}

/**
 * An MCP server in a child process. Unlike the SDK's transport, this transport survives an oversized response. The
 * transport writes one message at a time and queues the others. So the transport can say which requests the server has
 * certainly not received.
 */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  /** The SDK recognizes a server over stdio by the members `stderr` and `pid`. */
  readonly stderr = null;
  readonly #options: StdioOptions;
  readonly #timers: Timers;
  readonly #waiting: Waiting[] = [];
  #waitingBytes = 0;
  #isWriting = false;
  /** Whether a write failed, which means that the server no longer reads. */
  #isBroken = false;
  #last: Waiting | undefined;
  #child: ChildProcessByStdio<Writable, Readable, null> | undefined;

  constructor(options: StdioOptions) {
    this.#options = options;
    this.#timers = options.timers;
  }

  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  start(): Promise<void> {
    const { command, args, env, cwd } = this.#options.address;
    const child = spawn(command, [...args], {
      // The server does not inherit the proxy's environment, which contains secrets.
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
      // Waits only for a limited time, because a child process of the server may keep the output open.
      const cancel = this.#timers.after(LAST_OUTPUT_MS, () => this.#onChildExit(child));
      child.once("close", () => {
        cancel();
        this.#onChildExit(child);
      });
    });
    return new Promise((resolve, reject) => {
      child.once("spawn", resolve);
      child.once("error", (error) => {
        reject(error);
        this.#onChildExit(child);
      });
    });
  }

  /**
   * Resolves when the operating system has accepted the message. Rejects with NotWritten if the server has received
   * no byte of the message; with another error if the write failed.
   */
  send(message: JSONRPCMessage): Promise<void> {
    if (this.#child === undefined) return Promise.reject(new NotWritten("the server has ended"));
    if (this.#withdraws(message)) return Promise.resolve();
    const text = serializeMessage(message);
    const bytes = Buffer.byteLength(text);
    if (this.#waitingBytes + bytes > MAX_WAITING_BYTES) {
      return Promise.reject(new NotWritten("the server does not read its standard input"));
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
   * Begins a request, and tracks whether it was sent.
   *
   * @param begin sends the request before it returns. If it sends the request later, the request counts as sent,
   * because its state is unknown
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
    if (hasEnded(child) || (await endsIn(END_MS))) return this.#onChildExit(child);
    child.kill("SIGTERM");
    if (!(await endsIn(END_MS))) child.kill("SIGKILL");
    this.#onChildExit(child);
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
          // An invalid line is skipped, so that it does not end the connection.
          if (!(thrown instanceof SyntaxError)) this.onerror?.(thrown as Error);
          return;
        }
        this.onmessage?.(message);
      },
      onOversize: ({ id, hasMethod }) => {
        this.onerror?.(new Error(`the server sent a message of more than ${maxAnswerBytes} bytes`));
        if (id === undefined) return;
        const answer = oversize(id, maxAnswerBytes);
        // An oversized message may be a request of the server. The server then gets an error, so that it does not wait for a
        // response.
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

  /**
   * Removes the request that a cancellation names, if the request is still queued. Returns whether it removed the
   * request. If true, the cancellation need not be sent.
   */
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

  /** Rejects all queued messages. */
  #drop(): void {
    for (const waiting of this.#waiting.splice(0)) {
      this.#waitingBytes -= waiting.bytes;
      waiting.failed(waiting.isWritten ? new Error("the server ended") : new NotWritten("the server ended"));
    }
  }

  #onChildExit(child: object): void {
    if (this.#child !== child) return;
    this.#child = undefined;
    this.#drop();
    // Rejects unsent requests before it calls onclose, because onclose makes the SDK report all open requests as lost.
    setImmediate(() => this.onclose?.());
  }
}

function hasEnded({ exitCode, signalCode }: { exitCode: number | null; signalCode: string | null }): boolean {
  return exitCode !== null || signalCode !== null;
}
