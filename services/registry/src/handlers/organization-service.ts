import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  AdmitMemberResponseSchema,
  ListMembersResponseSchema,
  type Member,
  MemberSchema,
  type OrganizationService,
  RemoveMemberResponseSchema,
} from "@depute/contracts/depute/registry/v1/organization_service_pb";
import { DeputeError, ErrorReason, encodePageToken, invalid, pageSize, toTimestamp } from "@depute/core";
import type { Identity } from "@depute/service";
import type { ReadTx } from "@depute/store";
import { identify, type RegistryContext } from "../context.ts";
import { readPosition } from "../page-position.ts";
import {
  addMember,
  countMembers,
  findMember,
  listMembers,
  removeMember,
  type StoredMember,
} from "../store/members.ts";
import { isMember } from "../store/visibility.ts";
import {
  batchGetAffiliations,
  createOrganizationProof,
  listOrganizationProofs,
  revokeOrganizationProof,
} from "./organization-proofs.ts";
import { purgeOrganization } from "./purge-organization.ts";

const MAX_MEMBERS = 10_000;

export function organizationService(registry: RegistryContext): ServiceImpl<typeof OrganizationService> {
  const { store } = registry;
  return {
    createOrganizationProof: (request, context) => createOrganizationProof(registry, request, context),
    revokeOrganizationProof: (request, context) => revokeOrganizationProof(registry, request, context),
    listOrganizationProofs: (request, context) => listOrganizationProofs(registry, request, context),
    purgeOrganization: (request, context) => purgeOrganization(registry, request, context),
    batchGetAffiliations: (request, context) => batchGetAffiliations(registry, request, context),

    async admitMember({ organization, principal }, context) {
      const identity = await identify(registry, context);
      return store.write(async (tx) => {
        await checkMember(tx, identity, organization);
        const existingMember = await findMember(tx, organization, principal);
        if (existingMember !== undefined)
          return create(AdmitMemberResponseSchema, { member: toMessage(existingMember) });
        if ((await countMembers(tx, organization, MAX_MEMBERS)) >= MAX_MEMBERS) {
          throw new DeputeError(
            ErrorReason.LIMIT_EXCEEDED,
            "the organization has reached the limit of members; remove one first",
            {
              metadata: { limit: "members", max: String(MAX_MEMBERS) },
            },
          );
        }
        const member = { principal, admittedBy: identity.principal, createTime: registry.clock.now() };
        await addMember(tx, organization, member);
        return create(AdmitMemberResponseSchema, { member: toMessage(member) });
      });
    },

    async removeMember({ organization, principal }, context) {
      const identity = await identify(registry, context);
      return store.write(async (tx) => {
        await checkMember(tx, identity, organization);
        if (await isMember(tx, organization, principal)) {
          if ((await countMembers(tx, organization, 2)) < 2) {
            throw invalid("principal", "is the organization's last member");
          }
          await removeMember(tx, organization, principal);
        }
        return create(RemoveMemberResponseSchema);
      });
    },

    async listMembers(request, context: HandlerContext) {
      const identity = await identify(registry, context);
      const { organization } = request;
      const filters = { list: "members", organization };
      const [after] = readPosition(request.pageToken, filters, ["string"]) ?? [""];
      const size = pageSize(request.pageSize);
      const memberRows = await store.read(async (tx) => {
        await checkMember(tx, identity, organization);
        return listMembers(tx, organization, after, size + 1);
      });
      const page = memberRows.slice(0, size);
      const last = page.at(-1)?.principal;
      return create(ListMembersResponseSchema, {
        members: page.map(toMessage),
        nextPageToken: last !== undefined && memberRows.length > size ? encodePageToken([last], filters) : "",
      });
    },
  };
}

/**
 * Requires that the caller is a member of an organization, or `local`.
 *
 * @throws DeputeError CALLER_NOT_ALLOWED, also for an organization without members
 */
async function checkMember(tx: ReadTx, identity: Identity, organization: string): Promise<void> {
  if (identity.local || (await isMember(tx, organization, identity.principal))) return;
  throw new DeputeError(
    ErrorReason.CALLER_NOT_ALLOWED,
    "only members of the organization may make this call",
    {
      violations: [{ field: "organization", description: "the caller is not a member" }],
    },
  );
}

function toMessage({ principal, admittedBy, createTime }: StoredMember): Member {
  return create(MemberSchema, { principal, admittedBy, createTime: toTimestamp(createTime) });
}
