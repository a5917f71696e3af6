import { isTaskMethod } from "./server-task.ts";
import type { CallRule, ToolMap } from "./tool-map.ts";

/** The way in which the proxy treats a client's request. */
export type Treatment =
  /** The request is allowed without a check, because it concerns only the connection. */
  | { readonly kind: "plain" }
  /** The request lists entries. Entries that the token does not grant are left out of the response. */
  | { readonly kind: "list"; readonly list: List }
  /** The token must grant the capability that the rule of the request names. */
  | { readonly kind: "authorised" }
  /**
   * The request begins or ends the MCP session's subscription to a resource. Only a beginning subscription needs a
   * capability.
   */
  | { readonly kind: "subscription"; readonly isBegin: boolean }
  /** The request concerns a task of the server. It needs the capabilities of the call that began the task. */
  | { readonly kind: "task" }
  /** The configuration allows this method without a check. */
  | { readonly kind: "passed" }
  | { readonly kind: "refused" };

/** A list: the member of the result that contains it, and the facts for filtering its entries. */
export interface List {
  readonly member: string;
  /** The method with which clients use the entries. */
  readonly usedBy: string;
  /** The member of an entry that contains the entry's name. */
  readonly name: string;
}

const LISTS: ReadonlyMap<string, List> = new Map([
  ["tools/list", { member: "tools", usedBy: "tools/call", name: "name" }],
  ["resources/list", { member: "resources", usedBy: "resources/read", name: "uri" }],
  [
    "resources/templates/list",
    { member: "resourceTemplates", usedBy: "resources/read", name: "uriTemplate" },
  ],
  ["prompts/list", { member: "prompts", usedBy: "prompts/get", name: "name" }],
]);

/** The method that calls a tool. */
export const TOOLS_CALL = "tools/call";

/** The method of subscriptions before MCP revision 2026-07-28. */
export const SUBSCRIBE = "resources/subscribe";
/** The method of subscriptions since MCP revision 2026-07-28. */
export const LISTEN = "subscriptions/listen";
const UNSUBSCRIBE = "resources/unsubscribe";
const READ = "resources/read";

/** Decides how a client's request is treated. Unknown methods are refused (DelegateOS 11.3). */
export function treatmentOf(method: string, { methods, passed }: ToolMap): Treatment {
  if (method === "ping") return { kind: "plain" };
  if (isTaskMethod(method)) return { kind: "task" };
  const list = LISTS.get(method);
  if (list !== undefined) return { kind: "list", list };
  if (method === SUBSCRIBE || method === UNSUBSCRIBE)
    return { kind: "subscription", isBegin: method === SUBSCRIBE };
  if (method === TOOLS_CALL || methods.has(method)) return { kind: "authorised" };
  return passed.has(method) ? { kind: "passed" } : { kind: "refused" };
}

/** A request, the rule for it, and the values to which the rule and the proof refer. */
export interface GatedRequest {
  readonly rule: CallRule | undefined;
  /** The tool's arguments, or all parameters of any other request. */
  readonly args: unknown;
  /** The name of the tool, or the method of any other request. */
  readonly name: string;
  /** The values that the proof covers, if they differ from `args`. */
  readonly proved?: unknown;
}

/**
 * Finds the rule of a request, and the values to which the rule refers.
 *
 * @param params the parameters that the proxy forwards
 */
export function gatedRequestOf(
  method: string,
  params: Readonly<Record<string, unknown>>,
  map: ToolMap,
): GatedRequest {
  if (method !== TOOLS_CALL) {
    const { _meta, ...args } = params;
    // The capability to read a resource also allows notifications of its changes.
    const rule = map.methods.get(method) ?? (method === SUBSCRIBE ? map.methods.get(READ) : undefined);
    return { rule, args, name: method };
  }
  const name = typeof params.name === "string" ? params.name : "";
  return { rule: map.tools.get(name), args: params.arguments ?? {}, name };
}
