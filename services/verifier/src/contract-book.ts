import { DeputeError, ErrorReason } from "@depute/core";
import type { Store } from "@depute/store";
import { type KnownJudgement, knownJudgement } from "./checker/known-judgement.ts";
import { WeightedLru } from "./lru.ts";
import type { TaskContract } from "./rules/documents.ts";
import { getContract } from "./store/contracts.ts";

/** A contract, and how it judges. */
export interface KnownContract {
  contract: TaskContract;
  judgement: KnownJudgement;
  storeTime: number;
}

/** Characters of contracts that are kept parsed, some 10 times that in bytes. */
const CACHE_CHARS = 4 * 1024 * 1024;

/** Reads contracts. They never change, so one that was read is kept while there is room. */
export class ContractBook {
  readonly #store: Store;
  readonly #known = new WeightedLru<KnownContract>(CACHE_CHARS);

  constructor(store: Store) {
    this.#store = store;
  }

  /** @throws DeputeError CONTRACT_NOT_FOUND */
  async get(id: string): Promise<KnownContract> {
    const known = this.#known.get(id);
    if (known !== undefined) return known;
    const row = await this.#store.read((tx) => getContract(tx, id));
    if (row === undefined) {
      throw new DeputeError(ErrorReason.CONTRACT_NOT_FOUND, "no such contract", {
        metadata: { contract: id },
      });
    }
    const contract = JSON.parse(row.document) as TaskContract;
    const found = { contract, judgement: judgementOf(contract), storeTime: row.storeTime };
    this.#known.set(id, found, row.document.length);
    return found;
  }
}

function judgementOf({ verification, task }: TaskContract): KnownJudgement {
  return knownJudgement({ verification, outputSchema: task.outputSchema });
}

/** How the contract's output schema alone judges (DelegateOS 7.3, step 2). */
export function schemaJudgementOf({ task }: TaskContract): KnownJudgement {
  return knownJudgement({ verification: { method: "schema_match" }, outputSchema: task.outputSchema });
}
