import { RevocationService } from "@depute/contracts/depute/tokens/v1/revocation_service_pb";
import { TokenService } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import type { OnRoleDenied } from "@depute/service";
import type { AuditLog } from "./audit-log.ts";
import type { DecisionKind } from "./rules/audit-record.ts";

/** For each method that uses the platform's root key, the kind of its decision in the audit log. */
const KINDS: ReadonlyMap<unknown, DecisionKind> = new Map<unknown, DecisionKind>([
  [TokenService.method.mintToken, "mint"],
  [RevocationService.method.revokeMintedToken, "revoke"],
  [RevocationService.method.revokeKeyAsRoot, "revoke"],
]);

/**
 * Records a call that the service refused because of the caller's roles. If the audit log has no room, the record is
 * lost, but the caller still gets the error.
 */
export function recordRoleDenial(
  audit: Pick<AuditLog, "assertRoom" | "add">,
  { method, principal }: Parameters<OnRoleDenied>[0],
): void {
  const kind = KINDS.get(method) ?? "call";
  try {
    audit.assertRoom();
  } catch {
    return;
  }
  audit.add({
    ...{ kind, caller: principal, principal: kind === "call" ? principal : "" },
    ...{ decision: "denied", reason: "caller_not_allowed", blocks: [] },
  });
}
