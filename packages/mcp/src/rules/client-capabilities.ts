import { isObject } from "@depute/core";

/** The capabilities of a client, as the client declares them to a server (MCP, `ClientCapabilities`). */
export type Declared = Readonly<Record<string, unknown>>;

/** Returns the capabilities that a request of revision 2026-07-28 declares; undefined if the request declares none. */
export function declaredIn({ _meta: meta }: Readonly<Record<string, unknown>>): Declared | undefined {
  const declared = isObject(meta) ? meta["io.modelcontextprotocol/clientCapabilities"] : undefined;
  return isObject(declared) ? declared : undefined;
}

/** For each method of a server's requests to the client, the client capability that the request needs. */
const NEEDED: Readonly<Record<string, string>> = {
  "sampling/createMessage": "sampling",
  "elicitation/create": "elicitation",
  "roots/list": "roots",
};

/**
 * Returns the client capabilities that the proxy declares to a server: those that the client declared and whose
 * requests the tool map allows. Extensions are left out, because the proxy itself declares the extension for tasks,
 * and supports no other.
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

/** The members of each client capability that influence which requests the server sends. */
const MEMBERS: Readonly<Record<string, readonly string[]>> = {
  sampling: ["context", "tools"],
  elicitation: ["form", "url"],
  roots: [],
};

/**
 * Returns the capabilities of {@link shownCapabilities}, reduced to the members in MEMBERS. Only a few dozen different
 * values are possible, so callers cannot cause an unlimited number of connections.
 */
export function bridgedCapabilities(
  declared: Declared | undefined,
  isAllowed: (method: string) => boolean,
): Record<string, Record<string, object>> {
  return Object.fromEntries(
    Object.entries(shownCapabilities(declared, isAllowed)).map(([name, capability]) => {
      const members = (MEMBERS[name] ?? []).filter(
        (member) => isObject(capability) && isObject(capability[member]),
      );
      return [name, Object.fromEntries(members.map((member) => [member, {}]))];
    }),
  );
}

/**
 * Returns the capability that a server's request needs and that the client did not declare; undefined if the client
 * declared all that the request needs.
 */
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
