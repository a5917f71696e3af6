import { MemoryAwayError, type SharedMemory } from "@depute/bus";
import type { SealedSecrets } from "@depute/service";
import type { ContextRecord } from "../rules/context.ts";
import { type ContextRoom, noRoom } from "../rules/context-room.ts";
import { type ContextMemory, ContextsAway, type Held, type HeldSince, NotFetched } from "./context-memory.ts";

/** Maximum number of runs of a function in `using`. Each run may need contexts that no earlier run needed. */
const MAX_RUNS = 8;

export interface SharedContextsOptions {
  readonly memory: SharedMemory;
  /** Seals the data before it leaves this process. */
  readonly seal: SealedSecrets;
  /** Returns the limits for an owner's contexts. */
  readonly roomFor: (owner: string) => ContextRoom;
  readonly onError: (error: unknown) => void;
}

/** The result of the last fetch of a context: its data, `lost`, or `away` if the memory did not answer. */
type Known = Held | "lost" | "away";

/**
 * The memory of a service with replicas. It stores sealed values in the shared memory, each bound to its context's id.
 * This process holds unsealed data only while a call uses the data.
 */
export class SharedContexts implements ContextMemory {
  readonly #options: SharedContextsOptions;
  /** The fetched contexts by id, each with the number of running functions that fetched it. */
  readonly #known = new Map<string, { readonly known: Known; readonly users: number }>();

  constructor(options: SharedContextsOptions) {
    this.#options = options;
  }

  get isAway(): boolean {
    return this.#options.memory.isAway;
  }

  find(id: string): Held | undefined {
    const known = this.#known.get(id)?.known;
    if (known === undefined) throw new NotFetched([id], []);
    if (known === "away") throw new ContextsAway();
    return known === "lost" ? undefined : known;
  }

  add(records: readonly ContextRecord[]): void {
    const isStored = ({ id }: ContextRecord) => typeof this.#known.get(id)?.known === "object";
    if (!records.every(isStored)) throw new NotFetched([], records);
  }

  remove(id: string): void {
    // If this removal fails, `sweep` later removes the data.
    this.#options.memory.remove([id]).catch(() => {});
  }

  async using<T>(run: () => Promise<T>): Promise<T> {
    const fetchedIds: string[] = [];
    try {
      for (let runs = 1; ; runs++) {
        try {
          return await run();
        } catch (error) {
          if (!(error instanceof NotFetched) || runs === MAX_RUNS) throw error;
          if (error.records.length > 0) await this.#store(error.records);
          else await this.#fetch(error.ids);
          fetchedIds.push(...error.ids, ...error.records.map(({ id }) => id));
        }
      }
    } finally {
      for (const id of fetchedIds) this.#forget(id);
    }
  }

  async lostOf(ids: readonly string[]): Promise<string[]> {
    const values = await this.#options.memory.get(ids).catch(refused);
    return ids.filter((_, i) => values[i] === undefined);
  }

  async sweep(orphans: (held: readonly HeldSince[]) => Promise<readonly string[]>): Promise<void> {
    const { memory } = this.#options;
    let cursor = "0";
    do {
      const page = await memory.list(cursor).catch(refused);
      await memory.remove(await orphans(page.entries)).catch(refused);
      cursor = page.next;
    } while (cursor !== "0");
  }

  close(): void {
    this.#known.clear();
    this.#options.seal.close();
    this.#options.memory.close().catch(this.#options.onError);
  }

  async #store(records: readonly ContextRecord[]): Promise<void> {
    const { memory, seal, roomFor } = this.#options;
    const owner = records[0]?.owner ?? "";
    const room = roomFor(owner);
    const entries = records.map(({ id, envelope: { data }, digest, expireMs }) => {
      const value = seal.seal(packed({ data, digest }), contextOf(id));
      return { id, value, bytes: data.length, expireMs };
    });
    const limit = await memory.add(owner, entries, room).catch(refused);
    if (limit !== undefined) throw noRoom(limit, room);
    for (const { id, envelope, digest } of records) this.#know(id, { data: envelope.data, digest });
  }

  async #fetch(ids: readonly string[]): Promise<void> {
    const { memory, seal } = this.#options;
    const values = await memory.get(ids).catch((error: unknown) => {
      if (!(error instanceof MemoryAwayError)) throw error;
      return "away" as const;
    });
    for (const [i, id] of ids.entries()) {
      const sealed = values === "away" ? values : values[i];
      if (sealed === "away") this.#know(id, "away");
      else this.#know(id, opened(sealed, id, seal));
    }
  }

  #know(id: string, known: Known): void {
    this.#known.set(id, { known, users: (this.#known.get(id)?.users ?? 0) + 1 });
  }

  #forget(id: string): void {
    const entry = this.#known.get(id);
    if (entry === undefined) return;
    if (entry.users > 1) this.#known.set(id, { ...entry, users: entry.users - 1 });
    else this.#known.delete(id);
  }
}

/** Opens a sealed value. A value that another platform or key sealed counts as lost. */
function opened(sealed: string | undefined, id: string, seal: SealedSecrets): Known {
  const bytes = sealed === undefined ? undefined : seal.open(sealed, contextOf(id));
  return bytes === undefined ? "lost" : unpacked(bytes);
}

function contextOf(id: string) {
  return { sharedContext: id };
}

/** Joins digest and data: one byte with the digest's length, the digest, the data. */
function packed({ digest, data }: Held): Uint8Array {
  const text = Buffer.from(digest);
  return Buffer.concat([Uint8Array.of(text.length), text, data]);
}

function unpacked(bytes: Uint8Array): Held {
  const start = 1 + (bytes[0] ?? 0);
  return { digest: Buffer.from(bytes.subarray(1, start)).toString(), data: bytes.slice(start) };
}

/** Throws the error. If the shared memory does not answer, throws ContextsAway instead. */
function refused(error: unknown): never {
  throw error instanceof MemoryAwayError ? new ContextsAway(error) : error;
}
