import { Code, ConnectError } from "@connectrpc/connect";
import type { Status } from "@depute/contracts/google/rpc/status_pb";

/** Items in one call at most; the limit of the contract's batches. */
const MAX_AT_ONCE = 100;

/** What has become of one item of a batch: a value, or a refusal. */
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

/** Sends together what is there in one turn of the event loop: much of it costs few calls. */
export class Gathered<Item, Value> {
  readonly #send: (items: Item[]) => Promise<readonly Outcome<Value>[]>;
  #waiting: Waiting<Item, Value>[] = [];

  /** @param send one call of a batch; gives its outcomes back, in the order of the items */
  constructor(send: (items: Item[]) => Promise<readonly Outcome<Value>[]>) {
    this.#send = send;
  }

  /**
   * Sends an item, with others or alone.
   *
   * @param group only items of the same group go in one call, so that they do not wait for others'
   * @returns what its outcome says
   * @throws ConnectError as a call of its own would
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

  /** Never rejects: each item gets the error. */
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
        // One of them may be to blame, and the others must not pay for it. What was taken already is only answered again.
        for (const one of some) void this.#sendSome([one]);
      } else for (const { reject } of some) reject(error);
    }
  }
}

const NOTHING: Outcome<never> = { outcome: { case: undefined } };

/** A refusal within a message, as the call by itself would have thrown it. */
function errorOf(status: Status | undefined): ConnectError {
  const error = new ConnectError(status?.message ?? "no outcome", status?.code as Code | undefined);
  error.details = (status?.details ?? []).map(({ typeUrl, value }) => ({
    type: typeUrl.slice(typeUrl.lastIndexOf("/") + 1),
    value,
  }));
  return error;
}
