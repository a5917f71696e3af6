import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { type CallOptions, type Client, createClient, type Transport } from "@connectrpc/connect";
import {
  DenialReasonSchema,
  DenialType,
  DenialTypeSchema,
} from "@depute/contracts/delegateos/v0/delegation_pb";
import { PolicyService } from "@depute/contracts/depute/registry/v1/policy_service_pb";
import { SpendService } from "@depute/contracts/depute/tokens/v1/spend_service_pb";
import { TokenService } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { type Clock, type DeputeError, decodeBase64Url, reasonName } from "@depute/core";
import type { Authoriser, Grants, Payer, Presented, Reserved, Verdict } from "./authoriser.ts";
import { Recent } from "./recent.ts";
import type { Right } from "./rules/visible.ts";

/**
 * Milliseconds for which the answer whether an agent's manifest allows a tool is cached. A changed manifest therefore
 * takes effect within a second.
 */
const BINDING_MS = 500;
const MAX_BINDINGS = 10_000;
/**
 * Additional lifetime of a reservation in seconds, so that no reservation expires before the longest call is
 * settled.
 */
const RESERVATION_MARGIN_S = 300;

/** Maximum length of the name of a tool call, in characters; see VerifyTokenRequest.tool_call. */
const MAX_TOOL_CALL = 252;

export interface PlatformAuthoriserOptions {
  readonly tokens: Transport;
  readonly registry: Transport;
  readonly clock: Clock;
  /** The name of the MCP server, for the audit log. */
  readonly server: string;
  /** Returns the options of each call, with the proxy's own credentials. */
  callOptions(): CallOptions;
  /** Converts a thrown value to a DeputeError. */
  refusalIn(thrown: unknown): DeputeError;
  /** Maximum duration of a call to the MCP server in milliseconds. Reservations last longer. */
  readonly longestCallMs: number;
}

/** Asks Depute's own services for decisions. */
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
    name: string,
  ): Promise<Verdict> {
    const { result, principal, blocks } = await this.#tokens.verifyToken(
      {
        token: serialized(token),
        ...(proof === undefined
          ? {}
          : { proof: { ...proof, argumentsDigest: decodeBase64Url(digest) ?? new Uint8Array() } }),
        ...(requested !== undefined && { requested }),
        alsoRequested,
        contractId,
        toolCall: `${this.#options.server}/${name}`.slice(0, MAX_TOOL_CALL).toWellFormed(),
      },
      this.#options.callOptions(),
    );
    if (result.case === "scope") {
      const ids = blocks.map(({ revocationId }) => revocationId);
      return { ok: true, principal, scope: result.value, blocks: ids };
    }
    return { ok: false, denial: result.value ?? noReason() };
  }

  async reserve({ token }: Payer, microcents: number, requestId: string): Promise<Reserved> {
    const lifetimeSeconds = Math.ceil(this.#options.longestCallMs / 1000) + RESERVATION_MARGIN_S;
    try {
      const { reservation, remainingMicrocents } = await this.#spend.reserveSpend(
        {
          requestId,
          token: serialized(token),
          amountMicrocents: BigInt(microcents),
          lifetime: durationFromMs(Math.min(lifetimeSeconds, 86_400) * 1000),
        },
        this.#options.callOptions(),
      );
      const reservationId = reservation?.id ?? "";
      return { ok: true, reservationId, remainingMicrocents: Number(remainingMicrocents) };
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
      const { result, delegatee: holder } = await this.#tokens.inspectToken(
        { token: serialized(token) },
        this.#options.callOptions(),
      );
      if (result.case === "scope") return { ok: true, capabilities: result.value.capabilities, holder };
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

  /** Returns the denial that an error contains; undefined if the error is not about the token. */
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

/** Some calls refuse a token with an error reason. This table lists the denial type for each of these reasons. */
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
