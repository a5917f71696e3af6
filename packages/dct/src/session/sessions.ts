import { MAX_SESSIONS, MAX_SESSIONS_OF_ONE } from "../limits.ts";
import type { HolderSession } from "./holder-session.ts";

const ID_CHARS = 22;
/** Minimum milliseconds between two removals of all expired holder sessions, which a full table causes. */
const SWEEP_MS = 1000;

/**
 * The open holder sessions of one verifier. At the limit, a new session is refused, and the open sessions continue.
 * Each principal also has its own limit, so that one principal cannot exclude all others.
 */
export class HolderSessions {
  readonly #max: number;
  readonly #maxOfOne: number;
  readonly #sessions = new Map<string, HolderSession>();
  readonly #byPrincipal = new Map<string, Set<string>>();
  #nextSweep = 0;

  constructor(max: number = MAX_SESSIONS, maxOfOne: number = MAX_SESSIONS_OF_ONE) {
    this.#max = max;
    this.#maxOfOne = maxOfOne;
  }

  get size(): number {
    return this.#sessions.size;
  }

  /** Stores a holder session. Returns false if a limit is reached. `now` is milliseconds since 1970. */
  add(session: HolderSession, now: number): boolean {
    const { id, principal } = session.terms;
    if ((this.#byPrincipal.get(principal)?.size ?? 0) >= this.#maxOfOne)
      this.#dropExpired(this.#sessionsOf(principal), now);
    if (this.#sessions.size >= this.#max && now >= this.#nextSweep) {
      this.#dropExpired(this.#sessions.values(), now);
      this.#nextSweep = now + SWEEP_MS;
    }
    const ownSessions = this.#byPrincipal.get(principal) ?? new Set();
    if (ownSessions.size >= this.#maxOfOne || this.#sessions.size >= this.#max) return false;
    this.#byPrincipal.set(principal, ownSessions.add(id));
    this.#sessions.set(id, session);
    return true;
  }

  /** Returns the holder session that a call's proof names, which may have expired; undefined if none is stored. */
  find(proof: unknown): HolderSession | undefined {
    if (typeof proof !== "string") return undefined;
    const dot = proof.indexOf(".");
    return dot === ID_CHARS ? this.#sessions.get(proof.slice(0, dot)) : undefined;
  }

  /** Closes a session. */
  close(id: string): void {
    const session = this.#sessions.get(id);
    if (session === undefined) return;
    const ownSessions = this.#byPrincipal.get(session.terms.principal);
    ownSessions?.delete(id);
    if (ownSessions?.size === 0) this.#byPrincipal.delete(session.terms.principal);
    this.#sessions.delete(id);
    session.close();
  }

  /** Closes every holder session of a principal, for example when its key is compromised (DelegateOS 13.3). */
  closeAllOf(principal: string): void {
    for (const { terms } of this.#sessionsOf(principal)) this.close(terms.id);
  }

  #sessionsOf(principal: string): HolderSession[] {
    const ids = [...(this.#byPrincipal.get(principal) ?? [])];
    return ids.flatMap((id) => this.#sessions.get(id) ?? []);
  }

  #dropExpired(sessions: Iterable<HolderSession>, now: number): void {
    for (const { terms } of sessions) if (now > terms.expiresAt) this.close(terms.id);
  }
}
