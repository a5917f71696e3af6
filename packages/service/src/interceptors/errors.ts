import type { Interceptor } from "@connectrpc/connect";
import { requestIdKey } from "../call-values.ts";
import { toConnectError } from "../errors-on-wire.ts";
import { withHooks } from "./outcome.ts";

/** Turns whatever a handler throws, at once or in mid stream, into the error that travels; see errors-on-wire.ts. */
export function errorsInterceptor(): Interceptor {
  return (next) => (request) =>
    withHooks(next, request, {
      mapError: (thrown) => toConnectError(thrown, request.contextValues.get(requestIdKey)),
    });
}
