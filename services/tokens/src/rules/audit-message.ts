import { create, type JsonObject, toJson } from "@bufbuild/protobuf";
import {
  AuditCredential,
  AuditDecision,
  type AuditFilter as AuditFilterMessage,
  type AuditRecord,
  AuditRecordSchema,
} from "@depute/contracts/depute/tokens/v1/audit_service_pb";
import { canonicalJson, fromTimestamp, invalid, toTimestamp } from "@depute/core";
import type { AuditEntry, AuditedDecision, AuditFilter } from "./audit-record.ts";

const DECISIONS = { allowed: AuditDecision.ALLOWED, denied: AuditDecision.DENIED } as const;

const CREDENTIALS: Readonly<Record<string, AuditCredential>> = {
  none: AuditCredential.ANONYMOUS,
  secret: AuditCredential.SECRET,
  login_token: AuditCredential.LOGIN_TOKEN,
  certificate: AuditCredential.CERTIFICATE,
  holder_proof: AuditCredential.HOLDER_PROOF,
  delegation_token: AuditCredential.DELEGATION_TOKEN,
  message: AuditCredential.MESSAGE,
  service: AuditCredential.SERVICE,
};

/** Converts an entry of the audit log to its contract message. */
export function toRecord({ id, time, decision, blocks, call, ...own }: AuditEntry): AuditRecord {
  const { credential = "", ...texts } = call;
  return create(AuditRecordSchema, {
    ...wellFormed({ ...own, ...texts }),
    sequence: BigInt(id),
    time: toTimestamp(time),
    credential: CREDENTIALS[credential] ?? AuditCredential.UNSPECIFIED,
    decision: DECISIONS[decision],
    revocationIds: [...blocks],
  });
}

/** Replaces lone surrogates, which neither protobuf nor canonical JSON can contain. Changes `texts` in place. */
function wellFormed<Texts extends object>(texts: Texts): Texts {
  for (const name in texts) {
    const text = texts[name] as string;
    if (!text.isWellFormed()) texts[name] = text.toWellFormed() as (typeof texts)[typeof name];
  }
  return texts;
}

const utf8 = new TextEncoder();

/** Returns the bytes of a log entry that the day's seal covers: the canonical JSON of the entry's record, in UTF-8. */
export function auditLine(entry: AuditEntry): Uint8Array {
  return utf8.encode(lineOf(toRecord(entry)));
}

/** Returns the line of a record: the canonical JSON (RFC 8785) of its ProtoJSON. */
export function lineOf(record: AuditRecord): string {
  const members = Object.entries(toJson(AuditRecordSchema, record) as JsonObject);
  // canonicalJson writes ordered members faster: a record takes 5.9 us with this sort, and 10.3 us without.
  return canonicalJson(Object.fromEntries(members.sort(([a], [b]) => (a < b ? -1 : 1))));
}

/** The members of a record that describe the call on which another service decided. */
const CALL_TEXTS = [
  "organization",
  "address",
  "onBehalfOf",
  "rpc",
  "wire",
  "resource",
  "requestId",
  "traceId",
] as const;

/**
 * Converts a record that another service sends.
 *
 * @throws DeputeError INVALID_REQUEST
 */
export function fromRecord(record: AuditRecord, source: string): AuditedDecision {
  const { kind, caller, principal, decision, reason, revocationIds, time, credential } = record;
  if (kind !== "call" && kind !== "call_tool") throw invalid("decisions.kind", "is not call or call_tool");
  if (decision === AuditDecision.UNSPECIFIED) throw invalid("decisions.decision", "is required");
  if (time === undefined) throw invalid("decisions.time", "is required");
  const credentialName = Object.keys(CREDENTIALS).find((name) => CREDENTIALS[name] === credential);
  return {
    ...{ kind, caller, principal, reason, source, blocks: revocationIds, time: fromTimestamp(time) },
    decision: decision === AuditDecision.ALLOWED ? "allowed" : "denied",
    call: {
      ...(credentialName !== undefined && { credential: credentialName }),
      ...Object.fromEntries(
        CALL_TEXTS.filter((name) => record[name] !== "").map((name) => [name, record[name]]),
      ),
    },
  };
}

/** Converts a filter of the contract to the log's filter. An empty field matches every decision. */
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
