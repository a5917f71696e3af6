import { isObject } from "@depute/core";

/** What a client can do for a server, as the client declares it (MCP, `ClientCapabilities`). */
export type Declared = Readonly<Record<string, unknown>>;

/** The capability that each request of a server needs. */
const NEEDED: Readonly<Record<string, string>> = {
  "sampling/createMessage": "sampling",
  "elicitation/create": "elicitation",
  "roots/list": "roots",
};

/**
 * Returns the capabilities that a server sees of a client: those that the client declared and whose requests the tool
 * map allows. Extensions are left out, because the proxy serves none.
 */
export function shownCapabilities(
  declared: Declared | undefined,
  isAllowed: (method: string) => boolean,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(NEEDED).flatMap(([method, name]) =>
      isObject(declared?.[name]) && isAllowed(method) ? [[name, declared[name]]] : [],
    ),
  );
}

/** Returns the capability that a server's request needs and that the client did not declare; undefined if none. */
export function missingCapability(
  method: string,
  params: unknown,
  declared: Declared | undefined,
): Record<string, unknown> | undefined {
  const name = NEEDED[method];
  if (name === undefined) return undefined;
  const capability = declared?.[name];
  const isUrl = name === "elicitation" && isObject(params) && params.mode === "url";
  if (isObject(capability)) return isUrl && !isObject(capability.url) ? { [name]: { url: {} } } : undefined;
  return { [name]: isUrl ? { url: {} } : {} };
}
