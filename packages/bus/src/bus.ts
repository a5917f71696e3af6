/**
 * Sends wake-ups between the parts of a service and between processes. A wake-up means: "the record of `key` changed,
 * read it again". A wake-up carries no data, because the data is in the store. A wake-up may be lost, repeated, late or
 * merged with an equal wake-up, so readers also poll. `publish` never calls a listener before it returns.
 */
export interface Bus {
  /**
   * Wakes the listeners of `topic` in this process and in the other processes of the same Redis or database. The method
   * never throws and never waits. Equal wake-ups that wait to be sent are sent as one.
   */
  publish(topic: string, key: string): void;

  /**
   * Calls `listener` with the key of each wake-up of `topic`. The key is `ALL_KEYS` if wake-ups may have been lost, or
   * if too many keys waited. An exception of the listener goes to `onError` and does not affect other listeners.
   *
   * @returns a function that ends the subscription; after its call, the bus does not call the listener again
   */
  subscribe(topic: string, listener: Listener): () => void;

  /** Ends all subscriptions and connections. Idempotent; a later `publish` does nothing. */
  close(): Promise<void>;
}

export type Listener = (key: string) => void;

/** The key that stands for every key of the topic. */
export const ALL_KEYS = "";

/**
 * Receives the exceptions of listeners, one report for each outage of Redis or the database, and refusals of Redis.
 * `activity` describes what failed, for the log line.
 */
export type OnError = (error: unknown, activity: string) => void;
