import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { ContractService } from "@depute/contracts/depute/verifier/v1/contract_service_pb";
import { ErrorReason } from "@depute/core";
import type { SubContractRule } from "@depute/dct";
import { fromConnectError, ownHeaders } from "@depute/service";

/** Milliseconds that the verifier has to answer in: somebody waits for a decision meanwhile. */
const TIMEOUT_MS = 2_000;
/** Lineages that are kept, at most 1 KB each. */
const MAX_KEPT = 10_000;
/** Contracts that are asked for at once. */
const MAX_ASKED = 256;

type Lineage = ReadonlySet<string>;
type Link = { readonly contractId: string };

const NONE: Lineage = new Set();

/**
 * Which contracts are parts of which, as the verifier has recorded it. A contract gets its parent when it is stored and
 * never another one, so what was learnt once is kept; that there is no such contract is not.
 */
export class ContractLineages {
  readonly #contracts: Client<typeof ContractService>;
  readonly #maxKept: number;
  /** The longest unused one first. */
  readonly #kept = new Map<string, Lineage>();
  readonly #asked = new Map<string, Promise<Lineage>>();

  constructor(verifier: Transport, maxKept = MAX_KEPT) {
    this.#contracts = createClient(ContractService, verifier);
    this.#maxKept = maxKept;
  }

  /** What one decision about a chain goes by. */
  ofChain(): ChainContracts {
    return new ChainContracts(this);
  }

  /** What is kept of a contract's lineage. */
  kept(contractId: string): Lineage | undefined {
    const lineage = this.#kept.get(contractId);
    if (lineage !== undefined) this.#keep(contractId, lineage);
    return lineage;
  }

  /**
   * A contract's ancestors; none for one that does not exist.
   *
   * @throws DeputeError when the verifier does not say
   */
  async read(contractId: string): Promise<Lineage> {
    const kept = this.kept(contractId) ?? this.#asked.get(contractId);
    if (kept !== undefined) return kept;
    if (this.#asked.size >= MAX_ASKED) throw new Error("too many contracts are asked for");
    const answer = this.#ask(contractId).finally(() => this.#asked.delete(contractId));
    this.#asked.set(contractId, answer);
    return answer;
  }

  async #ask(id: string): Promise<Lineage> {
    const options = { headers: ownHeaders(""), timeoutMs: TIMEOUT_MS };
    try {
      const lineage = new Set((await this.#contracts.getContractLineage({ id }, options)).ancestorIds);
      this.#keep(id, lineage);
      return lineage;
    } catch (thrown) {
      const refusal = fromConnectError(thrown);
      if (refusal.reason === ErrorReason.CONTRACT_NOT_FOUND) return NONE;
      throw refusal;
    }
  }

  #keep(contractId: string, lineage: Lineage): void {
    this.#kept.delete(contractId);
    this.#kept.set(contractId, lineage);
    if (this.#kept.size <= this.#maxKept) return;
    const [oldest] = this.#kept.keys();
    if (oldest !== undefined) this.#kept.delete(oldest);
  }
}

/**
 * The contracts along one chain. The rule answers from what is known, and says no to what is not; only then, and so
 * only for a chain whose signatures hold, is it worth asking.
 */
export class ChainContracts {
  readonly #lineages: ContractLineages;
  #learnt: Map<string, Lineage> | undefined;
  #isUnsure = false;

  constructor(lineages: ContractLineages) {
    this.#lineages = lineages;
  }

  /** Whether one contract is a recorded part of another, for a walk down the chain. */
  readonly isPart: SubContractRule = (child, parent) => {
    const lineage = this.#learnt?.get(child) ?? this.#lineages.kept(child);
    if (lineage === undefined) this.#isUnsure = true;
    return lineage?.has(parent) === true;
  };

  /** Whether the rule said no for want of knowledge. */
  get isUnsure(): boolean {
    return this.#isUnsure;
  }

  /** Learns all that the rule is asked along these blocks. False when the verifier does not say. */
  async learn(blocks: readonly Link[]): Promise<boolean> {
    const parts = blocks.filter(
      ({ contractId }, i) => contractId !== (blocks[i - 1]?.contractId ?? contractId),
    );
    const ids = [...new Set(parts.map(({ contractId }) => contractId))];
    try {
      const lineages = await Promise.all(ids.map((id) => this.#lineages.read(id)));
      this.#learnt = new Map(ids.map((id, i) => [id, lineages[i] ?? NONE]));
      this.#isUnsure = false;
      return true;
    } catch {
      return false;
    }
  }
}
