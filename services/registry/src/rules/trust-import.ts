import { invalid } from "@depute/core";
import { checkFreshness, readJws, refusedStatement, type VerifyEd25519 } from "./jws.ts";
import { COMPONENTS, type Component, type Effect } from "./trust.ts";

/** The `typ` of an import that an operator signed. */
export const IMPORT_TYPE = "depute-trust+jwt";

/**
 * Reads an operator's signed import. Returns effects that set components of trust.
 *
 * @param operators keys in base64url
 * @throws DeputeError SIGNATURE_INVALID, INVALID_REQUEST
 */
export function readImport(
  statement: string,
  expected: { readonly agentId: string; readonly audience: string; readonly now: number },
  operators: readonly string[],
  verify: VerifyEd25519,
): Effect[] {
  const { claims } = readJws(statement, IMPORT_TYPE, operators, verify);
  if (claims.sub !== expected.agentId) throw refusedStatement("is about another agent");
  if (claims.aud !== expected.audience) throw refusedStatement("is for another platform");
  checkFreshness(claims.iat, expected.now);
  const { components } = claims;
  const entries = typeof components === "object" && components !== null ? Object.entries(components) : [];
  if (entries.length === 0) throw invalid("evidence.import.statement", "sets no component");
  return entries.map(([name, value]) => {
    if (!COMPONENTS.includes(name as Component)) {
      throw invalid("evidence.import.statement", "names an unknown component");
    }
    if (typeof value !== "number" || !(value >= 0 && value <= 100)) {
      throw invalid("evidence.import.statement", `sets ${name} outside 0 to 100`);
    }
    return { component: name as Component, set: value };
  });
}
