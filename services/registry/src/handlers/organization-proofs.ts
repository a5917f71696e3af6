import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  AffiliationSchema,
  type BatchGetAffiliationsRequest,
  type BatchGetAffiliationsResponse,
  BatchGetAffiliationsResponseSchema,
  type CreateOrganizationProofRequest,
  CreateOrganizationProofRequestSchema,
  type CreateOrganizationProofResponse,
  CreateOrganizationProofResponseSchema,
  type ListOrganizationProofsRequest,
  type ListOrganizationProofsResponse,
  ListOrganizationProofsResponseSchema,
  type OrganizationProof,
  OrganizationProofSchema,
  type RevokeOrganizationProofRequest,
  RevokeOrganizationProofRequestSchema,
  type RevokeOrganizationProofResponse,
  RevokeOrganizationProofResponseSchema,
} from "@depute/contracts/depute/registry/v1/organization_service_pb";
import {
  type Affiliation,
  DeputeError,
  ErrorReason,
  encodePageToken,
  newId,
  pageSize,
  toTimestamp,
} from "@depute/core";
import { bytesOf, cutPage, hasRole, type Identity } from "@depute/service";
import type { ReadTx, WriteTx } from "@depute/store";
import { identify, type RegistryContext, viewerFor } from "../context.ts";
import { idempotentCall } from "../idempotency.ts";
import { readPosition } from "../page-position.ts";
import type { StoredAgent } from "../rules/agent.ts";
import { baseOf } from "../rules/registration.ts";
import { findVisible } from "../store/agents.ts";
import { addMember, findMember, removeAdmittedBy, removeMembers, replaceMember } from "../store/members.ts";
import {
  addProof,
  countProofs,
  endProof,
  findProof,
  findProofOf,
  listProofs,
  provenOrganizations,
  type StoredProof,
  wasProven,
} from "../store/proofs.ts";

/** Maximum number of proofs in force of one organization. */
const MAX_PROOFS = 10_000;
/** Maximum number of organizations of one principal. */
const MAX_ORGANIZATIONS = 16;

const CREATE = {
  request: CreateOrganizationProofRequestSchema,
  answer: CreateOrganizationProofResponseSchema,
};
const REVOKE = {
  request: RevokeOrganizationProofRequestSchema,
  answer: RevokeOrganizationProofResponseSchema,
};

/** Implements OrganizationService.CreateOrganizationProof. */
export async function createOrganizationProof(
  registry: RegistryContext,
  request: CreateOrganizationProofRequest,
  context: HandlerContext,
): Promise<CreateOrganizationProofResponse> {
  const identity = await identify(registry, context);
  checkOperator(registry, identity);
  const { organization, principal } = request;
  const call = idempotentCall(CREATE, identity.principal, request.requestId, request);
  return registry.store.write(async (tx) => {
    const earlierAnswer = await call.findAnswer(tx);
    if (earlierAnswer !== undefined) return earlierAnswer;
    const now = registry.clock.now();
    const proof = await proveOrganization(tx, { organization, principal }, identity.principal, now);
    const answer = create(CreateOrganizationProofResponseSchema, { proof: toMessage(proof) });
    await call.storeAnswer(tx, answer, now);
    return answer;
  });
}

/**
 * Returns the principal's proof in force for an organization, or adds such a proof.
 *
 * @param provenBy the operator's principal
 * @throws DeputeError LIMIT_EXCEEDED
 */
export async function proveOrganization(
  tx: WriteTx,
  { organization, principal }: { readonly organization: string; readonly principal: string },
  provenBy: string,
  now: number,
): Promise<StoredProof> {
  const inForce = await findProofOf(tx, organization, principal);
  if (inForce !== undefined) return inForce;
  await checkRoom(tx, organization, principal);
  const proof = newProof(organization, principal, provenBy, now);
  await makeMember(tx, proof);
  await addProof(tx, proof);
  return proof;
}

/** Implements OrganizationService.RevokeOrganizationProof. */
export async function revokeOrganizationProof(
  registry: RegistryContext,
  request: RevokeOrganizationProofRequest,
  context: HandlerContext,
): Promise<RevokeOrganizationProofResponse> {
  const identity = await identify(registry, context);
  checkOperator(registry, identity);
  const { proofId: id } = request;
  const call = idempotentCall(REVOKE, identity.principal, request.requestId, request);
  return registry.store.write(async (tx) => {
    const earlierAnswer = await call.findAnswer(tx);
    if (earlierAnswer !== undefined) return earlierAnswer;
    const now = registry.clock.now();
    const proof = await findProof(tx, id);
    if (proof === undefined) {
      throw new DeputeError(
        ErrorReason.ORGANIZATION_PROOF_NOT_FOUND,
        "the organization proof does not exist; check the id",
        {
          metadata: { proof: id },
        },
      );
    }
    if (proof.revokeTime === undefined) {
      await endProof(tx, id, identity.principal, now);
      await removeAdmittedBy(tx, proof.organization, proof.principal);
    }
    const ended = { ...proof, revokeTime: now, revokedBy: identity.principal };
    const answer = create(RevokeOrganizationProofResponseSchema, {
      proof: toMessage(proof.revokeTime === undefined ? ended : proof),
    });
    await call.storeAnswer(tx, answer, now);
    return answer;
  });
}

