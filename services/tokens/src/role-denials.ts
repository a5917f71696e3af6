import { RevocationService } from "@depute/contracts/depute/tokens/v1/revocation_service_pb";
import { TokenService } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import type { OnRoleDenied } from "@depute/service";
import type { AuditLog } from "./audit-log.ts";
import type { DecisionKind } from "./rules/audit-record.ts";

/** The kinds of the methods that decide about the platform's root key. */
const KINDS: ReadonlyMap<unknown, DecisionKind> = new Map<unknown, DecisionKind>([
  [TokenService.method.mintToken, "mint"],
  [RevocationService.method.revokeMintedToken, "revoke"],
  [RevocationService.method.revokeKeyAsRoot, "revoke"],
]);

/** Records a call that is refused for its roles. A full log loses the record; the caller gets the denial in any case. */
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
