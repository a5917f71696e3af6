import { DeputeError, ErrorReason } from "@depute/core";
import type { Store } from "@depute/store";
import { type PreparedRule, prepareRule } from "./checker/prepared-rule.ts";
import type { TaskContract } from "./rules/documents.ts";
import { getContract } from "./store/contracts.ts";
import { WeightedLru } from "./weighted-lru.ts";

/** A contract with its output rule. */
export interface KnownContract {
  contract: TaskContract;
  outputRule: PreparedRule;
  storeTime: number;
  /** The organization that owns the contract; empty for none. */
  organization: string;
}

/** Capacity of the cache in characters of contracts. A parsed contract takes about ten bytes for each character. */
const CACHE_CHARS = 4 * 1024 * 1024;

/** Reads contracts and caches them; contracts never change. */
export class ContractBook {
  readonly #store: Store;
  readonly #cache = new WeightedLru<KnownContract>(CACHE_CHARS);

  constructor(store: Store) {
    this.#store = store;
  }

  /** @throws DeputeError CONTRACT_NOT_FOUND */
  async get(id: string): Promise<KnownContract> {
    const cached = this.#cache.get(id);
    if (cached !== undefined) return cached;
    const row = await this.#store.read((tx) => getContract(tx, id));
    if (row === undefined) {
      throw new DeputeError(ErrorReason.CONTRACT_NOT_FOUND, "the contract does not exist; check the id", {
        metadata: { contract: id },
      });
    }
    const contract = JSON.parse(row.document) as TaskContract;
    const contractEntry = {
      contract,
      outputRule: ruleOf(contract),
      storeTime: row.storeTime,
      organization: row.organization,
    };
    this.#cache.set(id, contractEntry, row.document.length);
    return contractEntry;
  }
}

function ruleOf({ verification, task }: TaskContract): PreparedRule {
  return prepareRule({ verification, outputSchema: task.outputSchema });
}

/** Returns the output rule that checks only the contract's output schema (DelegateOS 7.3, step 2). */
export function outputSchemaRuleOf({ task }: TaskContract): PreparedRule {
  return prepareRule({ verification: { method: "schema_match" }, outputSchema: task.outputSchema });
}
