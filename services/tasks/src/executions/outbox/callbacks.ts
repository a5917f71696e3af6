import { createHash } from "node:crypto";
import { ExecutionReceiptSchema } from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import type { Clock, Timers } from "@depute/core";
import {
  type AllowedHosts,
  DeadlineLoop,
  type Logger,
  Outbound,
  type WorkLease,
  withTimeout,
} from "@depute/service";
import { encode } from "@depute/wire";
import { backoffMs, type TaskStore } from "../../core/index.ts";
import type { BookListener } from "../book/book.ts";

import { signatureBase, signatureParams } from "../rules/message-signature.ts";
import {
  type CallbackRow,
  deleteCallback,
  dueCallbacks,
  earliestCallback,
  insertCallback,
  postponeCallback,
} from "../store/callback-rows.ts";
import { findExecution } from "../store/execution-rows.ts";
import { readReceipt } from "../store/receipt-rows.ts";
import type { CallbackKey } from "./callback-key.ts";

/** Maximum number of concurrent callbacks. */
const AT_ONCE = 16;
/** Maximum milliseconds between two reads of the store. */
const MAX_WAIT_MS = 30_000;
/** Timeout of a callback, in milliseconds. */
const TIMEOUT_MS = 10_000;
/** Maximum number of bytes that the sender reads from a response. The sender ignores the content. */
const MAX_ANSWER_BYTES = 1024;
const CONTENT_TYPE = "application/json";

export interface CallbacksOptions {
  readonly store: TaskStore;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Logger;
  readonly lease: WorkLease | undefined;
  readonly hosts: AllowedHosts;
  readonly key: CallbackKey;
  /** Source of randomness for the jitter of backoffs. */
  readonly random: () => number;
}

/**
 * Sends receipts to the address in the buyer's request (Agenta `callback.url`). Sends each receipt at least once, in
 * order, signed (RFC 9421), and only to configured hosts. After 12 failed attempts to send a receipt, which take about
 * half an hour, drops that receipt's callback. The buyer can still read the receipts.
 */
export class Callbacks {
  readonly #options: CallbacksOptions;
  readonly #outbound: Outbound;
  readonly #loop: DeadlineLoop;

  constructor(options: CallbacksOptions) {
    this.#options = options;
    const { clock, timers, log, lease } = options;
    this.#loop = new DeadlineLoop({
      clock,
      timers,
      log,
      lease,
      failureMessage: "callbacks could not be sent",
      maxWaitMs: MAX_WAIT_MS,
      runDueWork: (signal) => this.#look(signal),
    });
    this.#outbound = new Outbound({ hosts: options.hosts });
  }

  readonly listener: BookListener = {
    issued: async (tx, { request, lastNumber }) => {
      const url = request.callback?.url;
      if (url === undefined || !this.#isAllowed(url)) return;
      await insertCallback(tx, request.requestId, lastNumber, this.#options.clock.now());
      tx.afterCommit(() => this.#loop.wake());
    },
    attested: async () => {},
  };

  start(): void {
    this.#loop.start();
  }

  async close(): Promise<void> {
    await this.#loop.close();
    this.#outbound.close();
  }

  #isAllowed(url: string): boolean {
    try {
      this.#outbound.check(url);
      return true;
    } catch {
      return false;
    }
  }

  async #look(signal: AbortSignal): Promise<number | undefined> {
    const { store, clock } = this.#options;
    // A receipt waits until the address has accepted the previous receipt of its request. So each round may make
    // further receipts due.
    for (let more = true; more && !signal.aborted; ) {
      const due = await store.read((tx) => dueCallbacks(tx, clock.now(), AT_ONCE));
      await Promise.all(due.map((row) => this.#tell(row, signal)));
      more = due.length > 0;
    }
    return store.read(earliestCallback);
  }

  async #tell(row: CallbackRow, signal: AbortSignal): Promise<void> {
    const { store, clock, timers, log, random } = this.#options;
    try {
      const isTold = await withTimeout(timers, TIMEOUT_MS, signal, (within) => this.#send(row, within));
      if (isTold || signal.aborted) {
        if (isTold) await store.write((tx) => deleteCallback(tx, row));
        return;
      }
    } catch (error) {
      if (signal.aborted) return;
      log.info({ err: error, request: row.requestId, attempts: row.attempts }, "a callback failed");
    }
    const waitMs = backoffMs(row.attempts + 1, random());
    await store.write((tx) =>
      waitMs === undefined ? deleteCallback(tx, row) : postponeCallback(tx, row, clock.now() + waitMs),
    );
  }

  /**
   * Sends one receipt.
   *
   * @returns true if the address accepted the receipt, or the receipt no longer exists; false if a retry must follow
   */
  async #send({ requestId, number }: CallbackRow, signal: AbortSignal): Promise<boolean> {
    const { store, clock, key } = this.#options;
    const found = await store.read(async (tx) => {
      const record = await findExecution(tx, requestId);
      return record && { request: record.request, receipt: await readReceipt(tx, requestId, number) };
    });
    const callback = found?.request.callback;
    if (found === undefined || callback === undefined) return true;
    const body = JSON.stringify(encode(ExecutionReceiptSchema, found.receipt));
    const url = this.#outbound.check(callback.url).href;
    const digest = createHash("sha256").update(body).digest("base64");
    const signed = {
      method: "POST",
      url,
      contentType: CONTENT_TYPE,
      contentDigest: `sha-256=:${digest}:`,
    };
    const params = signatureParams({ created: Math.floor(clock.now() / 1000), keyId: key.keyId });
    const signature = Buffer.from(key.sign(signatureBase(signed, params))).toString("base64");
    const reference = callback.authReference ?? "";
    const answer = await this.#outbound.send(url, {
      headers: {
        "content-type": CONTENT_TYPE,
        "content-length": String(Buffer.byteLength(body)),
        "content-digest": signed.contentDigest,
        "signature-input": `depute=${params}`,
        signature: `depute=:${signature}:`,
        "idempotency-key": found.receipt.receiptId,
        // The buyer's own reference for the callback, which is not a secret. A header can carry only visible ASCII.
        ...(/^[\x21-\x7e]+$/.test(reference) && { "agenta-auth-reference": reference }),
      },
      body,
      signal,
      idleMs: TIMEOUT_MS,
      maxBytes: MAX_ANSWER_BYTES,
    });
    for await (const _ of answer.body);
    return answer.status >= 200 && answer.status < 300;
  }
}
