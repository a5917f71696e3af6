import { type Clock, DeputeError, ErrorReason } from "@depute/core";
import type { Store } from "@depute/store";
import { type PreparedRule, prepareRule } from "./checker/prepared-rule.ts";
import type { TaskContract } from "./rules/documents.ts";
import { getContract } from "./store/contracts.ts";
import { WeightedLru } from "./weighted-lru.ts";

/** A contract, its prepared output rule, and the organization that owns the contract. */
export interface KnownContract {
  contract: TaskContract;
  outputRule: PreparedRule;
  storeTime: number;
  /** The organization that owns the contract; empty without an organization. */
  organization: string;
}

/** Capacity of the cache in characters of contracts. A parsed contract takes about ten bytes for each character. */
const CACHE_CHARS = 4 * 1024 * 1024;

/** Milliseconds for which the cache may serve a contract. Another replica may have purged the contract in this time. */
const FRESH_MS = 60_000;

/** Reads contracts and caches them. Contracts never change; only a purge deletes them. */
export class ContractBook {
  readonly #store: Store;
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #cache = new WeightedLru<{ readonly known: KnownContract; readonly readAt: number }>(CACHE_CHARS);

  constructor(store: Store, clock: Pick<Clock, "monotonic">) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Removes a purged contract from the cache. */
  forget(id: string): void {
    this.#cache.delete(id);
  }

  /**
   * Returns a contract.
   *
   * @throws DeputeError CONTRACT_NOT_FOUND
   */
  async get(id: string): Promise<KnownContract> {
    const cached = this.#cache.get(id);
    const now = this.#clock.monotonic();
    if (cached !== undefined && now - cached.readAt < FRESH_MS) return cached.known;
    const row = await this.#store.read((tx) => getContract(tx, id));
    if (row === undefined) {
      this.#cache.delete(id);
      throw contractNotFound(id);
    }
    if (cached !== undefined) {
      this.#cache.set(id, { known: cached.known, readAt: now }, row.document.length);
      return cached.known;
    }
    const contract = JSON.parse(row.document) as TaskContract;
    const contractEntry = {
      contract,
      outputRule: ruleOf(contract),
      storeTime: row.storeTime,
      organization: row.organization,
    };
    this.#cache.set(id, { known: contractEntry, readAt: now }, row.document.length);
    return contractEntry;
  }
}

export function contractNotFound(id: string): DeputeError {
  return new DeputeError(ErrorReason.CONTRACT_NOT_FOUND, "the contract does not exist; check the id", {
    metadata: { contract: id },
  });
}

function ruleOf({ verification, task }: TaskContract): PreparedRule {
  return prepareRule({ verification, outputSchema: task.outputSchema });
}

/** Returns the output rule that checks only the contract's output schema (DelegateOS 7.3, step 2). */
export function outputSchemaRuleOf({ task }: TaskContract): PreparedRule {
  return prepareRule({ verification: { method: "schema_match" }, outputSchema: task.outputSchema });
}
