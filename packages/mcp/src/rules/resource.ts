import { pointAt } from "./pointer.ts";
import { type CallRule, EVERY_RESOURCE, type ResourceForm } from "./tool-map.ts";

/** The resources of a call, at least one and each once, or why there is none: the call is denied then. */
export type Found =
  | { readonly ok: true; readonly resources: readonly string[]; readonly needsRealPath: boolean }
  | { readonly ok: false; readonly detail: string };

/** The most arguments that name a resource in one call. */
const MAX_VALUES = 1000;
/** The most resources of one call that are judged one by one; more count as every resource. */
const MAX_RESOURCES = 64;

/**
 * Which resources a call is about; all of them have to be granted. Nothing is repaired: what is not plainly a resource is
 * denied, and what names none counts as every resource. The forms of patterns and segments are the verifier's to judge (DelegateOS 10.2).
 *
 * @param args the arguments as they are forwarded
 */
export function resourceOf({ namespace, resource: rule }: CallRule, args: unknown): Found {
  if (rule.kind === "fixed") return found(rule.value);
  const values: string[] = [];
  for (const pointer of rule.pointers) {
    const value = pointAt(args, pointer);
    const several = Array.isArray(value) ? value : [value];
    if (several.length > MAX_VALUES) return denied("too many resources");
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

function inForm(text: string, form: ResourceForm, namespace: string): Found {
  // An argument that spells "every resource" does not become a claim to all of them: it is a name with a wildcard.
  if (text.includes("*")) return denied("a wildcard in the argument that names the resource");
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

/** Spellings that servers are known to read as another path: `~`, quotes and blanks at the ends, doubled slashes. */
function path(text: string): Found {
  if (!text.startsWith("/")) return denied("the path is not absolute");
  if (text !== text.trim() || /["'`]$/.test(text)) return denied("the path ends in a blank or a quote");
  if (/[\\\p{Cc}]|\/\/|\/\.{1,2}(\/|$)/u.test(text)) return denied("the path is not in its plain form");
  // Compatibility characters (full-width dots, one-dot leaders) become plain ones where names are normalised.
  if (/\/\.{1,2}(\/|$)|\/\/|\\/.test(text.normalize("NFKC")))
    return denied("the path is not in its plain form");
  return found(text.length > 1 ? text.replace(/\/$/, "") : text);
}

const ADDRESS = /^([a-z][a-z0-9+.-]*):\/\/([^/?#]*)(\/[^?#]*)?([?#].*)?$/;

function uri(text: string, namespace: string): Found {
  const [, scheme, authority = "", rest = "", query] = ADDRESS.exec(text) ?? [];
  if (scheme === undefined) return denied("the argument is not an address of the form scheme://...");
  if (namespace === "web")
    return authority.includes("@") ? denied("a user's name in the address") : found(text);
  // What is behind ? and # may say anything, so that it cannot be part of a path.
  if (query !== undefined) return denied("a query or fragment in the address");
  if (scheme !== "file") return found(`${scheme}${authority === "" ? "" : `/${authority}`}${rest}`);
  return authority === "" ? path(rest) : denied("a file address that names a host");
}

function found(resource: string): Found {
  return { ok: true, resources: [resource], needsRealPath: false };
}

function denied(detail: string): Found {
  return { ok: false, detail };
}
