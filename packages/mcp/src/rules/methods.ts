import type { CallRule, ToolMap } from "./tool-map.ts";

/** What is done with a request of a client. */
export type Treatment =
  /** It is about the connection, names no resource and shows none. */
  | { readonly kind: "plain" }
  /** It lists; what the token does not grant is left out. */
  | { readonly kind: "list"; readonly list: List }
  /** It needs the right that its rule says. */
  | { readonly kind: "authorised" }
  /** Configuration lets it through without a look. */
  | { readonly kind: "passed" }
  | { readonly kind: "refused" };

/** A list: the member of the result, and whose rules its entries are shown by. */
export interface List {
  readonly member: string;
  /** The request that the entries are used by. */
  readonly usedBy: string;
  /** The member of an entry that names it. */
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

/** What of a client's requests passes, is authorised or refused. What nobody thought of is refused (DelegateOS 11.3). */
export function treatmentOf(method: string, { methods, passed }: ToolMap): Treatment {
  if (method === "ping") return { kind: "plain" };
  const list = LISTS.get(method);
  if (list !== undefined) return { kind: "list", list };
  if (method === TOOLS_CALL || methods.has(method)) return { kind: "authorised" };
  return passed.has(method) ? { kind: "passed" } : { kind: "refused" };
}

/** The rule of a request, and what its resource and its proof are about. */
export interface Asked {
  readonly rule: CallRule | undefined;
  /** The tool's arguments, or all parameters of any other request. */
  readonly args: unknown;
  /** The tool, or else the method, in words of the wire. */
  readonly name: string;
}

/** @param params the parameters as they are forwarded */
export function askedBy(method: string, params: Readonly<Record<string, unknown>>, map: ToolMap): Asked {
  if (method !== TOOLS_CALL) {
    const { _meta, ...args } = params;
    return { rule: map.methods.get(method), args, name: method };
  }
  const name = typeof params.name === "string" ? params.name : "";
  return { rule: map.tools.get(name), args: params.arguments ?? {}, name };
}

/** Notifications of a client that concern its own requests; no other reaches the server. */
export const OWN_NOTIFICATIONS: ReadonlySet<string> = new Set([
  "notifications/initialized",
  "notifications/cancelled",
  "notifications/progress",
  "notifications/roots/list_changed",
]);
