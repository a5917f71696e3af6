import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CallOptions, HandlerContext } from "@connectrpc/connect";
import { AttestationSchema } from "@depute/contracts/delegateos/v0/attestation_pb";
import type {
  ExplainAuthorityRequest,
  ExplainAuthorityResponseSchema,
} from "@depute/contracts/depute/tokens/v1/authority_explanation_pb";
import type { GetInclusionProofResponse } from "@depute/contracts/depute/verifier/v1/log_service_pb";
import {
  canonicalJson,
  DeputeError,
  ErrorReason,
  encodeBase64Url,
  fromTimestamp,
  isObject,
} from "@depute/core";
import {
  type AuthorityBundle,
  type AuthorityStatement,
  formatTime,
  type LogProof,
  MAX_AUTHORITY_BUNDLE,
  type RevocationEntry,
  SJT_FORMAT,
  signAuthorityBundle,
} from "@depute/dct";
import { fromConnectError, type Identity, mayActFor, ownOptions } from "@depute/service";
import type { ReadTx } from "@depute/store";
import { encode } from "@depute/wire";
import { isAuditor, type TokensContext } from "../context.ts";
import type { AuditEntry } from "../rules/audit-record.ts";
import { linksOf } from "../rules/delegations.ts";
import { refusedToken } from "../rules/denials.ts";
import { readTokenDocument, toSerialized } from "../rules/documents.ts";
import { type ExplainedLink, statedBlocks, toExplanation } from "../rules/explanation.ts";
import { idBefore, readDecisions } from "../store/audit-rows.ts";
import { readBlocks, type StoredDelegation } from "../store/delegation-rows.ts";
import { findKeyRevocations, findRevocationsOf } from "../store/revocation-rows.ts";

/** Maximum number of revocations in one bundle. A block has at most one for each rightful revoker and scope. */
const MAX_REVOCATIONS = 256;
/** MAX_EXAMINED and MAX_AUDITED: maximum audited decisions that one call examines, and that one bundle contains. */
const MAX_EXAMINED = 2_000;
const MAX_AUDITED = 200;

/** A subject with its recorded chain, and the subject's own proofs. */
interface Subject {
  readonly kind: AuthorityStatement["kind"];
  readonly id: string;
  readonly chain: readonly StoredDelegation[];
  /** The principal of a task without a token. */
  readonly principal?: string;
  /** The time at which the authority was used, in milliseconds since 1970. */
  readonly time?: number | undefined;
  readonly proofs: Pick<AuthorityBundle, "token" | "attestation" | "attestationProof">;
}

