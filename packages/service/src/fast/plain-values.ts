import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http2";
import { inspect } from "node:util";
import type { ContextKey, ContextValues } from "@connectrpc/connect";

type Fields = Record<string, string | string[] | undefined>;

/**
 * Headers that wrap the header object of Node.js's HTTP/2. Simple reads and writes use that object directly. Every
 * other operation first converts it to real Headers.
 */
export class PlainHeaders {
  readonly #fields: Fields;
  readonly #writable: boolean;
  #full: Headers | undefined;

  /**
   * @param fields values by name in lower case; a name that begins with a colon is a pseudo-header, and is not shown
   */
  private constructor(fields: Fields, writable: boolean) {
    this.#fields = fields;
    this.#writable = writable;
  }

  /**
   * Wraps the headers of a request.
   *
   * @param headers the object to wrap, which is never changed
   */
  static received(headers: IncomingHttpHeaders): Headers {
    return new PlainHeaders(headers, false) as unknown as Headers;
  }

  /**
   * Wraps the headers of a response.
   *
   * @param fields the object to wrap, which writes change
   */
  static toSend(fields: Record<string, string>): Headers {
    return new PlainHeaders(fields, true) as unknown as Headers;
  }

  /** Returns a copy, which writes change. */
  static copyOf(headers: ConstructorParameters<typeof Headers>[0]): Headers {
    if (headers === undefined) return PlainHeaders.toSend({});
    const fields = headers instanceof PlainHeaders && headers.#writable ? headers.fields : undefined;
    return fields === undefined
      ? new Headers(headers)
      : PlainHeaders.toSend({ ...fields } as Record<string, string>);
  }

  get(name: string): string | null {
    if (this.#full !== undefined || !isPlainName(name)) return this.#real().get(name);
    if (!Object.hasOwn(this.#fields, name)) return null;
    const value = this.#fields[name];
    return typeof value === "string" && VALUE.test(value) ? value : this.#real().get(name);
  }

  has(name: string): boolean {
    return this.#full !== undefined || !isPlainName(name)
      ? this.#real().has(name)
      : Object.hasOwn(this.#fields, name);
  }

  set(name: string, value: string): void {
    if (this.#writable && this.#full === undefined && isPlainName(name) && VALUE.test(value))
      this.#fields[name] = value;
    else this.#real().set(name, value);
  }

  append(name: string, value: string): void {
    if (this.has(name)) this.#real().append(name, value);
    else this.set(name, value);
  }

  delete(name: string): void {
    if (!this.#writable || this.#full !== undefined || !isPlainName(name)) this.#real().delete(name);
    else if (Object.hasOwn(this.#fields, name)) delete this.#fields[name];
  }

  getSetCookie(): string[] {
    return this.#real().getSetCookie();
  }

  forEach(callback: (value: string, name: string, parent: Headers) => void, thisArg?: unknown): void {
    for (const [name, value] of this.#real()) callback.call(thisArg, value, name, this as unknown as Headers);
  }

  keys(): ReturnType<Headers["keys"]> {
    return this.#real().keys();
  }

  values(): ReturnType<Headers["values"]> {
    return this.#real().values();
  }

  entries(): ReturnType<Headers["entries"]> {
    return this.#real().entries();
  }

  [Symbol.iterator](): ReturnType<Headers["entries"]> {
    return this.#real().entries();
  }

  [inspect.custom](): unknown {
    return this.#real();
  }

  /** Returns the wrapped object; undefined if its fields were converted to real Headers. */
  get fields(): OutgoingHttpHeaders | undefined {
    return this.#full === undefined ? this.#fields : undefined;
  }

  #real(): Headers {
    if (this.#full !== undefined) return this.#full;
    const full = new Headers();
    for (const [name, value] of Object.entries(this.#fields)) {
      if (value === undefined || name.startsWith(":")) continue;
      for (const each of typeof value === "string" ? [value] : value) full.append(name, each);
    }
    this.#full = full;
    return full;
  }
}

// With this prototype, `instanceof Headers` is true. The class above defines every method of Headers.
Object.setPrototypeOf(PlainHeaders.prototype, Headers.prototype);

/**
 * Matches header names in HTTP/2's form. It does not match Set-Cookie, whose values cannot be joined, nor names with a
 * special meaning in objects, such as `__proto__`.
 */
const NAME = /^(?!set-cookie$)[a-z0-9-]+$/;
const plainNames = new Set<string>();

function isPlainName(name: string): boolean {
  if (plainNames.has(name)) return true;
  if (!NAME.test(name)) return false;
  if (plainNames.size < 1000) plainNames.add(name);
  return true;
}

/** Matches values that Headers would not normalise: ASCII without spaces at the ends. */
const VALUE = /^[!-~](?:[ -~]*[!-~])?$/;

// Header names that HTTP/2 forbids. Handlers may set them for HTTP/1.1 clients, so they are removed from HTTP/2
// responses.
const NOT_HTTP2 = new Set([
  "connection",
  "http2-settings",
  "keep-alive",
  "proxy-connection",
  "te",
  "transfer-encoding",
  "upgrade",
]);

/** Converts headers to Node's form for HTTP/2. */
export function toNodeHeaders(headers: Headers): OutgoingHttpHeaders {
  const fields = toNodeFields(headers);
  for (const name in fields) if (NOT_HTTP2.has(name)) delete fields[name];
  return fields;
}

/** Converts headers to Node's form. */
export function toNodeFields(headers: Headers): OutgoingHttpHeaders {
  const plain = headers instanceof PlainHeaders ? (headers as unknown as PlainHeaders).fields : undefined;
  const fields: OutgoingHttpHeaders = plain ?? {};
  if (plain === undefined) {
    for (const [name, value] of headers) {
      const existing = fields[name] as string | string[] | undefined;
      fields[name] = existing === undefined ? value : [existing, value].flat();
    }
  }
  return fields;
}

/** Implements Connect's ContextValues as a class, so that all calls share its methods. */
export class PlainValues implements ContextValues {
  get<T>(key: ContextKey<T>): T {
    const values = this as unknown as Record<symbol, T>;
    return key.id in values ? (values[key.id] as T) : key.defaultValue;
  }

  set<T>(key: ContextKey<T>, value: T): this {
    (this as unknown as Record<symbol, T>)[key.id] = value;
    return this;
  }

  delete(key: ContextKey<unknown>): this {
    delete (this as unknown as Record<symbol, unknown>)[key.id];
    return this;
  }
}
