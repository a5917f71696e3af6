import { type Clock, DeputeError, ErrorReason, type Owned, type Timers } from "@depute/core";
import type { CryptoEngine, RevocationEntry } from "@depute/dct";
import type { Logger, WorkLease } from "@depute/service";
import type { ReadTx, Store, WriteTx } from "@depute/store";
import { BackgroundWork } from "./background.ts";
import type { RevocationReader } from "./revocation-reader.ts";
import type { RevocationState } from "./revocation-state.ts";
import type { RootKeys } from "./root-keys.ts";
import { chainIdOf, type End, isNewEnd, type Link, lapsedAuthority } from "./rules/delegations.ts";
import { refusedToken } from "./rules/denials.ts";
import { rootRetired } from "./rules/root-key.ts";
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
  type Subject,
} from "./store/delegation-rows.ts";
import { isAnyRevoked } from "./store/revocation-rows.ts";

/** Maximum number of delegations below a revoked block that one transaction marks as revoked. */
const CASCADE_BATCH = 500;
/**
 * Maximum number of delegations with the same id that a look-up reads. More delegations have the same id only if
 * holders choose the id on purpose.
 */
const MAX_SAME_ID = 100;

/**
 * Identifies a delegation by its id. If several delegations have this id, `revocationId` selects one; otherwise
 * `revocationId` may be empty.
 */
export interface DelegationKey {
  readonly id: string;
  readonly revocationId: string;
}

interface DelegationLogOptions {
  engine: CryptoEngine;
  store: Store;
  clock: Clock;
  timers: Timers;
  log: Logger;
  /** The revocations that this process has read. */
  state: Pick<RevocationState, "isRevoked" | "isRevokedKey">;
  /** The platform's root keys. A retired root grants nothing. */
  roots: Pick<RootKeys, "retiredIn">;
  /** Reads missing revocations into `state` before a transaction decides; undefined without replicas. */
  reader?: Pick<RevocationReader, "assertCurrent" | "decide"> | undefined;
  /** The lease of the replica that continues unfinished work; undefined without replicas. */
  lease?: WorkLease | undefined;
}

/** The end of a delegation, as its delegatee attested it. */
export interface AttestedEnd extends End {
  /** The delegatee, which signed the attestation. */
  readonly principal: string;
  readonly contractId: string;
}

/** Whether the caller may act for a principal. */
type MayActFor = (principal: string) => boolean;

