import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import type {
  ExplainAuthorityRequest,
  ExplainAuthorityResponseSchema,
} from "@depute/contracts/depute/tokens/v1/authority_explanation_pb";
import { canonicalJson, DeputeError, ErrorReason, fromTimestamp } from "@depute/core";
import {
  type AuthorityStatement,
  formatTime,
  MAX_AUTHORITY_BUNDLE,
  type RevocationEntry,
  signAuthorityBundle,
} from "@depute/dct";
import { ownOptions } from "@depute/service";
import type { ReadTx } from "@depute/store";
import { isAuditor, type TokensContext } from "../context.ts";
import type { AuditEntry } from "../rules/audit-record.ts";
import { type ExplainedLink, statedBlocks, toExplanation } from "../rules/explanation.ts";
import { idBefore, readDecisions } from "../store/audit-rows.ts";
import { readBlocks, type StoredDelegation } from "../store/delegation-rows.ts";
import { findKeyRevocations, findRevocationsOf } from "../store/revocation-rows.ts";
import { findSubject } from "./explained-subject.ts";

/** Maximum number of revocations in one bundle. A block has at most one for each rightful revoker and scope. */
const MAX_REVOCATIONS = 256;
/** Maximum number of decisions that one call examines (MAX_EXAMINED), and that one bundle contains (MAX_AUDITED). */
const MAX_EXAMINED = 2_000;
const MAX_AUDITED = 200;

/** Implements DelegationService.ExplainAuthority. */
export async function explainAuthority(
  tokens: TokensContext,
  request: ExplainAuthorityRequest,
  context: HandlerContext,
): Promise<MessageInitShape<typeof ExplainAuthorityResponseSchema>> {
  const identity = await tokens.identify(context);
  const { engine, clock, roots, store } = tokens;
  const subject = await findSubject(tokens, request, identity, ownOptions(context, clock));
  const { receipt, toolCall, records } = subject;
  const now = clock.now();
  const then = request.time === undefined ? (subject.time ?? now) : fromTimestamp(request.time);
  const checkpoint = await tokens.checkpoint();
  const { links, revocations, audit } = await store.read(async (tx) => ({
    ...(await explainedLinks(tokens, tx, subject.chain)),
    audit: isAuditor(tokens, identity) ? (records ?? (await auditOf(tx, subject.chain))) : undefined,
  }));
  const blocks = statedBlocks(links, then, now);
  const { subjectIssuer = "", subjectId = "", subjectPrincipal = "" } = subject.chain[0] ?? {};
  const statement: AuthorityStatement = {
    kind: subject.kind,
    subjectId: subject.id,
    principal: subject.chain.at(-1)?.to ?? subject.principal ?? "",
    ...(subjectIssuer !== "" && {
      onBehalfOf: { issuer: subjectIssuer, subject: subjectId, principal: subjectPrincipal },
    }),
    blocks,
    time: formatTime(then),
    explainTime: formatTime(now),
    validThen: blocks.every((block) => block.validityThen === "valid"),
    validNow: blocks.every((block) => block.validityNow === "valid"),
    revocationLog: { sequence: checkpoint.sequence, head: checkpoint.head },
    ...(audit !== undefined && { audit }),
    ...(receipt !== undefined && { receipt }),
    ...(toolCall !== undefined && { toolCall }),
  };
  const bundle = canonicalJson(
    signAuthorityBundle(engine, { statement, revocations, ...subject.proofs }, roots.current()),
  );
  if (bundle.length > MAX_AUTHORITY_BUNDLE) {
    throw new DeputeError(ErrorReason.LIMIT_EXCEEDED, "the bundle of the explanation is too large", {
      metadata: { limit: "authority_bundle", max: String(MAX_AUTHORITY_BUNDLE) },
    });
  }
  return { explanation: toExplanation(statement), bundle };
}

async function explainedLinks(
  { revocationState, roots }: TokensContext,
  tx: ReadTx,
  chain: readonly StoredDelegation[],
): Promise<{ links: ExplainedLink[]; revocations: RevocationEntry[] }> {
  const documents = await readBlocks(
    tx,
    chain.map(({ chainId }) => chainId),
  );
  const logged = await findRevocationsOf(
    tx,
    chain.map(({ revocationId }) => revocationId),
    MAX_REVOCATIONS,
  );
  const links: ExplainedLink[] = [];
  for (const [level, delegation] of chain.entries()) {
    const { revocationId, chainId, from, to } = delegation;
    const rightful = [...chain.slice(0, level + 1).map((one) => one.from), to];
    const retireTime = level === 0 ? roots.retired(from) : undefined;
    const isRevokedNow = retireTime !== undefined || revocationState.isRevoked(revocationId, rightful);
    const times = logged
      .filter(({ entry }) => entry.revocationId === revocationId)
      .map(({ recordTime }) => recordTime);
    if (isRevokedNow && revocationState.isRevokedKey(from)) {
      times.push(...(await findKeyRevocations(tx, from)).map(({ recordTime }) => recordTime));
    }
    if (retireTime !== undefined) times.push(retireTime);
    const revokeTime = times.length === 0 ? undefined : Math.min(...times);
    links.push({ delegation, document: documents.get(chainId) ?? "", revokeTime, isRevokedNow });
  }
  return { links, revocations: logged.map(({ entry }) => entry) };
}

/**
 * Returns the decisions on the last block of a chain since the chain was recorded, oldest first; undefined for an empty
 * chain.
 */
async function auditOf(tx: ReadTx, chain: readonly StoredDelegation[]): Promise<AuditEntry[] | undefined> {
  const last = chain.at(-1);
  if (last === undefined) return undefined;
  const examined = await readDecisions(tx, await idBefore(tx, last.createTime), MAX_EXAMINED);
  return examined.filter(({ blocks }) => blocks.includes(last.revocationId)).slice(0, MAX_AUDITED);
}
