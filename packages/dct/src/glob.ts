import { MAX_RESOURCE_CHARS } from "./limits.ts";

/**
 * A resource, or a pattern of resources, split at its slashes (DelegateOS 10.2). One leading and one trailing slash are
 * markers and not segments: `/a`, `a` and `/a/` are three different resources.
 */
export interface Path {
  readonly leading: boolean;
  readonly trailing: boolean;
  readonly segments: readonly string[];
}

/**
 * A pattern. `universal` is true for a single `*` or `**`, which match every resource. Consecutive `**` are merged into
 * one.
 */
export interface Pattern extends Path {
  readonly universal: boolean;
}

/** The function parsePattern, or a version of it with a cache. */
export type PatternReader = (text: string, namespace: string) => Pattern | { problem: string };

/**
 * Matches control characters, which URL parsers drop, and the backslash, which some URL parsers read as a
 * slash.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it is there to refuse them
const FORBIDDEN_CHARACTERS = /[\u0000-\u001f\u007f\\]/;

/** Matches escapes that a later decoder would turn into `.`, `/` or `\`. Other escapes are literal. */
const FORBIDDEN_ESCAPES = /%(2e|2f|5c)/i;

/**
 * Whether resources of a namespace may be addresses. Only `web` and every custom `org:namespace` have such
 * resources (DelegateOS 12).
 */
export function hasAddresses(namespace: string): boolean {
  return namespace === "web" || namespace.includes(":");
}

const URL_ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/[^/]*/i;

/**
 * Parses a pattern, or returns its problem. Malformed patterns are refused and never repaired. These are malformed:
 * empty segments, `.` and `..`, escapes of `.`, `/` and `\`, backslashes, and control characters. These are
 * malformed too: empty and too long texts, spaces at either end, lone surrogates, `scheme://` without an authority,
 * and a wildcard that is only part of a segment. In the namespace `web` and in custom namespaces, `scheme://authority`
 * is the first segment, which is compared exactly.
 */
export function parsePattern(text: string, namespace: string): Pattern | { problem: string } {
  const path = parsePath(text, namespace);
  if ("problem" in path) return path;
  if (path.segments.some((segment) => segment.includes("*") && segment !== "*" && segment !== "**")) {
    return { problem: "partial wildcard" };
  }
  const segments = path.segments.filter((segment, i) => segment !== "**" || path.segments[i - 1] !== "**");
  return { ...path, segments, universal: text === "*" || text === "**" };
}

/**
 * Parses a requested resource, or returns its problem. The rules are those of parsePattern, with one exception. A
 * `*` within a resource is refused, because the tool that receives the resource might read it as a wildcard. A lone
 * `*` is allowed and means every resource.
 */
export function parseResource(text: string, namespace: string): Path | { problem: string } {
  const path = parsePath(text, namespace);
  if ("problem" in path || text === "*" || !text.includes("*")) return path;
  return { problem: "wildcard" };
}

/**
 * Whether a pattern matches a resource. `*` matches one segment, `**` any number; a lone `*` or `**` matches every
 * resource.
 */
export function matches(pattern: Pattern, resource: Path): boolean {
  if (pattern.universal) return true;
  // A request for every resource is granted only by a pattern that matches every resource.
  if (resource.segments.length === 1 && resource.segments[0] === "*") return false;
  if (pattern.leading !== resource.leading || pattern.trailing !== resource.trailing) return false;
  return matchSegments(pattern.segments, resource.segments);
}

/**
 * Compares segments with two pointers. At a mismatch, the last `**` matches one more segment of the resource, and
 * the comparison continues after that segment. Therefore the time is at most the product of both lengths.
 */
function matchSegments(pattern: readonly string[], resource: readonly string[]): boolean {
  let p = 0;
  let r = 0;
  let star = -1;
  let resume = 0;
  while (r < resource.length) {
    if (pattern[p] === "**") {
      star = p++;
      resume = r;
    } else if (p < pattern.length && (pattern[p] === "*" || pattern[p] === resource[r])) {
      p++;
      r++;
    } else if (star >= 0) {
      p = star + 1;
      r = ++resume;
    } else {
      return false;
    }
  }
  while (pattern[p] === "**") p++;
  return p === pattern.length;
}

function parsePath(text: string, namespace: string): Path | { problem: string } {
  const problem = findProblem(text);
  if (problem !== undefined) return { problem };
  const origin = hasAddresses(namespace) ? URL_ORIGIN.exec(text)?.[0] : undefined;
  if (origin?.endsWith("://")) return { problem: "no authority" };
  const parts = text.slice(origin?.length ?? 0).split("/");
  const leading = origin === undefined && parts[0] === "";
  // A slash or the end of the text follows the origin. So the first part is empty, and the origin takes its place.
  if (origin !== undefined) parts[0] = origin;
  else if (leading) parts.shift();
  const trailing = parts.length > 1 && parts.at(-1) === "";
  if (trailing || text === "/") parts.pop();
  if (parts.includes("")) return { problem: "empty segment" };
  if (parts.includes(".") || parts.includes("..")) return { problem: "dot segment" };
  return { leading, trailing, segments: parts };
}

function findProblem(text: string): string | undefined {
  if (text === "") return "empty";
  if (text.length > MAX_RESOURCE_CHARS) return "too long";
  if (!text.isWellFormed()) return "lone surrogate";
  if (FORBIDDEN_CHARACTERS.test(text)) return "forbidden character";
  if (FORBIDDEN_ESCAPES.test(text)) return "forbidden escape";
  if (text.startsWith(" ") || text.endsWith(" ")) return "space at an end";
  return undefined;
}
