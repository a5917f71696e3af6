import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http2";
import { inspect } from "node:util";

type Fields = Record<string, string | string[] | undefined>;

/**
 * Headers over the object that Node's HTTP/2 gives and takes. Looking a field up, and setting one whose name and value
 * need no normalising, work on that object; for everything else a real Headers takes its place.
 */
export class PlainHeaders {
  readonly #fields: Fields;
  readonly #writable: boolean;
  #full: Headers | undefined;

  /** @param fields names in lower case; a name that begins with a colon is no field. */
  private constructor(fields: Fields, writable: boolean) {
    this.#fields = fields;
    this.#writable = writable;
  }

  /** @param headers is left as it is */
  static received(headers: IncomingHttpHeaders): Headers {
    return new PlainHeaders(headers, false) as unknown as Headers;
  }

  /** @param fields is written to */
  static toSend(fields: Record<string, string>): Headers {
    return new PlainHeaders(fields, true) as unknown as Headers;
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
    this.#real().delete(name);
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

  /** The object for Node, when nothing but setting happened to it. */
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

// What asks whether it holds Headers gets a yes; every method of theirs is defined above.
Object.setPrototypeOf(PlainHeaders.prototype, Headers.prototype);

/** Names as HTTP/2 has them; not Set-Cookie, whose values do not join, nor what means something else to an object. */
const NAME = /^(?!set-cookie$)[a-z0-9-]+$/;
const plainNames = new Set<string>();

function isPlainName(name: string): boolean {
  if (plainNames.has(name)) return true;
  if (!NAME.test(name)) return false;
  if (plainNames.size < 1000) plainNames.add(name);
  return true;
}

/** Visible ASCII without space around it: what no normalising changes. */
const VALUE = /^[!-~](?:[ -~]*[!-~])?$/;

// They belong to HTTP/1.1, and HTTP/2 forbids them; a handler does not know which of the two it answers.
const NOT_HTTP2 = new Set([
  "connection",
  "http2-settings",
  "keep-alive",
  "proxy-connection",
  "te",
  "transfer-encoding",
  "upgrade",
]);

/** Headers in Node's form for HTTP/2. */
export function toNodeHeaders(headers: Headers): OutgoingHttpHeaders {
  const plain = headers instanceof PlainHeaders ? (headers as unknown as PlainHeaders).fields : undefined;
  const fields: OutgoingHttpHeaders = plain ?? {};
  if (plain === undefined) {
    for (const [name, value] of headers) {
      const present = fields[name] as string | string[] | undefined;
      fields[name] = present === undefined ? value : [present, value].flat();
    }
  }
  for (const name in fields) if (NOT_HTTP2.has(name)) delete fields[name];
  return fields;
}
