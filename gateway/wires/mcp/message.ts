import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { isObject } from "@depute/core";
import { type McpProxy, once, type Presentation, Refusal } from "@depute/mcp";
import type { HttpRequest } from "@depute/service";
import { JSON_RPC, OWN } from "../../edge/own-codes.ts";

/** The body that the published DelegateOS client sends to /mcp/message. */
interface Message {
  readonly id: string | number;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly dct: string | undefined;
}

const MEMBERS: ReadonlySet<string> = new Set(["jsonrpc", "id", "method", "params", "dct"]);
const TOKEN = /^[A-Za-z0-9_-]{1,16000}$/;

/**
 * Answers a request of the published DelegateOS client: `{id, method, params, dct?}`, with the token as `Authorization:
 * Bearer` or `DPoP`, or in `dct`. DelegateOS does not define this address, but its client uses it. The proxy checks the
 * token as for all other requests. So the request needs a holder proof (header `DPoP`) unless
 * `DEPUTE_HOLDER_PROOF=optional`.
 *
 * @param proxies the proxies, by server name
 * @param name the name of the addressed server; empty if only one server exists
 * @param url the target that a proof must name
 * @throws Refusal
 */
export async function answerMessage(
  proxies: ReadonlyMap<string, McpProxy>,
  name: string,
  body: JsonValue | undefined,
  request: HttpRequest,
  web: Request,
  url: string,
): Promise<Response> {
  const { id, method, params, dct } = readMessage(body);
  const proxy = proxyOf(proxies, name);
  const presentation = presentationOf(request, dct, url);
  const result = await proxy.handle({
    ...{ method, params, signal: web.signal },
    ...(presentation !== undefined && { presentation }),
  });
  return Response.json({ jsonrpc: "2.0", id, result });
}

function readMessage(body: JsonValue | undefined): Message {
  if (!isObject(body)) throw malformed("the body must be an object");
  const unknown = Object.keys(body).find((name) => !MEMBERS.has(name));
  if (unknown !== undefined)
    throw malformed(`${JSON.stringify(unknown.slice(0, 64))} is not a member of a message: remove it`);
  const { jsonrpc, id, method, params = {}, dct } = body as JsonObject;
  if (jsonrpc !== undefined && jsonrpc !== "2.0") throw malformed("jsonrpc must be 2.0");
  if (typeof id !== "string" && typeof id !== "number") throw malformed("id must be a text or a number");
  if (typeof method !== "string" || method === "") throw malformed("method must be a text that is not empty");
  if (!isObject(params)) throw malformed("params must be an object");
  if (dct !== undefined && (typeof dct !== "string" || !TOKEN.test(dct)))
    throw malformed("dct must be a token");
  return { id, method, params, dct };
}

function proxyOf(proxies: ReadonlyMap<string, McpProxy>, name: string): McpProxy {
  const [only, ...others] = proxies.values();
  const proxy = name === "" && others.length === 0 ? only : proxies.get(name);
  if (proxy !== undefined) return proxy;
  const detail =
    proxies.size === 0
      ? "no MCP server is configured; set DEPUTE_MCP_CONFIG"
      : `name the server: ${[...proxies.keys()].map((one) => `/mcp/message/${one}`).join(", ")}`;
  throw new Refusal(OWN.NOT_FOUND.code, OWN.NOT_FOUND.message, { reason: "UNKNOWN_METHOD", detail });
}

/**
 * Returns the token in the header or the body, with the holder proof in the header; undefined if there is no token.
 * Throws Refusal if the header and the body have different tokens.
 */
function presentationOf(
  { headers }: HttpRequest,
  dct: string | undefined,
  url: string,
): Presentation | undefined {
  const [, headerToken] = /^(?:Bearer|DPoP) +([A-Za-z0-9_-]+) *$/i.exec(headers.authorization ?? "") ?? [];
  if (headerToken !== undefined && dct !== undefined && headerToken !== dct) {
    throw malformed("dct must be the same token as in the header");
  }
  const token = headerToken ?? dct;
  if (token === undefined) return undefined;
  const { dpop: jwt } = headers;
  return once(token, "", typeof jwt === "string" ? { jwt, method: "POST", target: url } : undefined);
}

function malformed(detail: string): Refusal {
  const { code, message } = JSON_RPC.INVALID_REQUEST;
  return new Refusal(code, message, { reason: "INVALID_REQUEST", detail });
}
