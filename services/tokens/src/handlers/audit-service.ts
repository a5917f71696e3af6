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
import type { TokensContext } from "../context.ts";
import { fromFilter, fromRecord, toRecord } from "../rules/audit-message.ts";
import { type AuditEntry, matchesAudit } from "../rules/audit-record.ts";
import { idBefore, readDecisions } from "../store/audit-rows.ts";

/** Maximum number of records that one call examines. */
const MAX_EXAMINED = 2000;

/** Implements AuditService. */
export function auditService(tokens: TokensContext): Required<ServiceImpl<typeof AuditService>> {
  const { store, bus, timers } = tokens;
  return {
    async listAuditRecords(request, context) {
      assertAuditor(tokens, await tokens.identify(context));
      const filter = fromFilter(request.filter);
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
      assertAuditor(tokens, await tokens.identify(context));
      if (sendStart) yield { sequence: afterSequence };
      const filter = fromFilter(selected);
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

/** Returns a filter as one text, for page tokens. */
function textOf(filter: AuditFilterMessage | undefined): string {
  return filter === undefined ? "" : toJsonString(AuditFilterSchema, filter);
}

/** Returns where the next page begins; undefined at the end of the log. */
function lastExamined(examined: readonly AuditEntry[]): number | undefined {
  return examined.length < MAX_EXAMINED ? undefined : examined.at(-1)?.id;
}

/**
 * Refuses a caller that may not read the log, and records the refusal.
 *
 * @throws DeputeError CALLER_NOT_ALLOWED
 */
function assertAuditor({ auditors, audit }: TokensContext, { principal, local }: Identity): void {
  if (local || auditors.has(principal)) return;
  const reason = "caller_not_allowed";
  audit.assertRoom();
  audit.add({ kind: "call", caller: principal, principal, decision: "denied", reason, blocks: [] });
  throw new DeputeError(
    ErrorReason.CALLER_NOT_ALLOWED,
    "the caller may not read the audit log; an operator names auditors in DEPUTE_AUDITORS",
  );
}