/** Writes the audit record of a delegation's end, in the transaction that records the end. */
type Note = (tx: WriteTx, delegation: StoredDelegation) => Promise<void>;

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

  /** Continues to mark delegations below revoked blocks, if an earlier process did not finish this work. */
  start(): void {
    const { lease } = this.#options;
    if (lease !== undefined) this.#work.takeOver(lease);
    this.#work.wake();
  }

  async close(): Promise<void> {
    await this.#work.close();
  }

  /**
   * Records a verified chain in the transaction `tx`.
   *
   * @param caller the caller's organization owns the new delegations. If a delegation above the new ones is already
   * recorded, the owner of that delegation owns the new ones. The caller's subject is stored with a new root delegation
   * and all delegations below it
   * @throws DeputeError TOKEN_DENIED if a block of the chain was revoked since the verification, or if the chain's root
   * is retired
   */
  async record(
    tx: WriteTx,
    links: readonly Link[],
    caller: Owned & { readonly subject?: Subject | undefined },
  ): Promise<void> {
    const now = this.#options.clock.now();
    const blocks = links.map(({ block }) => block);
    const ids = blocks.map(({ revocationId }) => revocationId);
    // A revocation marks the recorded delegations below its block only once. A delegation that is recorded later would
    // stay unmarked, so this method refuses it.
    if (await isAnyRevoked(tx, ids)) throw refusedToken({ type: "revoked" });
    await this.#requireRoot(tx, links[0]?.block.signer);
    await recordBlocks(tx, blocks, now);
    await recordLinks(tx, links, caller, now);
  }

  /**
   * Marks the delegations of a revoked block as revoked. With the revocation scope `chain`, also marks all delegations
   * below the block: the first CASCADE_BATCH in `tx`, and the others in the background work.
   */
  async revoke(
    tx: WriteTx,
    { revocationId, scope }: Pick<RevocationEntry, "revocationId" | "scope">,
  ): Promise<void> {
    const now = this.#options.clock.now();
    await revokeDelegations(tx, revocationId, now);
    if (scope !== "chain") return;
    await beginCascade(tx, revocationId);
    if (await continueCascade(tx, CASCADE_BATCH, now)) tx.afterCommit(() => this.#work.wake());
  }

  /**
   * Reads a delegation and its ancestors, root first.
   *
   * @param maySee whether the caller may see a chain with these parties and this owning organization
   * @throws DeputeError DELEGATION_NOT_FOUND, also if the caller may not see the delegation; DELEGATION_AMBIGUOUS
   */
  async chain(
    key: DelegationKey,
    maySee: (parties: readonly string[], organization: string) => boolean,
  ): Promise<StoredDelegation[]> {
    return this.#options.store.read(async (tx) => {
      const chains: StoredDelegation[][] = [];
      for (const { chainId } of await findDelegations(tx, key, MAX_SAME_ID)) {
        const chain = await readChain(tx, chainId);
        const owner = chain.at(-1)?.organization ?? "";
        if (maySee(partiesOf(chain), owner)) chains.push(chain);
      }
      return only(key, chains);
    });
  }

  /**
   * Reads the recorded chain with the id `chainId`, root first. An error names `delegationId`, the id of the chain's
   * last delegation. The method does not check the caller, because the caller has presented the token.
   *
   * @throws DeputeError DELEGATION_NOT_FOUND for a chain that is not recorded
   */
  async chainOf(chainId: string, delegationId: string): Promise<StoredDelegation[]> {
    const chain = await this.#options.store.read((tx) => readChain(tx, chainId));
    if (chain.length > 0) return chain;
    throw notFound(
      { id: delegationId, revocationId: "" },
      "the token is not recorded here; record it with RecordToken",
    );
  }

  /**
   * Reads the recorded delegations of a token's blocks, root first. The list ends before the first block that is not
   * recorded.
   *
   * @param revocationIds the ids of the blocks, root first; at most 64
   */
  async chainOfBlocks(revocationIds: readonly string[]): Promise<StoredDelegation[]> {
    const { engine, store } = this.#options;
    const chainIds: string[] = [];
    for (const id of revocationIds) chainIds.push(chainIdOf(engine, chainIds.at(-1) ?? "", id));
    return store.read(async (tx) => {
      for (const chainId of chainIds.reverse()) {
        const chain = await readChain(tx, chainId);
        if (chain.length > 0) return chain;
      }
      return [];
    });
  }

  async list(filter: DelegationFilter, after: number, limit: number): Promise<StoredDelegation[]> {
    return this.#options.store.read((tx) => listDelegations(tx, filter, after, limit));
  }

  /**
   * Records the end of a delegation, as the delegator reports it.
   *
   * @param mayActFor selects the delegations whose delegator the caller may act for
   * @throws DeputeError DELEGATION_NOT_FOUND, DELEGATION_AMBIGUOUS, DELEGATION_STATE_CONFLICT
   */
  async finish(key: DelegationKey, end: End, mayActFor: MayActFor, by: Finishing): Promise<StoredDelegation> {
    return this.#finish(by, async (tx) => {
      const ownDelegations = (await findDelegations(tx, key, MAX_SAME_ID)).filter(({ from }) =>
        mayActFor(from),
      );
      return { delegation: onlyOne(key, ownDelegations), end };
    });
  }

  /**
   * Records the end of a delegation, as the delegatee's attestation states it. The delegatee's authority must still be
   * valid.
   *
   * @param mayActFor whether the caller may act for the delegator; only then may the caller submit the attestation
   * @throws DeputeError as finish; TOKEN_DENIED, CALLER_NOT_ALLOWED
   */
  async finishAttested(
    key: DelegationKey,
    { principal, contractId, ...end }: AttestedEnd,
    mayActFor: MayActFor,
    by: Finishing,
  ): Promise<StoredDelegation> {
    const find = async (tx: ReadTx) => {
      const ownDelegations = (await findDelegations(tx, key, MAX_SAME_ID)).filter(
        ({ to }) => to === principal,
      );
      if (ownDelegations.length === 0)
        throw notFound(
          key,
          "the attestation's signer is not the delegatee of a delegation with this id; check the id",
        );
      const contractDelegations = ownDelegations.filter((one) => one.contractId === contractId);
      if (contractDelegations.length === 0) throw refusedToken({ type: "contract_mismatch" });
      const delegation = onlyOne(key, contractDelegations);
      if (!mayActFor(delegation.from)) throw onlyByVerifier();
      if (!isEndedBy(delegation, end)) await this.#requireAuthority(tx, delegation);
      return { delegation, end };
    };
    const { reader } = this.#options;
    return reader === undefined ? this.#finish(by, find) : reader.decide(() => this.#finish(by, find));
  }

  /**
   * Requires that the delegatee's authority is neither revoked nor expired.
   *
   * @throws DeputeError TOKEN_DENIED
   */
  async #requireAuthority(tx: ReadTx, { chainId, to }: StoredDelegation): Promise<void> {
    const { state, clock, reader } = this.#options;
    await reader?.assertCurrent(tx);
    const chain = await readChain(tx, chainId);
    await this.#requireRoot(tx, chain[0]?.from);
    const ids = chain.map(({ revocationId }) => revocationId);
    const isGone = state.isRevokedKey(to) || (await isAnyRevoked(tx, ids));
    const isRevoked = (id: string, rightful: readonly string[]) => isGone || state.isRevoked(id, rightful);
    const denial = lapsedAuthority(chain, isRevoked, clock.now());
    if (denial !== undefined) throw refusedToken(denial);
  }

  /** @throws DeputeError TOKEN_DENIED for a retired root */
  async #requireRoot(tx: ReadTx, principal = ""): Promise<void> {
    const retireTime = await this.#options.roots.retiredIn(tx, principal);
    if (retireTime !== undefined) throw refusedToken(rootRetired(retireTime));
  }

  async #finish(
    { note, validateOnly }: Finishing,
    find: (tx: ReadTx) => Promise<{ delegation: StoredDelegation; end: End }>,
  ): Promise<StoredDelegation> {
    const { store, clock } = this.#options;
    if (validateOnly) {
      return store.read(async (tx) => {
        const { delegation, end } = await find(tx);
        isNewEnd(delegation.id, delegation, end);
        return delegation;
      });
    }
    return store.write(async (tx) => {
      const { delegation, end } = await find(tx);
      if (!isNewEnd(delegation.id, delegation, end)) return delegation;
      const endTime = delegation.endTime || clock.now();
      await endDelegation(tx, delegation.position, end, endTime);
      await note(tx, delegation);
      return { ...delegation, ...end, endTime };
    });
  }
}

