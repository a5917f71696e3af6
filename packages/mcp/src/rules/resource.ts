import { pointAt } from "./pointer.ts";
import { type CallRule, EVERY_RESOURCE, type ResourceForm } from "./tool-map.ts";

/** The distinct resources of a call, at least one, or the reason of the denial. */
export type CallResources =
  | { readonly ok: true; readonly resources: readonly string[]; readonly needsRealPath: boolean }
  | { readonly ok: false; readonly detail: string };

/** Maximum number of resources that one argument, a list, may name. */
const MAX_VALUES = 1000;
/**
 * Maximum number of resources of one call that the proxy checks one by one. A call with more resources needs a token
 * that grants every resource.
 */
const MAX_RESOURCES = 64;

/**
 * Returns the resources of a call, all of which the token must grant. If a value can be read in several ways, the call
 * is denied. The function never corrects a value. A call that names no resource counts as a call for every resource.
 * The tokens service checks the form of patterns and segments (DelegateOS 10.2).
 *
 * @param args the arguments that the proxy forwards
 */
export function resourceOf({ namespace, resource: rule }: CallRule, args: unknown): CallResources {
  if (rule.kind === "fixed") return found(rule.value);
  const values: string[] = [];
  for (const pointer of rule.pointers) {
    const value = pointAt(args, pointer);
    const several = Array.isArray(value) ? value : [value];
    if (several.length > MAX_VALUES) return denied("the arguments name too many resources");
    for (const one of several) {
      if (one === undefined && rule.absent === undefined) return found(EVERY_RESOURCE);
      const text = one === undefined ? rule.absent : one;
      if (typeof text !== "string") return denied("the argument that names the resource is not a text");
      values.push(text);
    }
  }
  const texts = [...new Set(values)];
  if (texts.length === 0 || texts.length > MAX_RESOURCES) return found(EVERY_RESOURCE);
  const resources = new Set<string>();
  for (const text of texts) {
    const one = inForm(text, rule.form, namespace);
    if (!one.ok) return one;
    for (const resource of one.resources) resources.add(resource);
  }
  return { ok: true, resources: [...resources], needsRealPath: rule.form === "real-path" };
}

function inForm(text: string, form: ResourceForm, namespace: string): CallResources {
  // A `*` in an argument is refused. In a token it is a wildcard, but in an argument it would be a part of a name.
  if (text.includes("*")) return denied("the argument that names the resource must not contain a *");
  switch (form) {
    case "text":
      return found(text);
    case "path":
    case "real-path":
      return path(text);
    case "uri":
      return uri(text, namespace);
  }
}

/**
 * Returns the resource of a path. Denies spellings that some servers read as a different path. Examples are `~`, quotes
 * and spaces at the ends, and double slashes.
 */
function path(text: string): CallResources {
  if (!text.startsWith("/")) return denied("the path must be absolute");
  if (text !== text.trim() || /["'`]$/.test(text))
    return denied("the path must not begin or end with a blank, or end with a quote");
  if (/[\\\p{Cc}]|\/\/|\/\.{1,2}(\/|$)/u.test(text))
    return denied("the path must not contain //, the segments . and .., backslashes or control characters");
  // Names are normalized first, because systems may convert compatibility characters (full-width dots, one-dot leaders)
  // to plain dots.
  if (/\/\.{1,2}(\/|$)|\/\/|\\/.test(text.normalize("NFKC")))
    return denied("the path must not contain //, the segments . and .., backslashes or control characters");
  return found(text.length > 1 ? text.replace(/\/$/, "") : text);
}

const ADDRESS = /^([a-z][a-z0-9+.-]*):\/\/([^/?#]*)(\/[^?#]*)?([?#].*)?$/;

function uri(text: string, namespace: string): CallResources {
  const [, scheme, authority = "", rest = "", query] = ADDRESS.exec(text) ?? [];
  if (scheme === undefined) return denied("the argument must be an address of the form scheme://...");
  if (namespace === "web")
    return authority.includes("@") ? denied("the address must not contain a user") : found(text);
  // A query or a fragment is refused, because its text is arbitrary and is not a part of the path.
  if (query !== undefined) return denied("the address must not contain a query or a fragment");
  if (scheme !== "file") return found(`${scheme}${authority === "" ? "" : `/${authority}`}${rest}`);
  return authority === "" ? path(rest) : denied("a file address must not name a host");
}

function found(resource: string): CallResources {
  return { ok: true, resources: [resource], needsRealPath: false };
}

function denied(detail: string): CallResources {
  return { ok: false, detail };
}
