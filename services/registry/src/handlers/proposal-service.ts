import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  CreateProposalRequestSchema,
  CreateProposalResponseSchema,
  GetProposalResponseSchema,
  ListProposalsResponseSchema,
  type Proposal,
  ProposalSchema,
  type ProposalService,
  ProposalState,
  ProposedManifestSchema,
  WithdrawProposalResponseSchema,
} from "@depute/contracts/depute/registry/v1/proposal_service_pb";
import {
  DeputeError,
  ErrorReason,
  encodePageToken,
  newId,
  owningOrganization,
  pageSize,
  toTimestamp,
} from "@depute/core";
import { bytesOf, cutPage, hasRole, type Identity, mayActFor } from "@depute/service";
import type { ReadTx } from "@depute/store";
import { identify, type RegistryContext } from "../context.ts";
import { idempotentCall } from "../idempotency.ts";
import { readPosition } from "../page-position.ts";
import { checkRoom, checkWithdrawal, PROPOSAL_KINDS, reviewersOf } from "../rules/proposal.ts";
import {
  countProposals,
  endProposal,
  findProposal,
  insertProposal,
  listProposals,
  purgeProposals,
  type StoredProposal,
} from "../store/proposals.ts";
import { checkGrant } from "./proposed-grant.ts";

const CREATE = { request: CreateProposalRequestSchema, answer: CreateProposalResponseSchema };

/** Handles the calls of ProposalService. */
export function proposalService(registry: RegistryContext): ServiceImpl<typeof ProposalService> {
  const { store, clock, proposals } = registry;
  return {
    async createProposal(request, context) {
      const identity = await identify(registry, context);
      const { principal: proposer } = identity;
      const call = idempotentCall(CREATE, proposer, request.requestId, request);
      return store.write(async (tx) => {
        const earlierAnswer = await call.findAnswer(tx);
        if (earlierAnswer !== undefined) return earlierAnswer;
        const now = clock.now();
        await purgeProposals(tx, now);
        checkRoom(await countProposals(tx, proposer, now));
        const { kind, grant, widenings, baseDigest } = await checkGrant(
          registry,
          tx,
          identity,
          request.grant,
        );
        const { justification } = request;
        const proposal: StoredProposal = {
          ...{ id: newId(now), proposer, organization: owningOrganization(identity, undefined), baseDigest },
          ...{
            state: ProposalState.PENDING,
            createTime: now,
            expireTime: now + proposals.timeoutMs,
            endTime: 0,
          },
          ...{ decidedBy: "", reason: "", reviewers: reviewersOf(kind, proposals.grantors, proposer) },
          owed: "create",
          record: create(ProposalSchema, { grant, justification, widenings: [...widenings] }),
        };
        await insertProposal(tx, proposal);
        const answer = create(CreateProposalResponseSchema, { proposal: toMessage(proposal) });
        await call.storeAnswer(tx, answer, now);
        tx.afterCommit(() => proposals.wake());
        return answer;
      });
    },

    async getProposal({ proposalId: id }, context) {
      const identity = await identify(registry, context);
      const proposal = await store.read((tx) => requireVisible(registry, tx, identity, id));
      return create(GetProposalResponseSchema, { proposal: toMessage(proposal) });
    },

    async listProposals(request, context) {
      const identity = await identify(registry, context);
      const own = seesAll(registry, identity) ? undefined : identity.principal;
      const proposer = request.proposer || own;
      const state = request.state === ProposalState.UNSPECIFIED ? undefined : request.state;
      const filters = { list: "proposals", proposer, state };
      const [before] = readPosition(request.pageToken, filters, ["string"]) ?? [""];
      if (own !== undefined && proposer !== own) return create(ListProposalsResponseSchema);
      const size = pageSize(request.pageSize);
      const rows = await store.read((tx) => listProposals(tx, { proposer, state }, before, size + 1));
      const { items, more } = cutPage(rows.map(toSummary), size, (one) => bytesOf(ProposalSchema, one));
      const last = items.at(-1)?.id;
      return create(ListProposalsResponseSchema, {
        proposals: items,
        nextPageToken: more && last !== undefined ? encodePageToken([last], filters) : "",
      });
    },

    async withdrawProposal({ proposalId: id, reason }, context) {
      const identity = await identify(registry, context);
      return store.write(async (tx) => {
        const proposal = await requireVisible(registry, tx, identity, id);
        if (!checkWithdrawal(proposal, mayActFor(identity, proposal.proposer))) {
          return create(WithdrawProposalResponseSchema, { proposal: toMessage(proposal) });
        }
        const { WITHDRAWN: state } = ProposalState;
        const end = { state, reason, decidedBy: "", endTime: clock.now(), owed: "withdraw" } as const;
        await endProposal(tx, id, end);
        tx.afterCommit(() => proposals.wake());
        return create(WithdrawProposalResponseSchema, { proposal: toMessage({ ...proposal, ...end }) });
      });
    },
  };
}

/**
 * Whether the caller sees the proposals of all principals. This holds for `local`, for operators, and for principals
 * that may make at least one kind of grant.
 */
function seesAll({ proposals: { grantors } }: RegistryContext, identity: Identity): boolean {
  const { local, principal } = identity;
  const isNamed = PROPOSAL_KINDS.some((kind) => grantors[kind].includes(principal));
  return local || hasRole(identity, "operator") || isNamed;
}

/**
 * Finds a proposal that the caller may see.
 *
 * @throws DeputeError PROPOSAL_NOT_FOUND, also for a proposal that the caller may not see
 */
async function requireVisible(
  registry: RegistryContext,
  tx: ReadTx,
  identity: Identity,
  id: string,
): Promise<StoredProposal> {
  const proposal = await findProposal(tx, id);
  const isVisible = proposal?.proposer === identity.principal || seesAll(registry, identity);
  if (proposal !== undefined && isVisible) return proposal;
  throw new DeputeError(ErrorReason.PROPOSAL_NOT_FOUND, "the proposal does not exist; check the id", {
    metadata: { proposal: id },
  });
}

/** Converts a proposal to its message for a list. Omits the content and the widenings of a proposed manifest. */
function toSummary(proposal: StoredProposal): Proposal {
  const message = toMessage(proposal);
  const { grant } = message;
  if (grant.case !== "manifest") return message;
  const { agentId, version } = grant.value;
  const value = create(ProposedManifestSchema, { agentId, version });
  return { ...message, grant: { case: "manifest", value }, widenings: [] };
}

function toMessage({ record, ...proposal }: StoredProposal): Proposal {
  const { id, state, proposer, organization, decidedBy, reason, endTime } = proposal;
  return create(ProposalSchema, {
    ...record,
    ...{ id, state, proposer, organization, decidedBy, reason },
    createTime: toTimestamp(proposal.createTime),
    expireTime: toTimestamp(proposal.expireTime),
    ...(endTime > 0 && { endTime: toTimestamp(endTime) }),
  });
}