/** Returns the delegators and delegatees of a chain. */
export function partiesOf(chain: readonly Pick<StoredDelegation, "from" | "to">[]): string[] {
  return chain.flatMap(({ from, to }) => [from, to]);
}

/** How `finish` and `finishAttested` record the end of a delegation. */
export interface Finishing {
  readonly note: Note;
  /** If true, runs every check but changes nothing. */
  readonly validateOnly: boolean;
}

/** Whether the delegation already has this end, by the same attestation. */
function isEndedBy({ state, attestationId }: StoredDelegation, end: End): boolean {
  return state === end.state && attestationId === end.attestationId;
}

function onlyByVerifier(): DeputeError {
  return new DeputeError(
    ErrorReason.CALLER_NOT_ALLOWED,
    "only the delegator or the verifier service may submit an attestation; send it to the CompleteDelegation of the verifier service",
  );
}

function onlyOne(key: DelegationKey, delegations: readonly StoredDelegation[]): StoredDelegation {
  return only(
    key,
    delegations.map((one) => [one]),
  )[0] as StoredDelegation;
}

function only(key: DelegationKey, chains: readonly StoredDelegation[][]): StoredDelegation[] {
  const [chain, ...others] = chains;
  if (chain === undefined)
    throw notFound(key, "the delegation does not exist, or the caller may not see it; check the id");
  if (others.length === 0) return chain;
  const candidates = chains.map((one) => one.at(-1)?.revocationId ?? "").join(",");
  throw new DeputeError(
    ErrorReason.DELEGATION_AMBIGUOUS,
    "several delegations have this id; add the revocation id of the block",
    {
      metadata: { delegation: key.id, candidates },
    },
  );
}

function notFound({ id }: DelegationKey, message: string): DeputeError {
  return new DeputeError(ErrorReason.DELEGATION_NOT_FOUND, message, { metadata: { delegation: id } });
}
