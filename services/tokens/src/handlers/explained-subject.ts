import type { CallOptions } from "@connectrpc/connect";
import { AttestationSchema } from "@depute/contracts/delegateos/v0/attestation_pb";
import type { ExplainAuthorityRequest } from "@depute/contracts/depute/tokens/v1/authority_explanation_pb";
import type { GetInclusionProofResponse } from "@depute/contracts/depute/verifier/v1/log_service_pb";
import { DeputeError, ErrorReason, encodeBase64Url, fromTimestamp, isObject } from "@depute/core";
import { type LogProof, SJT_FORMAT } from "@depute/dct";
import type { Identity } from "@depute/service";
import { encode } from "@depute/wire";
import type { TokensContext } from "../context.ts";
import { linksOf } from "../rules/delegations.ts";
import { refusedToken } from "../rules/denials.ts";
import { readTokenDocument, toSerialized } from "../rules/documents.ts";
import { answerOf, type Subject, type Viewer, viewerOf } from "./explained.ts";
import { ofReceipt } from "./explained-receipt.ts";
import { ofToolCall } from "./explained-tool-call.ts";

/**
 * Finds the subject of a request.
 *
 * @throws DeputeError as the RPC ExplainAuthority; a subject that the caller may not see counts as unknown
 */
export async function findSubject(
  tokens: TokensContext,
  { subject }: ExplainAuthorityRequest,
  identity: Identity,
  options: CallOptions,
): Promise<Subject> {
  const viewer = viewerOf(tokens, identity);
  switch (subject.case) {
    case "taskId":
      return ofTask(tokens, subject.value, viewer, options);
    case "attestationId":
      return ofAttestation(tokens, subject.value, viewer, options);
    case "token":
      return ofToken(tokens, toSerialized(subject.value).token);
    case "receiptId":
      return ofReceipt(tokens, subject.value, viewer, options);
    case "toolCall":
      return ofToolCall(tokens, subject.value, viewer);
    default: {
      const { delegationId = "", revocationId = "" } = subject.value ?? {};
      const chain = await tokens.delegations.chain({ id: delegationId, revocationId }, viewer.maySee);
      return { kind: "delegation", id: delegationId, chain, proofs: {} };
    }
  }
}

/**
 * Reads a task with the platform's own credentials. The task's delegator, the parties of its chain and auditors may see
 * the explanation.
 */
async function ofTask(
  { explained, delegations }: TokensContext,
  taskId: string,
  viewer: Viewer,
  options: CallOptions,
): Promise<Subject> {
  const { task } = await answerOf(explained.tasks.getTask({ taskId }, options));
  const hidden = () =>
    new DeputeError(ErrorReason.TASK_NOT_FOUND, "the task does not exist, or the caller may not see it", {
      metadata: { task: taskId },
    });
  if (task === undefined) throw hidden();
  const { delegator, organization } = task;
  const mayRead = viewer.mayActFor(delegator) || viewer.audits(organization);
  const time = task.createTime === undefined ? undefined : fromTimestamp(task.createTime);
  const base = { kind: "task", id: task.id, time, proofs: {} } as const;
  if (task.delegationId === "") {
    if (!mayRead) throw hidden();
    return { ...base, chain: [], principal: delegator };
  }
  const maySee: Viewer["maySee"] = (parties, owner) => mayRead || viewer.maySee(parties, owner);
  try {
    const chain = await delegations.chain({ id: task.delegationId, revocationId: "" }, maySee);
    return { ...base, chain };
  } catch (error) {
    // A caller that may neither see the chain nor read the task gets the error of an unknown task.
    const isHidden = error instanceof DeputeError && error.reason === ErrorReason.DELEGATION_NOT_FOUND;
    throw isHidden && !mayRead ? hidden() : error;
  }
}

async function ofAttestation(
  { explained, delegations }: TokensContext,
  attestationId: string,
  { maySee }: Viewer,
  options: CallOptions,
): Promise<Subject> {
  const { attestation, recordTime } = await answerOf(
    explained.attestations.getAttestation({ attestationId }, options),
  );
  const document = attestation === undefined ? undefined : encode(AttestationSchema, attestation);
  const key = { id: attestation?.delegationId ?? "", revocationId: "" };
  const signer = attestation?.principal ?? "";
  const chain = await delegations.chain(key, (parties, owner) => {
    return parties.at(-1) === signer && maySee(parties, owner);
  });
  const proof = await answerOf(
    explained.log.getInclusionProof({ subject: { case: "attestationId", value: attestationId } }, options),
  ).catch((error: unknown) => {
    // An attestation that is older than the transparency log has no leaf in the log.
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

/**
 * Returns the subject of a token. Any caller that presents the token may see the explanation, because the token itself
 * shows its blocks.
 */
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