/** Explains the authority of a subject; see the RPC ExplainAuthority. */
export async function explainAuthority(
  tokens: TokensContext,
  request: ExplainAuthorityRequest,
  context: HandlerContext,
): Promise<MessageInitShape<typeof ExplainAuthorityResponseSchema>> {
  const identity = await tokens.identify(context);
  const { engine, clock, root, store } = tokens;
  const subject = await findSubject(tokens, request, identity, ownOptions(context, clock));
  const now = clock.now();
  const then = request.time === undefined ? (subject.time ?? now) : fromTimestamp(request.time);
  const checkpoint = await tokens.checkpoint();
  const { links, revocations, audit } = await store.read(async (tx) => ({
    ...(await explainedLinks(tokens, tx, subject.chain)),
    audit: await auditOf(tx, subject.chain, isAuditor(tokens, identity)),
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
  };
  const bundle = canonicalJson(
    signAuthorityBundle(engine, { statement, revocations, ...subject.proofs }, root),
  );
  if (bundle.length > MAX_AUTHORITY_BUNDLE) {
    throw new DeputeError(ErrorReason.LIMIT_EXCEEDED, "the bundle of the explanation is too large", {
      metadata: { limit: "authority_bundle", max: String(MAX_AUTHORITY_BUNDLE) },
    });
  }
  return { explanation: toExplanation(statement), bundle };
}

async function findSubject(
  tokens: TokensContext,
  { subject }: ExplainAuthorityRequest,
  identity: Identity,
  options: CallOptions,
): Promise<Subject> {
  const isParty = (parties: readonly string[]) => identity.local || parties.includes(identity.principal);
  switch (subject.case) {
    case "taskId":
      return ofTask(tokens, subject.value, identity, options);
    case "attestationId":
      return ofAttestation(tokens, subject.value, isParty, options);
    case "token":
      return ofToken(tokens, toSerialized(subject.value).token);
    default: {
      const { delegationId = "", revocationId = "" } = subject.value ?? {};
      const chain = await tokens.delegations.chain({ id: delegationId, revocationId }, isParty);
      return { kind: "delegation", id: delegationId, chain, proofs: {} };
    }
  }
}

/** Reads a task as the platform. The task's delegator and the parties of its chain may see the explanation. */
async function ofTask(
  { explained, delegations }: TokensContext,
  taskId: string,
  identity: Identity,
  options: CallOptions,
): Promise<Subject> {
  const { task } = await answerOf(explained.tasks.getTask({ taskId }, options));
  const hidden = () =>
    new DeputeError(ErrorReason.TASK_NOT_FOUND, "no such task", { metadata: { task: taskId } });
  if (task === undefined) throw hidden();
  const isDelegator = mayActFor(identity, task.delegator);
  const time = task.createTime === undefined ? undefined : fromTimestamp(task.createTime);
  const base = { kind: "task", id: task.id, time, proofs: {} } as const;
  if (task.delegationId === "") {
    if (!isDelegator) throw hidden();
    return { ...base, chain: [], principal: task.delegator };
  }
  const maySee = (parties: readonly string[]) => isDelegator || parties.includes(identity.principal);
  try {
    const chain = await delegations.chain({ id: task.delegationId, revocationId: "" }, maySee);
    return { ...base, chain };
  } catch (error) {
    // To a caller that is no party of the chain, the task does not exist.
    const isHidden = error instanceof DeputeError && error.reason === ErrorReason.DELEGATION_NOT_FOUND;
    throw isHidden && !isDelegator ? hidden() : error;
  }
}

async function ofAttestation(
  { explained, delegations }: TokensContext,
  attestationId: string,
  isParty: (parties: readonly string[]) => boolean,
  options: CallOptions,
): Promise<Subject> {
  const { attestation, recordTime } = await answerOf(
    explained.attestations.getAttestation({ attestationId }, options),
  );
  const document = attestation === undefined ? undefined : encode(AttestationSchema, attestation);
  const key = { id: attestation?.delegationId ?? "", revocationId: "" };
  const signer = attestation?.principal ?? "";
  const chain = await delegations.chain(key, (parties) => parties.at(-1) === signer && isParty(parties));
  const proof = await answerOf(
    explained.log.getInclusionProof({ subject: { case: "attestationId", value: attestationId } }, options),
  ).catch((error: unknown) => {
    // An attestation that was recorded before the transparency log existed has no leaf in the log.
    if (error instanceof DeputeError && error.reason === ErrorReason.LOG_ENTRY_NOT_FOUND) return undefined;
    throw error;
  });
  const attestationProof = proof === undefined ? undefined : logProof(proof);
  return {
    ...{ kind: "attestation", id: attestationId, chain },
    time: recordTime === undefined ? undefined : fromTimestamp(recordTime),
    proofs: {
      ...(isObject(document) && { attestation: document }),
      ...(attestationProof !== undefined && { attestationProof }),
    },
  };
}

/** The token itself shows its blocks, so its bearer may see the explanation. */
async function ofToken({ engine, chains, delegations }: TokensContext, token: string): Promise<Subject> {
  const input = { token, format: SJT_FORMAT } as const;
  const proven = await chains.proven(input);
  if (!proven.ok) throw refusedToken(proven.denial);
  const document = readTokenDocument(input);
  const links = document === undefined ? [] : linksOf(engine, document);
  const last = links.at(-1);
  const { delegationId = "", revocationId = "" } = last?.block ?? {};
  const chain = await delegations.chainOf(last?.chainId ?? "", delegationId);
  return { kind: "token", id: revocationId, chain, proofs: { token } };
}

function logProof({ entry, hashes, head }: GetInclusionProofResponse): LogProof | undefined {
  if (entry?.appendTime === undefined || head?.headTime === undefined) return undefined;
  return {
    index: Number(entry.index),
    time: fromTimestamp(entry.appendTime),
    hashes: hashes.map((hash) => encodeBase64Url(hash)),
    head: {
      log: head.log,
      treeSize: Number(head.treeSize),
      rootHash: encodeBase64Url(head.rootHash),
      time: fromTimestamp(head.headTime),
      signature: encodeBase64Url(head.signature),
    },
  };
}

async function explainedLinks(
  { revocationState }: TokensContext,
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
    const isRevokedNow = revocationState.isRevoked(revocationId, rightful);
    const times = logged
      .filter(({ entry }) => entry.revocationId === revocationId)
      .map(({ recordTime }) => recordTime);
    if (isRevokedNow && revocationState.isRevokedKey(from)) {
      times.push(...(await findKeyRevocations(tx, from)).map(({ recordTime }) => recordTime));
    }
    const revokeTime = times.length === 0 ? undefined : Math.min(...times);
    links.push({ delegation, document: documents.get(chainId) ?? "", revokeTime, isRevokedNow });
  }
  return { links, revocations: logged.map(({ entry }) => entry) };
}

/**
 * Returns the decisions on the last block of a chain since the chain was recorded, oldest first. Undefined if the
 * caller may not read the audit log.
 */
async function auditOf(
  tx: ReadTx,
  chain: readonly StoredDelegation[],
  mayRead: boolean,
): Promise<AuditEntry[] | undefined> {
  const last = chain.at(-1);
  if (!mayRead || last === undefined) return undefined;
  const examined = await readDecisions(tx, await idBefore(tx, last.createTime), MAX_EXAMINED);
  return examined.filter(({ blocks }) => blocks.includes(last.revocationId)).slice(0, MAX_AUDITED);
}

/** Returns the response of another service. The errors of that service keep their reasons. */
async function answerOf<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (thrown) {
    throw fromConnectError(thrown);
  }
}