/** Implements OrganizationService.ListOrganizationProofs. */
export async function listOrganizationProofs(
  registry: RegistryContext,
  request: ListOrganizationProofsRequest,
  context: HandlerContext,
): Promise<ListOrganizationProofsResponse> {
  await identify(registry, context);
  const { organization, principal, includeRevoked } = request;
  const filters = { list: "organization-proofs", organization, principal, includeRevoked };
  const [before] = readPosition(request.pageToken, filters, ["string"]) ?? [""];
  const size = pageSize(request.pageSize);
  const rows = await registry.store.read((tx) =>
    listProofs(tx, { organization, principal, includeRevoked }, before, size + 1),
  );
  const proofMessages = rows.map(toMessage);
  const { items: proofs, more } = cutPage(proofMessages, size, (proof) =>
    bytesOf(OrganizationProofSchema, proof),
  );
  const last = proofs.at(-1)?.id;
  return create(ListOrganizationProofsResponseSchema, {
    proofs,
    nextPageToken: more && last !== undefined ? encodePageToken([last], filters) : "",
  });
}

/** Implements OrganizationService.BatchGetAffiliations. */
export async function batchGetAffiliations(
  registry: RegistryContext,
  { agentIds }: BatchGetAffiliationsRequest,
  context: HandlerContext,
): Promise<BatchGetAffiliationsResponse> {
  const viewer = viewerFor(await identify(registry, context), "");
  const affiliations = await registry.store.read(async (tx) => {
    const proven: Affiliation[] = [];
    for (const agentId of agentIds) {
      const agent = await findVisible(tx, baseOf(agentId) ?? agentId, viewer);
      if (agent !== undefined) proven.push(await affiliationOf(tx, agent, agentId));
    }
    return proven;
  });
  return create(BatchGetAffiliationsResponseSchema, {
    affiliations: affiliations.map(({ agentId, principal, organizations }) =>
      create(AffiliationSchema, { agentId, principal, organizations: [...organizations] }),
    ),
  });
}

/** Returns the facts that decide whether one agent is independent of another. */
export async function affiliationOf(
  tx: ReadTx,
  { record: { principal } }: StoredAgent,
  agentId: string,
): Promise<Affiliation> {
  return { agentId, principal, organizations: await provenOrganizations(tx, principal) };
}

/**
 * Moves a replaced key's proofs in force, and the memberships in the proofs' organizations, to the new key. The
 * replaced key keeps no proof, because only an operator may add a key to an organization's proven keys. If the new key
 * has the maximum number of proofs, it gets no further proof.
 */
export async function moveProofs(
  tx: WriteTx,
  replaced: string,
  principal: string,
  now: number,
): Promise<void> {
  const filter = { organization: "", principal: replaced, includeRevoked: false };
  for (const { id, organization, provenBy } of await listProofs(tx, filter, "", MAX_ORGANIZATIONS)) {
    await endProof(tx, id, principal, now);
    const provenIds = await provenOrganizations(tx, principal);
    if (!provenIds.includes(organization) && provenIds.length < MAX_ORGANIZATIONS) {
      await addProof(tx, newProof(organization, principal, provenBy, now));
    }
    await replaceMember(tx, organization, replaced, { principal, admittedBy: provenBy, createTime: now });
  }
}

/**
 * Requires that the caller may prove organizations.
 *
 * @throws DeputeError CALLER_NOT_ALLOWED
 */
function checkOperator({ trustOperators, localProves }: RegistryContext, identity: Identity): void {
  if (hasRole(identity, "operator") || trustOperators.includes(identity.principal)) return;
  if (identity.local && localProves) return;
  throw new DeputeError(
    ErrorReason.CALLER_NOT_ALLOWED,
    "only an operator may prove organizations: call with the role operator, or as a principal of DEPUTE_TRUST_OPERATORS, or propose the proof (ProposalService.CreateProposal)",
    { violations: [{ field: "", description: "the caller is not an operator" }] },
  );
}

/**
 * Requires that the organization and the principal are below their maximum number of proofs.
 *
 * @throws DeputeError LIMIT_EXCEEDED
 */
async function checkRoom(tx: ReadTx, organization: string, principal: string): Promise<void> {
  if ((await countProofs(tx, organization, MAX_PROOFS)) >= MAX_PROOFS) {
    throw tooMany("organization_proofs", MAX_PROOFS);
  }
  if ((await provenOrganizations(tx, principal)).length >= MAX_ORGANIZATIONS) {
    throw tooMany("organizations_of_principal", MAX_ORGANIZATIONS);
  }
}

function tooMany(limit: string, max: number): DeputeError {
  return new DeputeError(ErrorReason.LIMIT_EXCEEDED, `${max} proofs are in force: revoke one first`, {
    metadata: { limit, max: String(max) },
  });
}

/**
 * Makes the proof's principal a member of the organization. The organization's first proof removes the earlier members,
 * unless the proof's principal founded the organization.
 */
async function makeMember(tx: WriteTx, proof: StoredProof): Promise<void> {
  const { organization, principal, provenBy, createTime } = proof;
  const member = await findMember(tx, organization, principal);
  const isFounder = member?.admittedBy === principal;
  const isFirst = !(await wasProven(tx, organization));
  if (isFirst && !isFounder) await removeMembers(tx, organization);
  if (member !== undefined && (isFounder || !isFirst)) return;
  await addMember(tx, organization, { principal, admittedBy: provenBy, createTime });
}

function newProof(
  organization: string,
  principal: string,
  provenBy: string,
  createTime: number,
): StoredProof {
  return {
    id: newId(createTime),
    organization,
    principal,
    provenBy,
    createTime,
    revokeTime: undefined,
    revokedBy: "",
  };
}

function toMessage(proof: StoredProof): OrganizationProof {
  const { id, organization, principal, provenBy, createTime, revokeTime, revokedBy } = proof;
  const message = create(OrganizationProofSchema, { id, organization, principal, provenBy, revokedBy });
  message.createTime = toTimestamp(createTime);
  if (revokeTime !== undefined) message.revokeTime = toTimestamp(revokeTime);
  return message;
}
