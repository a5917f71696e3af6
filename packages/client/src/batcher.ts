import { Code, ConnectError } from "@connectrpc/connect";
import type { Status } from "@depute/contracts/google/rpc/status_pb";

/** Maximum number of items in one call. The contract has the same limit. */
const MAX_AT_ONCE = 100;

/** The outcome of one item of a batch: a value, or a refusal. */
export interface Outcome<Value> {
  readonly outcome:
    | { readonly case: "error"; readonly value: Status }
    | { readonly case: string; readonly value: Value }
    | { readonly case: undefined; readonly value?: undefined };
}

interface Waiting<Item, Value> {
  readonly item: Item;
  readonly group: string;
  readonly resolve: (value: Value) => void;
  readonly reject: (error: unknown) => void;
}

/** Collects the items of one turn of the event loop into batches, so that many items need few calls. */
export class Batcher<Item, Value> {
  readonly #send: (items: Item[]) => Promise<readonly Outcome<Value>[]>;
  #waiting: Waiting<Item, Value>[] = [];

  /** @param send makes one batch call; returns the outcomes in the order of the items */
  constructor(send: (items: Item[]) => Promise<readonly Outcome<Value>[]>) {
    this.#send = send;
  }

  /**
   * Sends an item, possibly in one call with other items.
   *
   * @param group only items of the same group share a call, so that no item waits for a slow group
   * @returns the value of the item's outcome
   * @throws ConnectError the error that a call for this item alone would throw
   */
  add(item: Item, group = ""): Promise<Value> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.length === 0) setImmediate(() => this.#sendAll());
      this.#waiting.push({ item, group, resolve, reject });
    });
  }

  #sendAll(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const some of Map.groupBy(waiting, ({ group }) => group).values()) {
      for (let i = 0; i < some.length; i += MAX_AT_ONCE) void this.#sendSome(some.slice(i, i + MAX_AT_ONCE));
    }
  }

  /** Sends one call. Never rejects, because each item gets its own value or error. */
  async #sendSome(some: readonly Waiting<Item, Value>[]): Promise<void> {
    try {
      const outcomes = await this.#send(some.map(({ item }) => item));
      for (const [i, { resolve, reject }] of some.entries()) {
        const { outcome } = outcomes[i] ?? NOTHING;
        if (outcome.case === undefined || outcome.case === "error") reject(errorOf(outcome.value as Status));
        else resolve(outcome.value as Value);
      }
    } catch (error) {
      if (some.length > 1 && ConnectError.from(error).code !== Code.Unavailable) {
        // One invalid item may fail the whole call, so each item is sent again in its own call. The platform returns
        // the first answer for an item that it already accepted.
        for (const one of some) void this.#sendSome([one]);
      } else for (const { reject } of some) reject(error);
    }
  }
}

const NOTHING: Outcome<never> = { outcome: { case: undefined } };

/** Converts the status of one item to the error that a single call would throw. */
function errorOf(status: Status | undefined): ConnectError {
  const error = new ConnectError(
    status?.message ?? "the answer has no outcome; check the platform's version",
    status?.code as Code | undefined,
  );
  error.details = (status?.details ?? []).map(({ typeUrl, value }) => ({
    type: typeUrl.slice(typeUrl.lastIndexOf("/") + 1),
    value,
  }));
  return error;
}
