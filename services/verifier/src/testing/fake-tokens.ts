import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { RevocationEntrySchema } from "@depute/contracts/delegateos/v0/revocation_pb";
import {
  type DelegationRecordSchema,
  DelegationService,
} from "@depute/contracts/depute/tokens/v1/delegation_service_pb";
import {
  RevocationSchema,
  RevocationService,
} from "@depute/contracts/depute/tokens/v1/revocation_service_pb";
import { SpendService } from "@depute/contracts/depute/tokens/v1/spend_service_pb";
import {
  InspectTokenResponseSchema,
  TokenService,
} from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { type Clock, DeputeError, ErrorReason, toTimestamp } from "@depute/core";
import {
  type CreateParams,
  createToken,
  generateKeypair,
  parseToken,
  type RevocationEntry,
  RevocationList,
  revocationIds,
  type SerializedDCT,
  SJT_FORMAT,
  serialiseToken,
  verifyToken,
} from "@depute/dct";
import { defineService } from "@depute/service";
import { decode } from "@depute/wire";
import { engine } from "./contracts.ts";

/** A reservation in microcents; `charged` is undefined until a call settles the reservation. */
export interface Reserved {
  id: string;
  amount: number;
  charged: number | undefined;
}

/** A fake tokens service with a root key and a log of revocations. It verifies tokens with @depute/dct. */
export function fakeTokens() {
  const root = generateKeypair(engine);
  const log: MessageInitShape<typeof RevocationSchema>[] = [];
  const list = new RevocationList(engine);
  const recorded = new Map<string, MessageInitShape<typeof DelegationRecordSchema>>();
  const reservations: Reserved[] = [];
  let budget = Number.MAX_SAFE_INTEGER;
  let losesCommits = false;
  let retireTime: number | undefined;
  let wake: () => void = () => {};
  let clock: Clock = { now: () => 0, monotonic: () => 0 };

  const module = defineService({
    name: "tokens",
    settings: {},
    descriptors: [TokenService, DelegationService, RevocationService, SpendService],
    async start(deps) {
      clock = deps.clock;
      return {
        routes(router) {
          router.service(TokenService, {
            getIssuer: () => {
              const principal = root.principal.id;
              if (retireTime === undefined) return { principal, trustedRoots: [principal] };
              return { retiredRoots: [{ principal, retireTime: toTimestamp(retireTime) }] };
            },
            inspectToken({ token, contractId }) {
              const result = verifyToken(
                engine,
                { token: token?.token ?? "", format: SJT_FORMAT },
                {
                  trustedRoots: new Set([root.principal.id]),
                  revocations: list,
                  now: clock.now(),
                  spentMicrocents: 0,
                  holder: "bearer",
                  ...(contractId !== "" && { contractId }),
                },
              );
              if (!result.ok) {
                const denial = { type: DenialType.CONTRACT_MISMATCH };
                return create(InspectTokenResponseSchema, { result: { case: "denial", value: denial } });
              }
              return create(InspectTokenResponseSchema, {
                delegatee: result.scope.holder,
                result: { case: "scope", value: {} },
              });
            },
          });
          router.service(DelegationService, {
            getDelegation({ delegationId }) {
              const delegation = recorded.get(delegationId);
              if (delegation !== undefined) return { delegation };
              throw DeputeError.received(ErrorReason.DELEGATION_NOT_FOUND, "no such delegation");
            },
            getDelegationChain({ delegationId, revocationId }) {
              const delegation = recorded.get(delegationId);
              const isMeant = revocationId === "" || delegation?.revocationId === revocationId;
              if (delegation !== undefined && isMeant) return { delegations: [delegation] };
              throw DeputeError.received(ErrorReason.DELEGATION_NOT_FOUND, "no such delegation");
            },
          });
          router.service(SpendService, {
            reserveSpend({ amountMicrocents }) {
              const amount = Number(amountMicrocents);
              const reserved = reservations.reduce((sum, each) => sum + (each.charged ?? each.amount), 0);
              if (reserved + amount > budget) {
                throw DeputeError.received(ErrorReason.BUDGET_EXCEEDED, "not that much is left");
              }
              const id = crypto.randomUUID();
              reservations.push({ id, amount, charged: undefined });
              return { reservation: { id } };
            },
            commitSpend({ reservationId, amountMicrocents }) {
              if (losesCommits) throw DeputeError.received(ErrorReason.DEPENDENCY_UNAVAILABLE, "not now");
              const reserved = reservations.find(({ id }) => id === reservationId);
              if (reserved === undefined)
                throw DeputeError.received(ErrorReason.RESERVATION_NOT_FOUND, "none");
              reserved.charged = amountMicrocents === undefined ? reserved.amount : Number(amountMicrocents);
              return {};
            },
          });
          router.service(RevocationService, {
            listRevocations: ({ afterSequence }) => ({
              revocations: log.slice(Number(afterSequence)),
              lastSequence: BigInt(log.length),
            }),
            async *watchRevocations({ afterSequence }, { signal }) {
              for (let at = Number(afterSequence); !signal.aborted; ) {
                const revocation = log[at];
                if (revocation !== undefined) {
                  at += 1;
                  yield { revocation };
                  continue;
                }
                await new Promise<void>((resolve) => {
                  wake = resolve;
                  signal.addEventListener("abort", () => resolve(), { once: true });
                });
              }
            },
          });
        },
        async close() {},
      };
    },
  });
  return {
    module,
    root: root.principal.id,
    /** The reservations so far, each with its charge. */
    reservations,
    /**
     * Sets the budget of all tokens, and deletes the reservations. With `loses`, every call that commits a reservation
     * fails.
     */
    setSpend(limit: number, loses = false) {
      reservations.length = 0;
      budget = limit;
      losesCommits = loses;
    },
    mint(params: CreateParams): SerializedDCT {
      return serialiseToken(createToken(engine, params, root, { now: clock.now() }));
    },
    /** Retires the root from a time on, in epoch milliseconds; undefined makes the root trusted again. */
    retire(time: number | undefined) {
      retireTime = time;
    },
    /** Records the delegation of a root token. */
    record(token: SerializedDCT) {
      const parsed = parseToken(token);
      if (!parsed.ok) throw new Error("no token");
      const { issuer, delegationId, delegatee, contractId, expiresAt } = parsed.token.authority;
      recorded.set(delegationId, {
        id: delegationId,
        delegator: issuer,
        delegatee,
        contractId,
        revocationId: revocationIds(engine, parsed.token)[0] ?? "",
        expireTime: toTimestamp(Date.parse(expiresAt)),
        createTime: toTimestamp(clock.now()),
      });
    },
    revoke(entry: RevocationEntry) {
      const decoded = decode(RevocationEntrySchema, entry);
      if (!decoded.ok) throw new Error(decoded.error.message);
      list.add(entry);
      log.push(
        create(RevocationSchema, {
          sequence: BigInt(log.length + 1),
          entry: decoded.message,
          recordTime: toTimestamp(clock.now()),
        }),
      );
      wake();
    },
  };
}

export type FakeTokens = ReturnType<typeof fakeTokens>;
