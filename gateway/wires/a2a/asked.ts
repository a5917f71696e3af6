import type { IncomingHttpHeaders } from "node:http";
import { A2A_EXTENSIONS, invalid } from "@depute/core";
import type { WireRequest } from "../../edge/route.ts";
import type { WireCall } from "../../edge/wire-call.ts";
import type { A2aCall } from "./call.ts";
import {
  AFTER_PARAMETER,
  activatedExtensions,
  EXTENSIONS_PARAMETER,
  VERSION_PARAMETER,
} from "./parameters.ts";

/** The extensions that clients may activate. */
const EXTENSIONS: ReadonlySet<string> = new Set(Object.values(A2A_EXTENSIONS).map(({ uri }) => uri));

/** The request headers that may contain credentials. */
const CREDENTIALS = ["authorization", "dpop", "x-api-key"];

/**
 * Returns the A2A version that the header or the query of a request states; undefined if neither states one. (A2A
 * 3.6.1)
 */
export function statedIn({ headers, query }: Pick<WireRequest, "headers" | "query">): string | undefined {
  return headerOf(headers, VERSION_PARAMETER) ?? query.get(VERSION_PARAMETER) ?? undefined;
}

/**
 * Returns the call data of an HTTP request. `agentId` is the agent in the address; empty if the address has none.
 * Throws DeputeError INVALID_REQUEST for a malformed `A2A-After-Sequence`.
 */
export function callAt(agentId: string, { headers }: Pick<WireRequest, "headers">, call: WireCall): A2aCall {
  const hasCredentials = CREDENTIALS.some((name) => headers[name] !== undefined);
  const extensions = activeIn(headers);
  return { agentId, call, hasCredentials, extensions, ...afterIn(headers, extensions) };
}

/**
 * Returns the response header that lists the activated extensions, or no header if there are none. (A2A
 * 3.2.6)
 */
export function extensionHeaders(received: IncomingHttpHeaders): Readonly<Record<string, string>> {
  const active = activeIn(received);
  return active.size === 0 ? {} : { [EXTENSIONS_PARAMETER]: [...active].join(", ") };
}

function activeIn(headers: IncomingHttpHeaders): ReadonlySet<string> {
  return activatedExtensions(headerOf(headers, EXTENSIONS_PARAMETER), EXTENSIONS);
}

/**
 * Returns the sequence of the event after which a subscription resumes. The result is empty if the request states no
 * sequence, or has not activated the resume extension.
 *
 * @throws DeputeError INVALID_REQUEST
 */
function afterIn(headers: IncomingHttpHeaders, active: ReadonlySet<string>): Pick<A2aCall, "afterSequence"> {
  const stated = headerOf(headers, AFTER_PARAMETER);
  if (stated === undefined || !active.has(A2A_EXTENSIONS.RESUMABLE_STREAMS.uri)) return {};
  if (!/^\d{1,15}$/.test(stated)) throw invalid(AFTER_PARAMETER, "must be a sequence of this task");
  return { afterSequence: BigInt(stated) };
}

function headerOf(headers: IncomingHttpHeaders, name: string): string | undefined {
  return headers[name.toLowerCase()]?.toString();
}
