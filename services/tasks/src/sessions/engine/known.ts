import type { Session } from "@depute/asp";

/** A session with who may see it. */
export interface KnownSession {
  readonly session: Session;
  /** By the agents' URIs. */
  readonly principals: ReadonlyMap<string, string>;
  /** The agents' levels of trust when they came, by their URIs. */
  readonly levels: ReadonlyMap<string, number>;
  /** The agents' ids in the registry, by their URIs. */
  readonly registryIds: ReadonlyMap<string, string>;
}

/** Sessions that are at hand, and the most objects of one that is. */
const MAX_SESSIONS = 1000;
const MAX_OBJECTS = 64;

/**
 * Sessions as they are durable: those to which this process, which owns the store, has appended last. Who asks for one has
 * not to wait for the flush of others' messages.
 */
export class KnownSessions {
  readonly #sessions = new Map<string, KnownSession>();

  get(sessionId: string): KnownSession | undefined {
    return this.#sessions.get(sessionId);
  }

  /**
   * Notes a session that is durable now. To be called in the order of the commits.
   *
   * @param parties who takes part, where somebody came; else as before, and a session that is not at hand is left so
   */
  note(session: Session, parties?: Omit<KnownSession, "session">): void {
    const { sessionId } = session;
    const before = this.#sessions.get(sessionId);
    this.#sessions.delete(sessionId);
    const known = parties ?? before;
    if (known === undefined || Object.keys(session.objects).length > MAX_OBJECTS) return;
    this.#sessions.set(sessionId, { ...known, session });
    const [oldest] = this.#sessions.keys();
    if (this.#sessions.size > MAX_SESSIONS && oldest !== undefined) this.#sessions.delete(oldest);
  }
}
