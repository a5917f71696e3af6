import { create } from "@bufbuild/protobuf";
import {
  type CompleteParams,
  type CompleteResult,
  CompleteResultSchema,
  type DelegateParams,
  type DelegateResult,
  RevocationState,
  type RevokeParams,
  type RevokeResult,
  RevokeResultSchema,
} from "@depute/contracts/delegateos/v0/delegateos_jsonrpc_pb";
import { type Clock, invalid } from "@depute/core";
import type { Clients } from "../../edge/clients.ts";
import { renameFields } from "../../edge/fault.ts";
import type { WireCall } from "../../edge/wire-call.ts";
import { delegate } from "./delegate.ts";
import { asDenial } from "./errors.ts";

/** Implements DelegateOS's methods on decoded messages (DelegateOS 9). */
export class DelegateosMethods {
  readonly #clients: Clients;
  readonly #clock: Clock;

  constructor(clients: Clients, clock: Clock) {
    this.#clients = clients;
    this.#clock = clock;
  }

  /** delegateos/delegate (DelegateOS 9.1 to 9.3): creates a task for the work of a contract. */
  delegate(params: DelegateParams, call: WireCall): Promise<DelegateResult> {
    return delegate(this.#clients, this.#clock, params, call);
  }

  /**
   * delegateos/complete (DelegateOS 9.4): completes a delegation and its task. The delegatee's attestation is the
   * proof.
   *
   * @throws DeputeError INVALID_REQUEST; the errors of AttestationService.CompleteDelegation
   */
  async complete(params: CompleteParams, call: WireCall): Promise<CompleteResult> {
    const { delegationId, attestation, revocationId = "", output } = params;
    if (attestation === undefined) throw new Error("valid parameters have an attestation");
    if (attestation.delegationId !== delegationId) {
      throw invalid("/attestation/delegationId", "must be the delegation that the request completes");
    }
    const request = { attestation, revocationId, ...(output !== undefined && { output }) };
    const { status, details } = await withDocumentFields(
      this.#clients.attestations.completeDelegation(request, call.asCaller),
    );
    return create(CompleteResultSchema, { delegationId, status, ...(details !== "" && { details }) });
  }

  /**
   * delegateos/revoke (DelegateOS 9.5): records a revocation. The signature of the entry identifies the revoker.
   *
   * @throws the errors of RevocationService.RevokeToken, such as NOT_AUTHORIZED_TO_REVOKE
   */
  async revoke({ revocation: entry, dct }: RevokeParams, call: WireCall): Promise<RevokeResult> {
    if (entry === undefined) throw new Error("valid parameters have a revocation");
    const token = dct === undefined ? {} : { token: { token: dct, format: "delegateos-sjt-v1" } };
    const { revocation } = await withDocumentFields(
      this.#clients.revocations.revokeToken({ entry, ...token }, call.asCaller),
    );
    return create(RevokeResultSchema, {
      revocationId: entry.revocationId,
      state: revocation === undefined ? RevocationState.PENDING : RevocationState.REVOKED,
      ...(revocation === undefined ? {} : { sequence: revocation.sequence }),
      ...(revocation?.entry === undefined ? {} : { revocation: revocation.entry }),
    });
  }
}

/** For each field name in the service's violations, the path in the client's document. */
const NAMES = { attestation: "/attestation", output: "/output", entry: "/revocation", "token.token": "/dct" };

async function withDocumentFields<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (thrown) {
    throw asDenial(renameFields(thrown, NAMES));
  }
}
