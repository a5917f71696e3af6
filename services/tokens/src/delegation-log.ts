import { type Clock, DeputeError, ErrorReason, type Timers } from "@depute/core";
import type { RevocationEntry } from "@depute/dct";
import type { Logger } from "@depute/service";
import type { Store, WriteTx } from "@depute/store";
import { BackgroundWork } from "./background.ts";
import { type End, ends, type Link } from "./rules/delegations.ts";
import { refusedToken } from "./rules/denials.ts";
import { recordBlocks } from "./store/block-rows.ts";
import {
  beginCascade,
  continueCascade,
  type DelegationFilter,
  endDelegation,
  findDelegations,
  listDelegations,
  readChain,
  recordLinks,
  revokeDelegations,
  type StoredDelegation,
} from "./store/delegation-rows.ts";
import { isAnyRevoked } from "./store/revocation-rows.ts";

/** Delegations below a revoked block that are marked in one transaction. */
const CASCADE_BATCH = 500;
/** Delegations of one id that are looked at; more would take somebody who tries to find them. */
const MAX_SAME_ID = 100;

/** Which delegation is meant; the revocation id is empty where the delegation's id is enough. */
export interface DelegationKey {
  readonly id: string;
  readonly revocationId: string;
}

interface DelegationLogOptions {
  store: Store;
  clock: Clock;
  timers: Timers;
  log: Logger;
}

/** The delegations of all recorded chains (DelegateOS 8). */
export class DelegationLog {
  readonly #options: DelegationLogOptions;
  readonly #work: BackgroundWork;

  constructor(options: DelegationLogOptions) {
    this.#options = options;
    const { store, clock } = options;
    this.#work = new BackgroundWork(options, "delegations below a revoked one cannot be marked", () =>
      store.write((tx) => continueCascade(tx, CASCADE_BATCH, clock.now())),
    );
  }

  /** Goes on with what a restart interrupted. */
  start(): void {
    this.#work.kick();
  }

  async close(): Promise<void> {
    await this.#work.close();
  }

  /**
   * Records a verified chain within the transaction that it belongs to.
   *
   * @throws DeputeError TOKEN_DENIED when one of its blocks was revoked since it was verified
   */
  async record(tx: WriteTx, links: readonly Link[]): Promise<void> {
    const now = this.#options.clock.now();
    const blocks = links.map(({ block }) => block);
    const ids = blocks.map(({ revocationId }) => revocationId);
    // Whatever is below a block that is revoked has been, or is being, marked: nothing may come in behind.
    if (await isAnyRevoked(tx, ids)) throw refusedToken({ type: "revoked" });
    await recordBlocks(tx, blocks, now);
    await recordLinks(tx, links, now);
  }

  /** Marks what a revocation reaches: the block's delegations, by scope chain all those below them too. */
  async revoke(
    tx: WriteTx,
    { revocationId, scope }: Pick<RevocationEntry, "revocationId" | "scope">,
  ): Promise<void> {
    const now = this.#options.clock.now();
    await revokeDelegations(tx, revocationId, now);
    if (scope !== "chain") return;
    await beginCascade(tx, revocationId);
    if (await continueCascade(tx, CASCADE_BATCH, now)) tx.afterCommit(() => this.#work.kick());
  }

  /**
   * One delegation and all above it, the root first, if the caller may see it.
   *
   * @param maySee whether the caller is one of these principals, or may see everything
   * @throws DeputeError DELEGATION_NOT_FOUND, DELEGATION_AMBIGUOUS
   */
  async chain(
    key: DelegationKey,
    maySee: (parties: readonly string[]) => boolean,
  ): Promise<StoredDelegation[]> {
    return this.#options.store.read(async (tx) => {
      const chains: StoredDelegation[][] = [];
      for (const { chainId } of await findDelegations(tx, key, MAX_SAME_ID)) {
        const chain = await readChain(tx, chainId);
        if (maySee(chain.flatMap(({ from, to }) => [from, to]))) chains.push(chain);
      }
      return only(key, chains);
    });
  }

  async list(filter: DelegationFilter, after: number, limit: number): Promise<StoredDelegation[]> {
    return this.#options.store.read((tx) => listDelegations(tx, filter, after, limit));
  }

  /**
   * Notes how a delegation ended.
   *
   * @param isMeant which of the delegations with the id the caller can mean
   * @param note writes the audit within the transaction
   * @throws DeputeError DELEGATION_NOT_FOUND, DELEGATION_AMBIGUOUS, DELEGATION_STATE_CONFLICT
   */
  async finish(
    key: DelegationKey,
    end: End,
    isMeant: (delegation: StoredDelegation) => boolean,
    note: (tx: WriteTx, delegation: StoredDelegation) => Promise<void>,
  ): Promise<StoredDelegation> {
    return this.#options.store.write(async (tx) => {
      const found = (await findDelegations(tx, key, MAX_SAME_ID)).filter(isMeant);
      const delegation = only(
        key,
        found.map((one) => [one]),
      )[0] as StoredDelegation;
      if (!ends(delegation.id, delegation, end)) return delegation;
      const endTime = delegation.endTime || this.#options.clock.now();
      await endDelegation(tx, delegation.position, end, endTime);
      await note(tx, delegation);
      return { ...delegation, ...end, endTime };
    });
  }
}

function only(key: DelegationKey, chains: readonly StoredDelegation[][]): StoredDelegation[] {
  const [chain, ...others] = chains;
  if (chain === undefined) {
    throw new DeputeError(ErrorReason.DELEGATION_NOT_FOUND, "there is no such delegation", {
      metadata: { delegation: key.id },
    });
  }
  if (others.length === 0) return chain;
  const candidates = chains.map((one) => one.at(-1)?.revocationId ?? "").join(",");
  throw new DeputeError(
    ErrorReason.DELEGATION_AMBIGUOUS,
    "several delegations have this id; name the block",
    {
      metadata: { delegation: key.id, candidates },
    },
  );
}
