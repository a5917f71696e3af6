import { isObject } from "@depute/core";

/** A tool's argument that HTTP clients repeat in a header (MCP 2026-07-28, Streamable HTTP, `x-mcp-header`). */
export interface ParamHeader {
  /** The name of the header, in lower case. */
  readonly header: string;
  /** The names of the nested properties on the path to the argument, from the outside in. */
  readonly path: readonly string[];
}

const KEY = "x-mcp-header";
const PREFIX = "mcp-param-";
const TYPES: ReadonlySet<unknown> = new Set(["string", "integer", "boolean"]);
/** Matches a `token` of HTTP, such as the name of a header (RFC 9110, section 5.6.2). */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const ENCODED = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/;
const MARKED = /^=\?base64\?.*\?=$/;
/** Matches visible ASCII characters and spaces, without a space at either end. */
const PLAIN = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
/** Maximum number of headers of one tool. Further headers are ignored. */
const MAX_HEADERS = 64;
const MAX_DEPTH = 32;

/**
 * Returns the headers that a tool's inputSchema declares. Only properties and nested properties can declare headers;
 * items of arrays cannot.
 */
export function paramHeadersOf(inputSchema: unknown): readonly ParamHeader[] {
  const found: ParamHeader[] = [];
  collect(inputSchema, [], found);
  return found;
}

function collect(schema: unknown, path: readonly string[], found: ParamHeader[]): void {
  if (!isObject(schema) || path.length > MAX_DEPTH || found.length >= MAX_HEADERS) return;
  const name = schema[KEY];
  if (path.length > 0 && typeof name === "string" && TOKEN.test(name) && TYPES.has(schema.type)) {
    const header = `${PREFIX}${name.toLowerCase()}`;
    if (found.every((other) => other.header !== header)) found.push({ header, path });
  }
  for (const [property, inner] of Object.entries(isObject(schema.properties) ? schema.properties : {})) {
    collect(inner, [...path, property], found);
  }
}

/** Returns the headers of a call with these arguments, by their names. An absent argument has no header. */
export function headersFor(declared: readonly ParamHeader[], args: unknown): Record<string, string> {
  return Object.fromEntries(
    declared.flatMap(({ header, path }) => {
      const text = textAt(args, path);
      return text === undefined ? [] : [[header, encodedHeader(text)]];
    }),
  );
}

/**
 * Compares a request's HTTP headers with the call's arguments.
 *
 * @returns a description of the first difference; undefined if there is none
 */
export function headerFault(
  declared: readonly ParamHeader[],
  args: unknown,
  headers: Pick<Headers, "get">,
): string | undefined {
  for (const { header, path } of declared) {
    const text = textAt(args, path);
    if (text === undefined) continue;
    const value = headers.get(header);
    if (value === null) return `the header ${header} is missing`;
    const decodedValue = decoded(value.trim());
    if (decodedValue === undefined) return `the header ${header} is not valid Base64`;
    if (decodedValue !== text && !isSameNumber(decodedValue, text, valueAt(args, path)))
      return `the header ${header} differs from the argument`;
  }
  return undefined;
}

function isSameNumber(header: string, text: string, value: unknown): boolean {
  return typeof value === "number" && /^-?\d+(\.\d+)?$/.test(header) && Number(header) === Number(text);
}

function textAt(args: unknown, path: readonly string[]): string | undefined {
  const value = valueAt(args, path);
  return ["string", "number", "boolean"].includes(typeof value) ? String(value) : undefined;
}

function valueAt(args: unknown, path: readonly string[]): unknown {
  let value = args;
  for (const name of path) {
    if (!isObject(value) || !Object.hasOwn(value, name)) return undefined;
    value = value[name];
  }
  return value;
}

/** Encodes a text as a header value (MCP 2026-07-28, Streamable HTTP, "Value Encoding"). */
export function encodedHeader(text: string): string {
  if (PLAIN.test(text) && !MARKED.test(text)) return text;
  return `=?base64?${Buffer.from(text).toString("base64")}?=`;
}

function decoded(value: string): string | undefined {
  if (!MARKED.test(value)) return value;
  const [, base64] = ENCODED.exec(value) ?? [];
  if (base64 === undefined) return undefined;
  const bytes = Buffer.from(base64, "base64");
  // Other spellings of the same bytes are refused, so that every reader decodes the same value.
  return bytes.toString("base64") === base64 ? bytes.toString() : undefined;
}
