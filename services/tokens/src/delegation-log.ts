import { type Clock, DeputeError, ErrorReason, type Timers } from "@depute/core";
import type { RevocationEntry } from "@depute/dct";
import type { Logger } from "@depute/service";
import type { ReadTx, Store, WriteTx } from "@depute/store";
import { BackgroundWork } from "./background.ts";
import type { RevocationState } from "./revocation-state.ts";
import { type End, ends, type Link, lapsedAuthority } from "./rules/delegations.ts";
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
  /** What is revoked, as this process knows it. */
  state: Pick<RevocationState, "isRevoked" | "isRevokedKey">;
}

/** How a delegatee attests that a delegation ended. */
export interface AttestedEnd extends End {
  /** Who signed. */
  readonly principal: string;
  readonly contractId: string;
}

/** Whom the caller may speak for: the delegator's principal, or anybody's. */
type MayActFor = (principal: string) => boolean;

/** Writes the audit of an end within its transaction. */
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
   * Notes how a delegation ended by the word of its delegator.
   *
   * @param mayActFor which of the delegations with the id the caller can mean
   * @throws DeputeError DELEGATION_NOT_FOUND, DELEGATION_AMBIGUOUS, DELEGATION_STATE_CONFLICT
   */
  async finish(key: DelegationKey, end: End, mayActFor: MayActFor, by: Finishing): Promise<StoredDelegation> {
    return this.#finish(by, async (tx) => {
      const found = (await findDelegations(tx, key, MAX_SAME_ID)).filter(({ from }) => mayActFor(from));
      return { delegation: onlyOne(key, found), end };
    });
  }

  /**
   * Notes how a delegation ended by the word of its delegatee, who may speak while the authority lasts.
   *
   * @param mayActFor whether the caller may hand the attestation in
   * @throws DeputeError as finish; TOKEN_DENIED, CALLER_NOT_ALLOWED
   */
  async finishAttested(
    key: DelegationKey,
    { principal, contractId, ...end }: AttestedEnd,
    mayActFor: MayActFor,
    by: Finishing,
  ): Promise<StoredDelegation> {
    return this.#finish(by, async (tx) => {
      const own = (await findDelegations(tx, key, MAX_SAME_ID)).filter(({ to }) => to === principal);
      if (own.length === 0)
        throw notFound(key, "no delegation of this id was made to the attestation's signer");
      const found = own.filter((one) => one.contractId === contractId);
      if (found.length === 0) throw refusedToken({ type: "contract_mismatch" });
      const delegation = onlyOne(key, found);
      if (!mayActFor(delegation.from)) throw onlyByVerifier();
      if (!isEndedBy(delegation, end)) await this.#requireAuthority(tx, delegation);
      return { delegation, end };
    });
  }

  /** @throws DeputeError TOKEN_DENIED */
  async #requireAuthority(tx: ReadTx, { chainId, to }: StoredDelegation): Promise<void> {
    const { state, clock } = this.#options;
    const chain = await readChain(tx, chainId);
    const ids = chain.map(({ revocationId }) => revocationId);
    const isGone = state.isRevokedKey(to) || (await isAnyRevoked(tx, ids));
    const isRevoked = (id: string, rightful: readonly string[]) => isGone || state.isRevoked(id, rightful);
    const denial = lapsedAuthority(chain, isRevoked, clock.now());
    if (denial !== undefined) throw refusedToken(denial);
  }

  async #finish(
    { note, validateOnly }: Finishing,
    find: (tx: ReadTx) => Promise<{ delegation: StoredDelegation; end: End }>,
  ): Promise<StoredDelegation> {
    const { store, clock } = this.#options;
    if (validateOnly) {
      return store.read(async (tx) => {
        const { delegation, end } = await find(tx);
        ends(delegation.id, delegation, end);
        return delegation;
      });
    }
    return store.write(async (tx) => {
      const { delegation, end } = await find(tx);
      if (!ends(delegation.id, delegation, end)) return delegation;
      const endTime = delegation.endTime || clock.now();
      await endDelegation(tx, delegation.position, end, endTime);
      await note(tx, delegation);
      return { ...delegation, ...end, endTime };
    });
  }
}

/** How an end is noted. */
export interface Finishing {
  readonly note: Note;
  /** Makes every check and changes nothing. */
  readonly validateOnly: boolean;
}

/** Whether this very attestation ended the delegation before. */
function isEndedBy({ state, attestationId }: StoredDelegation, end: End): boolean {
  return state === end.state && attestationId === end.attestationId;
}

function onlyByVerifier(): DeputeError {
  return new DeputeError(
    ErrorReason.CALLER_NOT_ALLOWED,
    "the delegator or the verifier hands an attestation in; send it to CompleteDelegation of the verifier",
  );
}

function onlyOne(key: DelegationKey, found: readonly StoredDelegation[]): StoredDelegation {
  return only(
    key,
    found.map((one) => [one]),
  )[0] as StoredDelegation;
}

function only(key: DelegationKey, chains: readonly StoredDelegation[][]): StoredDelegation[] {
  const [chain, ...others] = chains;
  if (chain === undefined) throw notFound(key, "there is no such delegation");
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

function notFound({ id }: DelegationKey, message: string): DeputeError {
  return new DeputeError(ErrorReason.DELEGATION_NOT_FOUND, message, { metadata: { delegation: id } });
}
