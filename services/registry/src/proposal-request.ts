import { fromJson, type JsonObject, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import { durationFromMs, ValueSchema } from "@bufbuild/protobuf/wkt";
import { AgentManifestSchema } from "@depute/contracts/cap/v1/manifest_pb";
import { Role } from "@depute/contracts/depute/rpc/v1/method_options_pb";
import {
  type CreateReviewRequestSchema,
  ReviewKind,
} from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { countJsonValues } from "@depute/service";
import { authorOf } from "./rules/proposal.ts";
import type { StoredProposal } from "./store/proposals.ts";

/**
 * Maximum size of a manifest inside a review: its bytes of JSON, and the number of its values. A review omits a larger
 * manifest.
 */
const MAX_MANIFEST_BYTES = 256 * 1024;
const MAX_MANIFEST_VALUES = 4096;
/** Maximum length of a review's title and subject, in characters. */
const MAX_TITLE = 256;

/**
 * Returns the request for the review of a proposal. The request depends only on stored members, so a retry sends an
 * identical request.
 */
export function reviewRequestOf(
  proposal: StoredProposal,
): MessageInitShape<typeof CreateReviewRequestSchema> {
  const { id, proposer, reviewers, createTime, expireTime } = proposal;
  const { subject, title, content } = describe(proposal);
  return {
    reviewId: id,
    requestId: id,
    kind: ReviewKind.GRANT,
    subject: subject.slice(0, MAX_TITLE),
    title: title.slice(0, MAX_TITLE),
    content: fromJson(ValueSchema, content),
    contentReference: { uri: `depute:registry/proposals/${id}`, mediaType: "application/json" },
    author: authorOf(proposer),
    reviewers: [...reviewers],
    reviewerRoles: [Role.OPERATOR],
    timeout: durationFromMs(expireTime - createTime),
  };
}

/** Returns the subject, title and content that a reviewer reads. */
function describe({ proposer, record }: StoredProposal): {
  subject: string;
  title: string;
  content: JsonObject;
} {
  const { grant, justification, widenings } = record;
  const common = { proposer, justification };
  switch (grant.case) {
    case "organizationProof": {
      const { organization, principal } = grant.value;
      return {
        subject: `organization ${organization}`,
        title: `${principal} acts for the organization ${organization}`,
        content: { grant: "organization_proof", organization, principal, ...common },
      };
    }
    case "authorityGrant": {
      const { authority, principal } = grant.value;
      return {
        subject: `authority ${authority}`,
        title: `${principal} holds the authority ${authority}`,
        content: { grant: "authority_grant", authority, principal, ...common },
      };
    }
    case "manifest": {
      const { agentId, version, manifest } = grant.value;
      const added = widenings.map(({ path, before, after }) => ({ path, before, after }));
      const full = manifest === undefined ? null : toJson(AgentManifestSchema, manifest);
      const bytes = Buffer.from(JSON.stringify(full));
      const isSmall =
        bytes.length <= MAX_MANIFEST_BYTES &&
        countJsonValues(bytes, MAX_MANIFEST_VALUES) <= MAX_MANIFEST_VALUES;
      return {
        subject: `agent ${agentId}`,
        title: `A wider manifest of ${agentId}: ${added.length} more permissions`,
        content: {
          ...{ grant: "manifest", agent_id: agentId, version, ...common, widenings: added },
          ...(isSmall ? { manifest: full } : {}),
        },
      };
    }
    default:
      throw new Error("a proposal proposes a grant");
  }
}
