import { create } from "@bufbuild/protobuf";
import { type CallOptions, type Client, createClient, type Transport } from "@connectrpc/connect";
import {
  DenialReasonSchema,
  DenialType,
  DenialTypeSchema,
} from "@depute/contracts/delegateos/v0/delegation_pb";
import { PolicyService } from "@depute/contracts/depute/registry/v1/policy_service_pb";
import { SpendService } from "@depute/contracts/depute/tokens/v1/spend_service_pb";
import { TokenService } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { type Clock, type DeputeError, reasonName } from "@depute/core";
import type { Authoriser, Grants, Presented, Reserved, Verdict } from "./authoriser.ts";
import { Recent } from "./recent.ts";
import type { Right } from "./rules/visible.ts";

/** Milliseconds that a manifest's answer is believed. A narrower manifest binds every call a second after it was stored. */
const BINDING_MS = 500;
const MAX_BINDINGS = 10_000;
/** A reservation outlives the longest call, so that nobody charges it before the proxy has settled it. */
const RESERVATION_MARGIN_S = 300;

export interface PlatformAuthoriserOptions {
  readonly tokens: Transport;
  readonly registry: Transport;
  readonly clock: Clock;
  /** Options of each call: as whom it is made. */
  callOptions(): CallOptions;
  /** The refusal in whatever a call threw. */
  refusalIn(thrown: unknown): DeputeError;
  /** Milliseconds of the longest call. */
  readonly longestCallMs: number;
}

/** Depute's own services decide. */
export class PlatformAuthoriser implements Authoriser {
  readonly #options: PlatformAuthoriserOptions;
  readonly #tokens: Client<typeof TokenService>;
  readonly #spend: Client<typeof SpendService>;
  readonly #policy: Client<typeof PolicyService>;
  readonly #bindings: Recent<boolean>;

  constructor(options: PlatformAuthoriserOptions) {
    this.#options = options;
    this.#tokens = createClient(TokenService, options.tokens);
    this.#spend = createClient(SpendService, options.tokens);
    this.#policy = createClient(PolicyService, options.registry);
    this.#bindings = new Recent({ max: MAX_BINDINGS, ms: BINDING_MS, clock: options.clock });
  }

  async verify(
    { token, proof, contractId }: Presented,
    [requested, ...alsoRequested]: readonly Right[],
    digest: string,
  ): Promise<Verdict> {
    const { result, principal } = await this.#tokens.verifyToken(
      {
        token: serialized(token),
        ...(proof === undefined ? {} : { proof: { ...proof, argumentsDigest: digest } }),
        ...(requested !== undefined && { requested }),
        alsoRequested,
        contractId,
      },
      this.#options.callOptions(),
    );
    if (result.case === "scope") return { ok: true, principal, scope: result.value };
    return { ok: false, denial: result.value ?? noReason() };
  }

  async reserve(token: string, microcents: number, requestId: string): Promise<Reserved> {
    const lifetimeSeconds = Math.ceil(this.#options.longestCallMs / 1000) + RESERVATION_MARGIN_S;
    try {
      const { reservation } = await this.#spend.reserveSpend(
        {
          requestId,
          token: serialized(token),
          amountMicrocents: BigInt(microcents),
          lifetimeSeconds: Math.min(lifetimeSeconds, 86_400),
        },
        this.#options.callOptions(),
      );
      return { ok: true, reservationId: reservation?.id ?? "" };
    } catch (thrown) {
      const denial = this.#denialIn(thrown);
      if (denial === undefined) throw thrown;
      return { ok: false, denial };
    }
  }

  async commit(reservationId: string, microcents: number | undefined): Promise<number> {
    const amount = microcents === undefined ? {} : { amountMicrocents: BigInt(microcents) };
    const { reservation } = await this.#spend.commitSpend(
      { reservationId, ...amount },
      this.#options.callOptions(),
    );
    return Number(reservation?.chargedMicrocents ?? 0n);
  }

  async release(reservationId: string): Promise<void> {
    await this.#spend.releaseSpend({ reservationId }, this.#options.callOptions());
  }

  async grants(token: string): Promise<Grants> {
    try {
      const { result } = await this.#tokens.inspectToken(
        { token: serialized(token) },
        this.#options.callOptions(),
      );
      if (result.case === "scope") return { ok: true, capabilities: result.value.capabilities };
      return { ok: false, denial: result.value ?? noReason() };
    } catch (thrown) {
      const denial = this.#denialIn(thrown);
      if (denial === undefined) throw thrown;
      return { ok: false, denial };
    }
  }

  mayUse(principal: string, serverId: string, tool: string): Promise<boolean> {
    return this.#bindings.get(JSON.stringify([principal, serverId, tool]), async () => {
      const question = { principal, serverId, tool };
      return (await this.#policy.checkToolAccess(question, this.#options.callOptions())).allowed;
    });
  }

  /** The denial in a refusal that is about the token itself. */
  #denialIn(thrown: unknown) {
    const { reason, metadata } = this.#options.refusalIn(thrown);
    const type = DENIALS.get(reasonName(reason));
    if (type === undefined) return undefined;
    const known = DenialTypeSchema.values.find(
      ({ name }) => name === `DENIAL_TYPE_${metadata.denial?.toUpperCase()}`,
    )?.number as DenialType | undefined;
    return create(DenialReasonSchema, { type: known ?? type });
  }
}

/** Refusals of a token by the calls that do not answer with a denial. */
const DENIALS: ReadonlyMap<string, DenialType> = new Map([
  ["BUDGET_EXCEEDED", DenialType.BUDGET_EXCEEDED],
  ["TOKEN_MALFORMED", DenialType.MALFORMED_TOKEN],
  ["TOKEN_DENIED", DenialType.REVOKED],
]);

function serialized(token: string) {
  return { token, format: "delegateos-sjt-v1" };
}

function noReason() {
  return create(DenialReasonSchema, { type: DenialType.INTERNAL_CONTEXT });
}
