import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { AttestationSchema } from "@depute/contracts/delegateos/v0/attestation_pb";
import { DelegationStatus } from "@depute/contracts/delegateos/v0/delegation_pb";
import {
  type DelegationRecord,
  DelegationRecordSchema,
  type DelegationService,
  type FinishDelegationRequest,
} from "@depute/contracts/depute/tokens/v1/delegation_service_pb";
import {
  DeputeError,
  decodePageToken,
  ErrorReason,
  encodePageToken,
  invalid,
  pageSize,
  toTimestamp,
} from "@depute/core";
import { type Attestation, attestedState, verifyObject } from "@depute/dct";
import { bytesOf, cutPage, type Identity, mayActFor } from "@depute/service";
import type { WriteTx } from "@depute/store";
import { encode } from "@depute/wire";
import type { TokensContext } from "../context.ts";
import type { AttestedEnd, DelegationKey } from "../delegation-log.ts";
import type { DelegationState, End } from "../rules/delegations.ts";
import type { StoredDelegation } from "../store/delegation-rows.ts";
import { explainAuthority } from "./explain-authority.ts";
import { purgeOrganization } from "./purge-organization.ts";

const STATES = {
  active: DelegationStatus.ACTIVE,
  completed: DelegationStatus.COMPLETED,
  failed: DelegationStatus.FAILED,
  revoked: DelegationStatus.REVOKED,
} as const;

/** Handles the calls of DelegationService. */
export function delegationService(tokens: TokensContext): Required<ServiceImpl<typeof DelegationService>> {
  const { delegations, audit } = tokens;
  return {
    async getDelegation(request, context) {
      const chain = await delegations.chain(keyOf(request), isParty(await tokens.identify(context)));
      const delegation = chain.at(-1);
      return delegation === undefined ? {} : { delegation: toRecord(delegation) };
    },

    async getDelegationChain(request, context) {
      const chain = await delegations.chain(keyOf(request), isParty(await tokens.identify(context)));
      return { delegations: chain.map(toRecord) };
    },

    async listDelegations(request, context) {
      const identity = await tokens.identify(context);
      const { principal, contractId, status } = request;
      const principalFilter = principal || (identity.local ? undefined : identity.principal);
      if (principalFilter !== undefined && !mayActFor(identity, principalFilter)) {
        throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "the delegations belong to another principal");
      }
      const filters = { principal: principalFilter, contractId, status };
      const after = Number(decodePageToken(request.pageToken, filters)?.[0] ?? 0);
      const size = pageSize(request.pageSize);
      const filter = {
        principal: principalFilter,
        contractId: contractId || undefined,
        state: stateOf(status),
      };
      const delegationRows = await delegations.list(filter, after, size + 1);
      const records = delegationRows.map((each) => ({ position: each.position, record: toRecord(each) }));
      const { items: page, more } = cutPage(records, size, ({ record }) =>
        bytesOf(DelegationRecordSchema, record),
      );
      const last = more ? page.at(-1) : undefined;
      return {
        delegations: page.map(({ record }) => record),
        nextPageToken: last === undefined ? "" : encodePageToken([last.position], filters),
      };
    },

    purgeOrganization: (request, context) => purgeOrganization(tokens, request, context),

    async explainAuthority(request, context) {
      return explainAuthority(tokens, request, context);
    },

    async finishDelegation(request, context) {
      const identity = await tokens.identify(context);
      const mayAct = (principal: string) => mayActFor(identity, principal);
      const { attested, end } = outcomeOf(tokens, request);
      const note = (tx: WriteTx, { to, revocationId }: StoredDelegation) =>
        audit.write(tx, {
          ...{ kind: "finish", caller: identity.principal, principal: to, decision: "allowed" },
          ...{ reason: end.state, blocks: [revocationId] },
        });
      const by = { note, validateOnly: request.validateOnly };
      const key = keyOf(request);
      const delegation =
        attested === undefined
          ? await delegations.finish(key, end, mayAct, by)
          : await delegations.finishAttested(key, attested, mayAct, by);
      return { delegation: toRecord(delegation) };
    },
  };
}

/**
 * Returns the end of the delegation, as the request states it. If an attestation states the end, `attested` has its
 * facts; otherwise `attested` is undefined.
 */
function outcomeOf(
  tokens: TokensContext,
  { outcome, delegationId }: FinishDelegationRequest,
): { end: End; attested: AttestedEnd | undefined } {
  if (outcome.case === "attestation") {
    const attestation = signedAttestation(tokens, encode(AttestationSchema, outcome.value));
    if (attestation.delegationId !== delegationId) {
      throw invalid("attestation.delegation_id", "belongs to another delegation");
    }
    if (attestation.type !== "completion") throw invalid("attestation.type", "is not a completion");
    const end: End = { state: attestedState(attestation), attestationId: attestation.id };
    const { principal, contractId } = attestation;
    return { end, attested: { ...end, principal, contractId } };
  }
  const result = outcome.value;
  const state = stateOf(result?.status ?? DelegationStatus.UNSPECIFIED);
  if (state === undefined) throw invalid("result.status", "is required");
  return { end: { state, attestationId: result?.attestationId ?? "" }, attested: undefined };
}

/**
 * Verifies the attestation in a request.
 *
 * @throws DeputeError INVALID_REQUEST, SIGNATURE_INVALID
 */
function signedAttestation({ engine }: TokensContext, document: unknown): Attestation {
  const checked = verifyObject(engine, "attestation", document);
  if (checked.ok) return checked.object;
  const { problem, detail } = checked.refusal;
  if (problem === "malformed") throw invalid("attestation", detail);
  throw new DeputeError(ErrorReason.SIGNATURE_INVALID, "the attestation is not signed by its principal", {
    violations: [{ field: "attestation.signature", description: "must be the signature of principal" }],
  });
}

function isParty({ local, principal }: Identity): (parties: readonly string[]) => boolean {
  return (parties) => local || parties.includes(principal);
}

function keyOf({
  delegationId,
  revocationId,
}: {
  delegationId: string;
  revocationId: string;
}): DelegationKey {
  return { id: delegationId, revocationId };
}

function stateOf(status: DelegationStatus): DelegationState | undefined {
  return (Object.keys(STATES) as DelegationState[]).find((state) => STATES[state] === status);
}

function toRecord(delegation: StoredDelegation): DelegationRecord {
  const { state, createTime, expireTime, endTime, rootId, position: _, chainId: __, ...more } = delegation;
  const { from: delegator, to: delegatee, subjectIssuer, subjectId, subjectPrincipal, ...rest } = more;
  return create(DelegationRecordSchema, {
    ...rest,
    delegator,
    delegatee,
    status: STATES[state],
    rootRevocationId: rootId,
    createTime: toTimestamp(createTime),
    expireTime: toTimestamp(expireTime),
    ...(endTime > 0 && { endTime: toTimestamp(endTime) }),
    ...(subjectIssuer !== "" && {
      onBehalfOf: { issuer: subjectIssuer, subject: subjectId, principal: subjectPrincipal },
    }),
  });
}
