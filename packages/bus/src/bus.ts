/**
 * Wake-ups between the parts of a service and between processes: "something about `key` changed, look again".
 *
 * Truth is in the store. A wake-up may be lost, doubled, merged with an equal one or late, so a reader also polls; it
 * carries no data. Delivery never happens inside the call of `publish`.
 */
export interface Bus {
  /**
   * Wakes the listeners of `topic`, here and in the other processes of the same Redis. Never throws and never waits;
   * equal wake-ups of one turn of the event loop are merged.
   */
  publish(topic: string, key: string): void;

  /**
   * Calls `listener` with the key of each wake-up of `topic`, or with `LOOK_AT_EVERYTHING` when wake-ups may have been
   * lost or were too many to be named. What a listener throws goes to `onError` and reaches nobody else.
   *
   * @returns a function that ends the subscription; no call follows it.
   */
  subscribe(topic: string, listener: Listener): () => void;

  /** Ends all subscriptions and connections. Idempotent; `publish` afterwards does nothing. */
  close(): Promise<void>;
}

export type Listener = (key: string) => void;

/** The key that stands for every key. */
export const LOOK_AT_EVERYTHING = "";

/** Told about what a listener threw, and once for each outage of Redis; `what` says which. */
export type OnError = (error: unknown, what: string) => void;
