import type { Capability } from "@depute/contracts/delegateos/v0/token_pb";
import { matches, parsePattern, parseResource } from "@depute/dct";
import type { List } from "./methods.ts";
import { resourceOf } from "./resource.ts";
import type { CallRule, ToolMap } from "./tool-map.ts";

/** A right, or a pattern of rights. */
export type Right = Pick<Capability, "namespace" | "action" | "resource">;

/**
 * The entries of a list that a token could use. What an entry needs is matched as the verifier does, where it is known
 * before the arguments are; every use is judged by the verifier, whatever was listed (DelegateOS 11.3).
 *
 * @param granted what the token grants; undefined for a caller that needs no token
 */
export function visible(
  entries: readonly unknown[],
  list: List,
  map: ToolMap,
  granted: readonly Right[] | undefined,
): unknown[] {
  return entries.filter((entry) => {
    const name =
      typeof entry === "object" && entry !== null ? (entry as Record<string, unknown>)[list.name] : "";
    if (typeof name !== "string") return false;
    const rule = list.usedBy === "tools/call" ? map.tools.get(name) : map.methods.get(list.usedBy);
    if (rule === undefined) return false;
    return granted === undefined || granted.some((right) => couldGrant(right, rule, list, name));
  });
}

function couldGrant(right: Right, rule: CallRule, list: List, name: string): boolean {
  const { namespace, action } = rule;
  if (right.namespace !== namespace || right.action !== action) return false;
  if (rule.resource.kind === "fixed") {
    return grants(right, { namespace, action, resource: rule.resource.value });
  }
  // Of a request for an entry only its name is known before; a template is not yet an address, and a tool's name is no
  // argument of it.
  const isNamed = rule.resource.pointers.every((pointer) => pointer === `/${list.name}`);
  if (!isNamed || list.usedBy === "tools/call" || list.name === "uriTemplate") return true;
  const found = resourceOf(rule, { [list.name]: name });
  return found.ok && found.resources.every((resource) => grants(right, { namespace, action, resource }));
}

/** Whether a right that is granted covers one that is asked for, as the verifier matches. (DelegateOS 10.2) */
export function grants(
  { namespace, action, resource: pattern }: Right,
  { resource, ...asked }: Right,
): boolean {
  if (namespace !== asked.namespace || action !== asked.action) return false;
  const [granted, wanted] = [parsePattern(pattern, namespace), parseResource(resource, namespace)];
  return !("problem" in granted) && !("problem" in wanted) && matches(granted, wanted);
}
