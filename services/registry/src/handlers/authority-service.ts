import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type AuthorityGrant,
  AuthorityGrantSchema,
  type AuthorityService,
  AuthoritySource,
  CreateAuthorityGrantRequestSchema,
  CreateAuthorityGrantResponseSchema,
  DeleteAuthorityGrantRequestSchema,
  DeleteAuthorityGrantResponseSchema,
  ListAuthorityGrantsResponseSchema,
} from "@depute/contracts/depute/registry/v1/authority_service_pb";
import { DeputeError, ErrorReason, encodePageToken, pageSize, toTimestamp } from "@depute/core";
import { hasRole, type Identity, LOCAL_PRINCIPAL } from "@depute/service";
import { MAX_GRANTS } from "../authorities.ts";
import { identify, type RegistryContext } from "../context.ts";
import { idempotentCall } from "../idempotency.ts";
import { readPosition } from "../page-position.ts";
import { findGrant } from "../rules/authority.ts";
import { listGrants, removeGrant, type StoredGrant } from "../store/authorities.ts";

const CREATE = { request: CreateAuthorityGrantRequestSchema, answer: CreateAuthorityGrantResponseSchema };
const DELETE = { request: DeleteAuthorityGrantRequestSchema, answer: DeleteAuthorityGrantResponseSchema };

/** Handles the calls of AuthorityService. */
export function authorityService(registry: RegistryContext): ServiceImpl<typeof AuthorityService> {
  const { store, authorities, clock } = registry;

  const isOperator = (identity: Identity) =>
    hasRole(identity, "operator") || authorities.operators.includes(identity.principal);

  /**
   * Returns the source of the grants that a caller creates. A caller that is not an operator may delete only grants
   * of this source. On an open loopback every caller is `local`, so `local` is an operator only if the setting
   * `asp-authority-operators` lists it.
   *
   * @throws DeputeError CALLER_NOT_ALLOWED
   */
  const sourceOf = (identity: Identity, grants: readonly StoredGrant[]): AuthoritySource => {
    const { principal } = identity;
    if (isOperator(identity)) return AuthoritySource.GRANTED;
    const ownGrant = principal === LOCAL_PRINCIPAL ? undefined : findGrant(grants, principal);
    if (ownGrant !== undefined) {
      return ownGrant.source === AuthoritySource.FIRST ? AuthoritySource.FIRST : AuthoritySource.GRANTED;
    }
    throw new DeputeError(
      ErrorReason.CALLER_NOT_ALLOWED,
      "only an operator (the role, or DEPUTE_ASP_AUTHORITY_OPERATORS) or a holder of the authority may do this; others propose the grant (ProposalService.CreateProposal)",
      { violations: [{ field: "authority", description: "the caller does not hold the authority" }] },
    );
  };

  return {
    async createAuthorityGrant(request, context) {
      const identity = await identify(registry, context);
      const call = idempotentCall(CREATE, identity.principal, request.requestId, request);
      return store.write(async (tx) => {
        const earlierAnswer = await call.findAnswer(tx);
        if (earlierAnswer !== undefined) return earlierAnswer;
        const grants = await listGrants(tx, request.authority, "", MAX_GRANTS);
        const stored = await authorities.grant(tx, grants, request, {
          grantedBy: identity.principal,
          source: sourceOf(identity, grants),
        });
        const answer = create(CreateAuthorityGrantResponseSchema, { grant: toMessage(stored) });
        await call.storeAnswer(tx, answer, clock.now());
        return answer;
      });
    },

    async deleteAuthorityGrant(request, context) {
      const identity = await identify(registry, context);
      const call = idempotentCall(DELETE, identity.principal, request.requestId, request);
      return store.write(async (tx) => {
        const earlierAnswer = await call.findAnswer(tx);
        if (earlierAnswer !== undefined) return earlierAnswer;
        const { authority, principal } = request;
        const grants = await listGrants(tx, authority, "", MAX_GRANTS);
        const source = sourceOf(identity, grants);
        const grant = grants.find((one) => one.principal === principal);
        if (grant !== undefined && !isOperator(identity) && grant.source !== source) {
          throw new DeputeError(
            ErrorReason.CALLER_NOT_ALLOWED,
            "only an operator may delete a grant from another source",
            {
              violations: [{ field: "principal", description: "has a grant from another source" }],
            },
          );
        }
        if (grant !== undefined) await removeGrant(tx, authority, principal);
        const answer = create(DeleteAuthorityGrantResponseSchema);
        await call.storeAnswer(tx, answer, clock.now());
        return answer;
      });
    },

    async listAuthorityGrants({ authority, pageSize: requestedSize, pageToken }, context) {
      const identity = await identify(registry, context);
      const filters = { list: "authority_grants", authority };
      const [after] = readPosition(pageToken, filters, ["string"]) ?? [""];
      const size = pageSize(requestedSize);
      const storedAuthority = await store.read(async (tx) => {
        if (!identity.local) sourceOf(identity, await listGrants(tx, authority, "", MAX_GRANTS));
        return listGrants(tx, authority, after, size + 1);
      });
      const page = storedAuthority.slice(0, size);
      const last = page.at(-1)?.principal;
      return create(ListAuthorityGrantsResponseSchema, {
        grants: page.map(toMessage),
        nextPageToken:
          last !== undefined && storedAuthority.length > size ? encodePageToken([last], filters) : "",
      });
    },
  };
}

function toMessage({ createTime, ...grant }: StoredGrant): AuthorityGrant {
  return create(AuthorityGrantSchema, { ...grant, createTime: toTimestamp(createTime) });
}
