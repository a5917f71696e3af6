import { ErrorReason, reasonName } from "@depute/core";
import { certificateOfRequest, type HttpRequest, type HttpResponse, reasonOf } from "@depute/service";
import { refusalIn } from "./fault.ts";
import type { CallNote } from "./json-rpc.ts";
import type { WireCall } from "./wire-call.ts";
import type { WireDeps } from "./wire-deps.ts";

/** How a request ended. */
export interface Outcome {
  /** The exception that the request caused; absent if the request succeeded. */
  readonly thrown?: unknown;
  /** The calls of a JSON-RPC body. Each call gets its own log line. */
  readonly notes?: readonly CallNote[];
}

/** A request that a wire answers. */
export interface LoggedRequest {
  /** The name of the wire. */
  readonly wire: string;
  /**
   * The path as the route declares it. The log does not contain the requested path, because that path may contain
   * ids.
   */
  readonly path: string;
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly call: WireCall;
}

/**
 * Prepares the log lines of a request. The returned function writes the lines. Each line contains the wire, the
 * method, the path, the status, the duration in milliseconds, the request id and the caller. Served requests, and
 * those whose client has disconnected, are logged at debug, refused ones at info, and faults of this process at error
 * with their cause.
 */
export function beginLog(
  logged: LoggedRequest,
  { clock, log, principalOf }: WireDeps,
): (outcome: Outcome) => void {
  const begin = clock.monotonic();
  const { wire, path, request, response, call } = logged;
  return ({ thrown, notes = [] }) => {
    const lines: Partial<CallNote>[] = notes.length === 0 ? [{ thrown }] : [...notes];
    for (const line of lines) {
      const level = levelOf(line.thrown, call.signal.aborted);
      if (!log.isLevelEnabled(level)) continue;
      const fields = {
        wire,
        method: request.method,
        path,
        ...(line.method !== undefined && { rpc: line.method.slice(0, 64) }),
        ...(line.code !== undefined && { code: line.code }),
        status: response.statusCode,
        ms: Math.round((clock.monotonic() - begin) * 100) / 100,
        request_id: call.requestId,
        ...callerOf(request, call, line, principalOf),
        ...(line.thrown !== undefined && { reason: reasonName(refusalIn(line.thrown).reason) }),
        ...(level === "error" && { err: line.thrown }),
      };
      log[level](fields, "wire");
    }
  };
}

/**
 * Returns the level of a log line: debug for a success or a client that has left, error for a fault of this process,
 * otherwise info. The INTERNAL error of a service is at info, because the service itself has logged the cause.
 */
function levelOf(thrown: unknown, hasLeft: boolean): "debug" | "info" | "error" {
  if (thrown === undefined || hasLeft) return "debug";
  const isOurs = refusalIn(thrown).reason === ErrorReason.INTERNAL && reasonOf(thrown) === undefined;
  return isOurs ? "error" : "info";
}

/**
 * Returns the members of the log line about the caller. If neither this process nor a successful call has proven the
 * principal, they are `unproven` and the key that the holder proof claims, if any.
 */
function callerOf(
  request: HttpRequest,
  { viewer, wasPresented }: WireCall,
  { thrown, code = 0 }: Partial<CallNote>,
  principalOf: WireDeps["principalOf"],
) {
  const principal = principalOf(request.headers, certificateOfRequest(request));
  if (principal !== "") return { caller: principal };
  if (viewer && wasPresented() && thrown === undefined && code === 0) return { caller: viewer };
  return { caller: "unproven", ...(viewer && { claims: viewer }) };
}
