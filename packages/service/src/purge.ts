import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import {
  type Clock,
  canonicalBytes,
  DeputeError,
  ErrorReason,
  type PurgeRule,
  remainingRecords,
} from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";
import type { ReadTx, RequestMemory, Store, WriteTx } from "@depute/store";
import { hasRole, type Identity } from "./authority.ts";

/** Maximum number of deletions and other steps of a call without `max_count`. */
const DEFAULT_COUNT = 100;
/** A service counts at most this many remaining records of one kind. */
export const MAX_COUNTED_REMAINING = 1_000;

/** The request of a purge, with the same members in each service. */
export interface PurgeRequest {
  readonly requestId: string;
  readonly organization: string;
  readonly maxCount: number;
}

/** Counts the records that one call of a purge deletes. Every deletion uses up a part of the call's limit. */
export class PurgeTally {
  readonly #deleted = new Map<string, number>();
  #left: number;
  #isUnfinished = false;

  constructor(limit: number) {
    this.#left = limit;
  }

  /** The number of deletions and other steps that the call may still make; 0 or less means none. */
  get left(): number {
    return this.#left;
  }

  /** Whether further records may remain for a later call. */
  get more(): boolean {
    return this.#isUnfinished || this.#left <= 0;
  }

  /** The numbers of deleted records, by kind. */
  get deleted(): ReadonlyMap<string, number> {
    return this.#deleted;
  }

  get deletedCount(): number {
    return [...this.#deleted.values()].reduce((sum, count) => sum + count, 0);
  }

  /** Counts deleted records of one kind against the limit of the call. */
  count(kind: string, number: number): void {
    if (number === 0) return;
    this.#deleted.set(kind, (this.#deleted.get(kind) ?? 0) + number);
    this.#left -= number;
  }

  /** Counts changes other than deletions against the limit of the call, so that the call stays short. */
  use(number: number): void {
    this.#left -= number;
  }

  /** Counts one step against the limit, and notes that a record remains, which a later call must delete. */
  postpone(): void {
    this.#isUnfinished = true;
    this.#left -= 1;
  }
}

/** The dependencies of {@link purgeOrganization} on a service. */
export interface PurgeOptions<Answer extends DescMessage> {
  readonly store: Store;
  readonly clock: Clock;
  /** Stores the responses of the service, for replays. */
  readonly requests: RequestMemory;
  readonly answer: Answer;
  readonly rules: readonly PurgeRule[];
  /** Principals that the settings name as operators. */
  readonly operators?: readonly string[];
  /** Deletes records within the transaction, while the tally has room. */
  purge(tx: WriteTx, organization: string, tally: PurgeTally): Promise<void>;
  /** Counts the remaining records of an organization, by kind. */
  count(tx: ReadTx, organization: string): Promise<ReadonlyMap<string, number>>;
}

/**
 * Runs one call of a purge in one transaction. A replay gets the response of the first call.
 *
 * @throws DeputeError CALLER_NOT_ALLOWED, REQUEST_ID_REUSED; the errors of `Store.write`
 */
export async function purgeOrganization<Answer extends DescMessage>(
  options: PurgeOptions<Answer>,
  identity: Identity,
  { requestId, organization, maxCount }: PurgeRequest,
): Promise<MessageShape<Answer>> {
  assertOperator(identity, options.operators);
  const { store, clock, requests, answer: schema, rules } = options;
  const content = [schema.typeName, organization, maxCount];
  const key = { caller: identity.principal, requestId, digest: sha256Hex(canonicalBytes(content)) };
  return store.write(async (tx) => {
    const earlier = await requests.find(tx, key);
    if (earlier !== undefined) return fromBinary(schema, earlier);
    const tally = new PurgeTally(maxCount || DEFAULT_COUNT);
    await options.purge(tx, organization, tally);
    const { more, deletedCount } = tally;
    const remaining = more ? [] : remainingRecords(rules, await options.count(tx, organization));
    const answer = create(schema, {
      deleted: [...tally.deleted].map(([kind, count]) => ({ kind, count: BigInt(count) })),
      deletedCount: BigInt(deletedCount),
      more,
      remaining: remaining.map(({ count, ...rest }) => ({ ...rest, ...(count !== undefined && { count }) })),
    } as unknown as MessageInitShape<Answer>);
    await requests.remember(tx, key, toBinary(schema, answer), clock.now());
    return answer;
  });
}

/** @throws DeputeError CALLER_NOT_ALLOWED */
function assertOperator(identity: Identity, operators: readonly string[] = []): void {
  if (identity.local || hasRole(identity, "operator") || operators.includes(identity.principal)) return;
  throw new DeputeError(
    ErrorReason.CALLER_NOT_ALLOWED,
    "only an operator purges an organization; call with the role operator",
    { violations: [{ field: "", description: "the caller is not an operator" }] },
  );
}
