import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type AuthorityGrant,
  AuthorityGrantSchema,
  type AuthorityService,
  AuthoritySource,
  type CreateAuthorityGrantRequest,
  CreateAuthorityGrantRequestSchema,
  CreateAuthorityGrantResponseSchema,
  DeleteAuthorityGrantRequestSchema,
  DeleteAuthorityGrantResponseSchema,
  ListAuthorityGrantsResponseSchema,
} from "@depute/contracts/depute/registry/v1/authority_service_pb";
import { DeputeError, ErrorReason, encodePageToken, pageSize, toTimestamp } from "@depute/core";
import { type Identity, LOCAL_PRINCIPAL } from "@depute/service";
import { MAX_GRANTS } from "../authorities.ts";
import { identify, type RegistryContext } from "../context.ts";
import { repeatable } from "../idempotency.ts";
import { readPosition } from "../page-position.ts";
import { holdingOf } from "../rules/authority.ts";
import { listGrants, removeGrant, type StoredGrant } from "../store/authorities.ts";

const CREATE = { request: CreateAuthorityGrantRequestSchema, answer: CreateAuthorityGrantResponseSchema };
const DELETE = { request: DeleteAuthorityGrantRequestSchema, answer: DeleteAuthorityGrantResponseSchema };

/** AuthorityService. */
export function authorityService(registry: RegistryContext): ServiceImpl<typeof AuthorityService> {
  const { store, authorities, clock } = registry;

  /**
   * The source of the grants that a caller may make and take back. `local` is everybody on an open loopback, so it is an
   * operator only where the setting names it.
   *
   * @throws DeputeError CALLER_NOT_ALLOWED
   */
  const sourceOf = ({ principal }: Identity, grants: readonly StoredGrant[]): AuthoritySource => {
    if (authorities.operators.includes(principal)) return AuthoritySource.GRANTED;
    const held = principal === LOCAL_PRINCIPAL ? undefined : holdingOf(grants, principal);
    if (held !== undefined) {
      return held.source === AuthoritySource.FIRST ? AuthoritySource.FIRST : AuthoritySource.GRANTED;
    }
    throw new DeputeError(
      ErrorReason.CALLER_NOT_ALLOWED,
      "only an operator (DEPUTE_ASP_AUTHORITY_OPERATORS) or a holder of the authority may do this",
      { violations: [{ field: "authority", description: "the caller does not hold it" }] },
    );
  };

  return {
    async createAuthorityGrant(request, context) {
      const identity = await identify(registry, context);
      const call = repeatable(CREATE, identity.principal, request.requestId, request);
      return store.write(async (tx) => {
        const answered = await call.before(tx);
        if (answered !== undefined) return answered;
        const grants = await listGrants(tx, request.authority, "", MAX_GRANTS);
        const grant = granted(request, grants, identity.principal, sourceOf(identity, grants));
        const stored = "createTime" in grant ? grant : await authorities.add(tx, grants, grant);
        const answer = create(CreateAuthorityGrantResponseSchema, { grant: toMessage(stored) });
        await call.keep(tx, answer, clock.now());
        return answer;
      });
    },

    async deleteAuthorityGrant(request, context) {
      const identity = await identify(registry, context);
      const call = repeatable(DELETE, identity.principal, request.requestId, request);
      return store.write(async (tx) => {
        const answered = await call.before(tx);
        if (answered !== undefined) return answered;
        const { authority, principal } = request;
        const grants = await listGrants(tx, authority, "", MAX_GRANTS);
        const source = sourceOf(identity, grants);
        const grant = grants.find((one) => one.principal === principal);
        const isOperator = authorities.operators.includes(identity.principal);
        if (grant !== undefined && !isOperator && grant.source !== source) {
          throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "only an operator may take this grant back", {
            violations: [{ field: "principal", description: "has its grant from elsewhere" }],
          });
        }
        if (grant !== undefined) await removeGrant(tx, authority, principal);
        const answer = create(DeleteAuthorityGrantResponseSchema);
        await call.keep(tx, answer, clock.now());
        return answer;
      });
    },

    async listAuthorityGrants({ authority, pageSize: wanted, pageToken }, context) {
      const identity = await identify(registry, context);
      const filters = { list: "authority_grants", authority };
      const [after] = readPosition(pageToken, filters, ["string"]) ?? [""];
      const size = pageSize(wanted);
      const found = await store.read(async (tx) => {
        if (!identity.local) sourceOf(identity, await listGrants(tx, authority, "", MAX_GRANTS));
        return listGrants(tx, authority, after, size + 1);
      });
      const page = found.slice(0, size);
      const last = page.at(-1)?.principal;
      return create(ListAuthorityGrantsResponseSchema, {
        grants: page.map(toMessage),
        nextPageToken: last !== undefined && found.length > size ? encodePageToken([last], filters) : "",
      });
    },
  };
}

/** The grant to make, or the one that stays: a holder weakens none, and renews none. */
function granted(
  { authority, principal }: CreateAuthorityGrantRequest,
  grants: readonly StoredGrant[],
  grantedBy: string,
  source: AuthoritySource,
): StoredGrant | Omit<StoredGrant, "createTime"> {
  const known = grants.find((one) => one.principal === principal);
  const stays = known !== undefined && (known.source === source || source !== AuthoritySource.GRANTED);
  return stays ? known : { authority, principal, source, grantedBy };
}

function toMessage({ createTime, ...grant }: StoredGrant): AuthorityGrant {
  return create(AuthorityGrantSchema, { ...grant, createTime: toTimestamp(createTime) });
}
