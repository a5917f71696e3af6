import type { Capability } from "@depute/contracts/delegateos/v0/token_pb";
import { matches, parsePattern, parseResource } from "@depute/dct";
import type { List } from "./methods.ts";
import { resourceOf } from "./resource.ts";
import { runsOnlyAsTask } from "./server-task.ts";
import type { CallRule, ToolMap } from "./tool-map.ts";

/** A capability for one resource, or for a pattern of resources. */
export type Right = Pick<Capability, "namespace" | "action" | "resource">;

/**
 * Returns those list entries that the token may allow the caller to use. If the required capability does not depend on
 * arguments, this function applies the matching rules of the tokens service. That service checks every use of an entry
 * anyway (DelegateOS 11.3).
 *
 * @param granted the capabilities that the token grants; undefined if the caller needs no token
 * @param hasTasks whether the caller can run tools as tasks of the server. If false, tools that run only as tasks are
 * left out
 */
export function visible(
  entries: readonly unknown[],
  list: List,
  map: ToolMap,
  granted: readonly Right[] | undefined,
  hasTasks = false,
): unknown[] {
  return entries.filter((entry) => {
    const name =
      typeof entry === "object" && entry !== null ? (entry as Record<string, unknown>)[list.name] : "";
    if (typeof name !== "string") return false;
    const rule = list.usedBy === "tools/call" ? map.tools.get(name) : map.methods.get(list.usedBy);
    if (rule === undefined || (!hasTasks && runsOnlyAsTask(entry))) return false;
    return granted === undefined || granted.some((right) => couldGrant(right, rule, list, name));
  });
}

function couldGrant(right: Right, rule: CallRule, list: List, name: string): boolean {
  const { namespace, action } = rule;
  if (right.namespace !== namespace || right.action !== action) return false;
  if (rule.resource.kind === "fixed") {
    return grants(right, { namespace, action, resource: rule.resource.value });
  }
  // The list shows only the name of an entry. If the resource depends on another argument, on a URI template or on a
  // tool's arguments, the entry stays visible.
  const isNamed = rule.resource.pointers.every((pointer) => pointer === `/${list.name}`);
  if (!isNamed || list.usedBy === "tools/call" || list.name === "uriTemplate") return true;
  const found = resourceOf(rule, { [list.name]: name });
  return found.ok && found.resources.every((resource) => grants(right, { namespace, action, resource }));
}

/**
 * Whether a granted capability covers a required capability. The rules are those of the tokens service. (DelegateOS
 * 10.2)
 */
export function grants(
  { namespace, action, resource: pattern }: Right,
  { resource, ...requested }: Right,
): boolean {
  if (namespace !== requested.namespace || action !== requested.action) return false;
  const [granted, requestedResource] = [parsePattern(pattern, namespace), parseResource(resource, namespace)];
  return !("problem" in granted) && !("problem" in requestedResource) && matches(granted, requestedResource);
}
