import { create } from "@bufbuild/protobuf";
import { DelegationStatus } from "@depute/contracts/delegateos/v0/delegation_pb";
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
} from "@depute/contracts/delegateos/v0/jsonrpc_pb";
import {
  type AttestationFinding,
  AttestationStep,
} from "@depute/contracts/depute/verifier/v1/attestation_service_pb";
import { type Clock, invalid } from "@depute/core";
import type { Clients } from "../../src/clients.ts";
import { renameFields } from "../../src/fault.ts";
import type { WireCall } from "../../src/wire-call.ts";
import { delegate } from "./delegate.ts";
import { asDenial } from "./errors.ts";

/** What DelegateOS's methods do, on messages (DelegateOS 9). */
export class DelegateosMethods {
  readonly #clients: Clients;
  readonly #clock: Clock;

  constructor(clients: Clients, clock: Clock) {
    this.#clients = clients;
    this.#clock = clock;
  }

  /** delegateos/delegate (DelegateOS 9.1 to 9.3). */
  delegate(params: DelegateParams, call: WireCall): Promise<DelegateResult> {
    return delegate(this.#clients, this.#clock, params, call);
  }

  /**
   * delegateos/complete (DelegateOS 9.4): records the attestation and verifies it.
   *
   * @throws DeputeError INVALID_REQUEST, SIGNATURE_INVALID, CONTRACT_NOT_FOUND, ATTESTATION_EXISTS, ...
   */
  async complete({ delegationId, attestation }: CompleteParams, call: WireCall): Promise<CompleteResult> {
    if (attestation === undefined) throw new Error("valid parameters have an attestation");
    if (attestation.delegationId !== delegationId) {
      throw invalid("/attestation/delegationId", "is not the delegation that is completed");
    }
    const { attestations } = this.#clients;
    await named(attestations.recordAttestation({ attestation }, call.asCaller));
    const subject = { case: "id", value: attestation.id } as const;
    const { valid, findings } = await attestations.verifyAttestation({ subject }, call.aside);
    const isDone = valid && attestation.result?.success === true;
    const details = detailsOf(findings);
    return create(CompleteResultSchema, {
      delegationId,
      status: isDone ? DelegationStatus.COMPLETED : DelegationStatus.FAILED,
      ...(details === "" ? {} : { details }),
    });
  }

  /**
   * delegateos/revoke (DelegateOS 9.5). The signature in the entry says who revokes.
   *
   * @throws DeputeError SIGNATURE_INVALID, NOT_AUTHORIZED_TO_REVOKE, TOKEN_MALFORMED, ...
   */
  async revoke({ revocation: entry, dct }: RevokeParams, call: WireCall): Promise<RevokeResult> {
    if (entry === undefined) throw new Error("valid parameters have a revocation");
    const token = dct === undefined ? {} : { token: { token: dct, format: "delegateos-sjt-v1" } };
    const { revocation } = await named(
      this.#clients.revocations.revokeToken({ entry, ...token }, call.asCaller),
    );
    return create(RevokeResultSchema, {
      revocationId: entry.revocationId,
      state: revocation === undefined ? RevocationState.PENDING : RevocationState.REVOKED,
      ...(revocation === undefined ? {} : { sequence: revocation.sequence }),
    });
  }
}

/** The faults in what was sent, by the names of the document. */
const NAMES = { attestation: "/attestation", entry: "/revocation", "token.token": "/dct" };

async function named<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (thrown) {
    throw asDenial(renameFields(thrown, NAMES));
  }
}

/** The steps that did not pass, for a person. */
function detailsOf(findings: readonly AttestationFinding[]): string {
  return findings
    .filter(({ passed }) => !passed)
    .map(({ step, details }) => `${stepWord(step)}: ${details}`)
    .join("; ");
}

function stepWord(step: AttestationStep): string {
  const name = Object.entries(AttestationStep).find(([, number]) => number === step)?.[0];
  return (name ?? "step").toLowerCase();
}
