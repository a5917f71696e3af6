import { MAX_SESSIONS, MAX_SESSIONS_OF_ONE } from "../limits.ts";
import type { HolderSession } from "./holder-session.ts";

const ID_CHARS = 22;
/** While there is no room, all sessions are looked through no more often than this, in milliseconds. */
const SWEEP_MS = 1000;

/**
 * The open sessions of one verifier. When there is no room for another it is refused, and none of those there are is
 * put out for it; one principal has a share, so that nobody shuts out the others.
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

  /** Keeps a session; false when there is no room. `now` is milliseconds since 1970. */
  add(session: HolderSession, now: number): boolean {
    const { id, principal } = session.terms;
    if ((this.#byPrincipal.get(principal)?.size ?? 0) >= this.#maxOfOne)
      this.#dropExpired(this.#of(principal), now);
    if (this.#sessions.size >= this.#max && now >= this.#nextSweep) {
      this.#dropExpired(this.#sessions.values(), now);
      this.#nextSweep = now + SWEEP_MS;
    }
    const own = this.#byPrincipal.get(principal) ?? new Set();
    if (own.size >= this.#maxOfOne || this.#sessions.size >= this.#max) return false;
    this.#byPrincipal.set(principal, own.add(id));
    this.#sessions.set(id, session);
    return true;
  }

  /** The session that the text of a call's proof names. */
  find(proof: unknown): HolderSession | undefined {
    if (typeof proof !== "string") return undefined;
    const dot = proof.indexOf(".");
    return dot === ID_CHARS ? this.#sessions.get(proof.slice(0, dot)) : undefined;
  }

  /** Closes a session. */
  close(id: string): void {
    const session = this.#sessions.get(id);
    if (session === undefined) return;
    const own = this.#byPrincipal.get(session.terms.principal);
    own?.delete(id);
    if (own?.size === 0) this.#byPrincipal.delete(session.terms.principal);
    this.#sessions.delete(id);
    session.close();
  }

  /** Closes every session of a principal, as when its key is compromised (DelegateOS 13.3). */
  closeAllOf(principal: string): void {
    for (const { terms } of this.#of(principal)) this.close(terms.id);
  }

  #of(principal: string): HolderSession[] {
    const ids = [...(this.#byPrincipal.get(principal) ?? [])];
    return ids.flatMap((id) => this.#sessions.get(id) ?? []);
  }

  #dropExpired(sessions: Iterable<HolderSession>, now: number): void {
    for (const { terms } of sessions) if (now > terms.expiresAt) this.close(terms.id);
  }
}
