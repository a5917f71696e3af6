import { toJsonString } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type AuditFilter as AuditFilterMessage,
  AuditFilterSchema,
  AuditRecordSchema,
  type AuditService,
} from "@depute/contracts/depute/tokens/v1/audit_service_pb";
import { DeputeError, decodePageToken, ErrorReason, encodePageToken, pageSize } from "@depute/core";
import { bytesOf, cutPage, follow, type Identity } from "@depute/service";
import { AUDIT_TOPIC } from "../audit-log.ts";
import { isAuditor, type TokensContext } from "../context.ts";
import { fromFilter, fromRecord, lineOf, toRecord } from "../rules/audit-message.ts";
import { type AuditEntry, type AuditFilter, matchesAudit } from "../rules/audit-record.ts";
import { idBefore, readDecisions } from "../store/audit-rows.ts";
import { readSeals } from "../store/audit-seal-rows.ts";
import { proveAuditRecord, sealMessage } from "./audit-proof.ts";

/** Maximum number of records that one call of ListAuditRecords examines. */
const MAX_EXAMINED = 2000;

/** Maximum number of lines in one message of an export. */
const MAX_LINES = 100;

/** Handles the calls of AuditService. */
export function auditService(tokens: TokensContext): Required<ServiceImpl<typeof AuditService>> {
  const { store, bus, timers } = tokens;
  return {
    async listAuditRecords(request, context) {
      const filter = allowed(tokens, await tokens.identify(context), fromFilter(request.filter));
      const filters = {
        ...{ list: "audit", afterSequence: String(request.afterSequence) },
        filter: textOf(request.filter),
      };
      const position = decodePageToken(request.pageToken, filters)?.[0];
      const examined = await store.read(async (tx) => {
        const begin =
          filter.from === undefined || position !== undefined ? 0 : await idBefore(tx, filter.from);
        const after = Math.max(Number(position ?? request.afterSequence), begin);
        return readDecisions(tx, after, MAX_EXAMINED);
      });
      const found = examined.filter((entry) => matchesAudit(entry, filter)).map(toRecord);
      const { items: records, more } = cutPage(found, pageSize(request.pageSize), (record) =>
        bytesOf(AuditRecordSchema, record),
      );
      const end = more ? Number(records.at(-1)?.sequence ?? 0) : lastExamined(examined);
      return { records, nextPageToken: end === undefined ? "" : encodePageToken([end], filters) };
    },

    async *watchAuditRecords({ afterSequence, sendStart, filter: selected }, context) {
      const filter = allowed(tokens, await tokens.identify(context), fromFilter(selected));
      if (sendStart) yield { sequence: afterSequence };
      const { from } = filter;
      const begin = from === undefined ? 0 : await store.read((tx) => idBefore(tx, from));
      const log = follow<AuditEntry, number>({
        read: (after, limit) => store.read((tx) => readDecisions(tx, after, limit)),
        position: ({ id }) => id,
        after: Math.max(Number(afterSequence), begin),
        wake: (listener) => bus.subscribe(AUDIT_TOPIC, listener),
        pollMs: tokens.revocationPollMs,
        timers,
        signal: context.signal,
      });
      for await (const entry of log) {
        if (matchesAudit(entry, filter)) yield { sequence: BigInt(entry.id), record: toRecord(entry) };
      }
    },

    async *exportAuditRecords({ afterSequence, filter: selected }, context) {
      const filter = allowed(tokens, await tokens.identify(context), fromFilter(selected));
      let after = await store.read(async (tx) => {
        const begin = filter.from === undefined ? 0 : await idBefore(tx, filter.from);
        return Math.max(Number(afterSequence), begin);
      });
      while (!context.signal.aborted) {
        const entries = await store.read((tx) => readDecisions(tx, after, MAX_LINES));
        const lines = entries
          .filter((entry) => matchesAudit(entry, filter))
          .map((entry) => lineOf(toRecord(entry)));
        if (lines.length > 0) yield { lines };
        if (entries.length < MAX_LINES) return;
        after = entries.at(-1)?.id ?? after;
      }
    },

    async listAuditSeals(request, context) {
      assertAuditor(tokens, await tokens.identify(context));
      const filters = { list: "audit-seals" };
      const after = String(decodePageToken(request.pageToken, filters)?.[0] ?? "");
      const size = pageSize(request.pageSize);
      const rows = await store.read((tx) => readSeals(tx, after, size + 1));
      const seals = rows.slice(0, size).map(sealMessage);
      const last = rows.length > size ? (seals.at(-1)?.day ?? "") : "";
      return { seals, nextPageToken: last === "" ? "" : encodePageToken([last], filters) };
    },

    async getAuditRecordProof({ sequence }, context) {
      const filter = allowed(tokens, await tokens.identify(context), {});
      return proveAuditRecord(tokens, Number(sequence), filter);
    },

    async recordAuditDecisions({ source, batchId, decisions }, context) {
      const { local } = await tokens.identify(context);
      if (!local) {
        throw new DeputeError(
          ErrorReason.CALLER_NOT_ALLOWED,
          "only the platform's services record decisions in the audit log",
        );
      }
      const recorded = decisions.map((record) => fromRecord(record, source));
      await tokens.audit.record(source, batchId, recorded);
      return {};
    },
  };
}

/** Returns a filter as one text, to which a page token is bound. */
function textOf(filter: AuditFilterMessage | undefined): string {
  return filter === undefined ? "" : toJsonString(AuditFilterSchema, filter);
}

/**
 * Returns the id of the last examined record; the next page begins after it. Returns undefined at the end of the log.
 */
function lastExamined(examined: readonly AuditEntry[]): number | undefined {
  return examined.length < MAX_EXAMINED ? undefined : examined.at(-1)?.id;
}

/**
 * Returns the filter that the caller may use. An auditor of an organization may read only the organization's records.
 *
 * @throws DeputeError CALLER_NOT_ALLOWED; LIMIT_EXCEEDED if the audit log has no room
 */
function allowed(tokens: TokensContext, identity: Identity, filter: AuditFilter): AuditFilter {
  const { organization, organizationRoles = [] } = identity;
  const { organization: asked = organization } = filter;
  const isOwn = organization !== "" && asked === organization && organizationRoles.includes("auditor");
  if (isOwn && !isAuditor(tokens, identity)) return { ...filter, organization };
  assertAuditor(tokens, identity);
  return filter;
}

/**
 * Refuses a caller that may not read the log, and records the refusal.
 *
 * @throws DeputeError CALLER_NOT_ALLOWED; LIMIT_EXCEEDED if the audit log has no room
 */
function assertAuditor(tokens: TokensContext, identity: Identity): void {
  if (isAuditor(tokens, identity)) return;
  const { audit } = tokens;
  const { principal } = identity;
  const reason = "caller_not_allowed";
  audit.assertRoom();
  audit.add({ kind: "call", caller: principal, principal, decision: "denied", reason, blocks: [] });
  throw new DeputeError(
    ErrorReason.CALLER_NOT_ALLOWED,
    "the caller may not read the audit log; an operator grants the role auditor, or names auditors in DEPUTE_AUDITORS",
  );
}
