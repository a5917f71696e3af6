import { create } from "@bufbuild/protobuf";
import {
  AuditCredential,
  AuditDecision,
  type AuditFilter as AuditFilterMessage,
  type AuditRecord,
  AuditRecordSchema,
} from "@depute/contracts/depute/tokens/v1/audit_service_pb";
import { fromTimestamp, toTimestamp } from "@depute/core";
import type { AuditEntry, AuditFilter } from "./audit-record.ts";

const DECISIONS = { allowed: AuditDecision.ALLOWED, denied: AuditDecision.DENIED } as const;

const CREDENTIALS: Readonly<Record<string, AuditCredential>> = {
  none: AuditCredential.NONE,
  secret: AuditCredential.SECRET,
  login_token: AuditCredential.LOGIN_TOKEN,
  certificate: AuditCredential.CERTIFICATE,
  holder_proof: AuditCredential.HOLDER_PROOF,
  delegation_token: AuditCredential.DELEGATION_TOKEN,
  message: AuditCredential.MESSAGE,
  service: AuditCredential.SERVICE,
};

/** Converts a decision of the log to its contract message. */
export function toRecord({ id, time, decision, blocks, call, ...own }: AuditEntry): AuditRecord {
  const { credential = "", ...texts } = call;
  return create(AuditRecordSchema, {
    ...own,
    ...texts,
    sequence: BigInt(id),
    time: toTimestamp(time),
    credential: CREDENTIALS[credential] ?? AuditCredential.UNSPECIFIED,
    decision: DECISIONS[decision],
    revocationIds: [...blocks],
  });
}

/** Converts a filter of the contract. An empty field selects all. */
export function fromFilter(filter: AuditFilterMessage | undefined): AuditFilter {
  if (filter === undefined) return {};
  const { caller, principal, kind, source, organization, resource, rpc, requestId, revocationId } = filter;
  const texts = {
    caller,
    principal,
    kind,
    source,
    organization,
    resource,
    rpc,
    requestId,
    block: revocationId,
  };
  const { startTime, endTime } = filter;
  return {
    ...Object.fromEntries(Object.entries(texts).filter(([, value]) => value !== "")),
    ...(filter.decision !== AuditDecision.UNSPECIFIED && {
      decision: filter.decision === AuditDecision.ALLOWED ? "allowed" : "denied",
    }),
    ...(startTime !== undefined && { from: fromTimestamp(startTime) }),
    ...(endTime !== undefined && { before: fromTimestamp(endTime) }),
  };
}
