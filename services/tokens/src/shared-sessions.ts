import {
  type CryptoEngine,
  HolderSession,
  MAX_SESSIONS,
  MAX_SESSIONS_OF_ONE,
  type SessionTerms,
} from "@depute/dct";
import type { SealedSecrets } from "@depute/service";
import type { Store } from "@depute/store";
import { deleteHolderSession, findHolderSession, insertHolderSession } from "./store/holder-session-rows.ts";

/** Maximum number of holder sessions in a replica's memory. A holder session takes about 1 KB. */
const MAX_KNOWN = 10_000;
/** Matches the id of the holder session, with which the proof of a call in a holder session begins. */
const ID = /^[A-Za-z0-9_-]{22}(?=\.)/;

interface SharedSessionsOptions {
  readonly engine: CryptoEngine;
  readonly store: Store;
  /** Seals the keys of holder sessions with the master key. */
  readonly secrets: SealedSecrets;
}

/**
 * The holder sessions of replicas that share a store. The row of a holder session contains its key, sealed by the
 * master key. Memory holds the holder sessions that this replica has served. The transaction that marks a call's proof
 * as used also checks that the holder session is still open. So a holder session that one replica closes is closed at
 * all replicas.
 */
export class SharedSessions {
  readonly #options: SharedSessionsOptions;
  /** The holder sessions that this replica has served, by id, least recently used first. */
  readonly #known = new Map<string, HolderSession>();

  constructor(options: SharedSessionsOptions) {
    this.#options = options;
  }

  /**
   * Stores a holder session. Returns false if the principal, or the store, has its maximum number of holder sessions.
   */
  async add(session: HolderSession, now: number): Promise<boolean> {
    const { store, secrets } = this.#options;
    const { id, principal, expiresAt: expireTime } = session.terms;
    const terms = JSON.stringify(session.terms);
    const key = session.copyKey();
    const sealed = secrets.seal(key, contextOfSession(terms));
    key.fill(0);
    const limits = { now, max: MAX_SESSIONS, maxOfOne: MAX_SESSIONS_OF_ONE };
    const row = { id, principal, terms, sealed, expireTime };
    if (!(await store.write((tx) => insertHolderSession(tx, row, limits)))) return false;
    this.#keep(session);
    return true;
  }

  /** Returns the holder session that a call's proof names; undefined if memory does not have it. */
  find(proof: string): HolderSession | undefined {
    return this.#known.get(idIn(proof) ?? "");
  }

  /**
   * Reads the holder session that a call's proof names from the store into memory, unless memory has it. Does nothing if
   * the store does not have it.
   */
  async load(proof: string): Promise<void> {
    const { engine, store, secrets } = this.#options;
    const id = idIn(proof);
    if (id === undefined) return;
    const known = this.#known.get(id);
    if (known !== undefined) return this.#keep(known);
    const row = await store.read((tx) => findHolderSession(tx, id));
    if (row === undefined || this.#known.has(id)) return;
    const key = secrets.open(row.sealed, contextOfSession(row.terms));
    if (key !== undefined) this.#keep(new HolderSession(engine, JSON.parse(row.terms) as SessionTerms, key));
  }

  /** Closes a holder session at all replicas. */
  async close(id: string): Promise<void> {
    await this.#options.store.write((tx) => deleteHolderSession(tx, id));
    this.forget(id);
  }

  /** Removes a closed holder session from this replica's memory. */
  forget(id: string): void {
    this.#known.get(id)?.close();
    this.#known.delete(id);
  }

  #keep(session: HolderSession): void {
    const { id } = session.terms;
    this.#known.delete(id);
    this.#known.set(id, session);
    if (this.#known.size <= MAX_KNOWN) return;
    const [oldest] = this.#known.keys();
    if (oldest !== undefined) this.#known.delete(oldest);
  }
}

/** Returns the id of the holder session that a proof names; undefined for a proof outside a holder session. */
function idIn(proof: string): string | undefined {
  return ID.exec(proof)?.[0];
}

/** Returns the context to which the sealed key of a holder session is bound: only the same terms open the key. */
export function contextOfSession(terms: string): Record<string, string> {
  return { purpose: "holder-session", terms };
}
