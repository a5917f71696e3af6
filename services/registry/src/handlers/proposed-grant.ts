import { create } from "@bufbuild/protobuf";
import { type Agent, AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import { AuthoritySource } from "@depute/contracts/depute/registry/v1/authority_service_pb";
import {
  type CreateProposalRequest,
  type ProposedAuthority,
  ProposedAuthoritySchema,
  type ProposedManifest,
  type ProposedOrganization,
  ProposedOrganizationSchema,
} from "@depute/contracts/depute/registry/v1/proposal_service_pb";
import { invalid } from "@depute/core";
import type { Identity } from "@depute/service";
import type { WriteTx } from "@depute/store";
import { MAX_GRANTS } from "../authorities.ts";
import { agentNotFound, findCallersAgent, type RegistryContext } from "../context.ts";
import { ownerRecord, type StoredAgent } from "../rules/agent.ts";
import { checkWidenings, type ProposalKind } from "../rules/proposal.ts";
import { baseOf } from "../rules/registration.ts";
import type { Widening } from "../rules/widening.ts";
import { findAgent } from "../store/agents.ts";
import { listGrants } from "../store/authorities.ts";
import { findProofOf } from "../store/proofs.ts";
import { findVersion } from "../store/versions.ts";
import { listWidenings } from "./check-bounds.ts";
import { proveOrganization } from "./organization-proofs.ts";
import {
  checkManifest,
  checkManifestPredicates,
  recordDigestOf,
  storeRegistration,
} from "./register-agent.ts";

/** A proposed grant, in which the registry has replaced an empty principal by the caller's principal. */
export type ProposedGrant = Exclude<CreateProposalRequest["grant"], { case: undefined }>;

/** The facts about a proposed grant that the proposal stores. */
export interface CheckedGrant {
  readonly kind: ProposalKind;
  readonly grant: ProposedGrant;
  /** The permissions that a proposed manifest adds; empty for other grants. */
  readonly widenings: readonly Widening[];
  /** The digest of the agent's record before the proposed manifest; empty for other grants. */
  readonly baseDigest: string;
}

/** Matches an Ed25519 public key in base64url. */
const KEY = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;

/**
 * Checks a proposed grant against the stored records. The grant must not exist yet; a manifest must be valid, and widen
 * the agent's bounds. {@link makeGrant} checks the limits, and repeats the checks whose result can change.
 *
 * @throws DeputeError AGENT_NOT_FOUND, CALLER_NOT_ALLOWED, LIMIT_EXCEEDED, INVALID_REQUEST
 */
export async function checkGrant(
  registry: RegistryContext,
  tx: WriteTx,
  identity: Identity,
  grant: CreateProposalRequest["grant"],
): Promise<CheckedGrant> {
  const none = { widenings: [], baseDigest: "" };
  switch (grant.case) {
    case "organizationProof": {
      const value = await checkOrganization(tx, identity, grant.value);
      return { kind: "organization", grant: { case: grant.case, value }, ...none };
    }
    case "authorityGrant": {
      const value = await checkAuthority(tx, identity, grant.value);
      return { kind: "authority", grant: { case: grant.case, value }, ...none };
    }
    case "manifest":
      return {
        kind: "manifest",
        grant,
        ...(await checkProposedManifest(registry, tx, identity, grant.value)),
      };
    default:
      throw invalid("grant", "is required");
  }
}

/**
 * Makes the grant of an approved proposal, in the name of the reviewer.
 *
 * @param baseDigest the digest of the agent's record at the time of the proposal
 * @throws DeputeError AGENT_NOT_FOUND, INVALID_REQUEST, LIMIT_EXCEEDED; the errors of `storeRegistration`
 */
export async function makeGrant(
  registry: RegistryContext,
  tx: WriteTx,
  { grant, baseDigest }: Pick<CheckedGrant, "grant" | "baseDigest">,
  grantedBy: string,
): Promise<void> {
  const now = registry.clock.now();
  switch (grant.case) {
    case "organizationProof":
      await proveOrganization(tx, grant.value, grantedBy, now);
      return;
    case "authorityGrant": {
      const grants = await listGrants(tx, grant.value.authority, "", MAX_GRANTS);
      const by = { grantedBy, source: AuthoritySource.GRANTED };
      await registry.authorities.grant(tx, grants, grant.value, by);
      return;
    }
    case "manifest": {
      const { agentId } = grant.value;
      const existing = await findAgent(tx, agentId);
      if (existing === undefined || existing.status === AgentStatus.REMOVED) throw agentNotFound(agentId);
      if (existing.digest !== baseDigest) {
        throw invalid("manifest.agent_id", "has changed since the proposal; propose the manifest again");
      }
      const agent = widened(existing, grant.value);
      const digest = recordDigestOf(agent);
      const reviewer: Identity = {
        principal: grantedBy,
        local: false,
        organization: "",
        roles: ["operator"],
      };
      await storeRegistration(registry, tx, reviewer, agent, existing, { digest, isProven: false, now });
    }
  }
}

async function checkOrganization(
  tx: WriteTx,
  identity: Identity,
  { organization, principal: named }: ProposedOrganization,
): Promise<ProposedOrganization> {
  const principal = named || identity.principal;
  if ((await findProofOf(tx, organization, principal)) !== undefined) {
    throw invalid("organization_proof.organization", "is already proven for this principal");
  }
  return create(ProposedOrganizationSchema, { organization, principal });
}

async function checkAuthority(
  tx: WriteTx,
  identity: Identity,
  { authority, principal: named }: ProposedAuthority,
): Promise<ProposedAuthority> {
  const principal = named || identity.principal;
  if (!KEY.test(principal)) {
    throw invalid(
      "authority_grant.principal",
      "is required, because the caller's principal is not an Ed25519 key",
    );
  }
  const grants = await listGrants(tx, authority, "", MAX_GRANTS);
  if (grants.some((one) => one.principal === principal && one.source !== AuthoritySource.FIRST)) {
    throw invalid("authority_grant.authority", "is already granted to this principal");
  }
  return create(ProposedAuthoritySchema, { authority, principal });
}

async function checkProposedManifest(
  registry: RegistryContext,
  tx: WriteTx,
  identity: Identity,
  proposed: ProposedManifest,
): Promise<Pick<CheckedGrant, "widenings" | "baseDigest">> {
  const { agentId, version } = proposed;
  if (baseOf(agentId) !== undefined) {
    throw invalid("manifest.agent_id", "is an instance; propose the manifest of its base agent");
  }
  const existing = await findCallersAgent(tx, identity, agentId, "manifest.agent_id");
  const agent = widened(existing, proposed);
  checkManifestPredicates(registry, agent);
  await checkManifest(tx, agent);
  const widenings = await listWidenings(tx, agent, existing.record);
  if (widenings.length === 0) {
    throw invalid(
      "manifest.manifest",
      "widens no bounds; register the agent with it (AgentService.RegisterAgent)",
    );
  }
  checkWidenings(widenings.length);
  if (version === "" && existing.record.version !== "") {
    throw invalid("manifest.version", "is required, because the agent's record names its version");
  }
  if (version !== "" && (await findVersion(tx, agentId, { version })) !== undefined) {
    throw invalid("manifest.version", "was registered with different content; state a new version");
  }
  return { widenings, baseDigest: existing.digest };
}

/** Returns the agent's record with a proposed manifest and the version that the proposal names. */
function widened({ ownerMembers }: StoredAgent, { manifest, version }: ProposedManifest): Agent {
  return { ...ownerRecord(ownerMembers), version, ...(manifest !== undefined && { manifest }) };
}
