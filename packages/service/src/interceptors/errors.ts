import type { Interceptor } from "@connectrpc/connect";
import { requestIdKey } from "../call-values.ts";
import { toConnectError, withNote } from "../errors-on-wire.ts";
import { type Manners, NO_MANNERS } from "../service-manners.ts";
import { withHooks } from "./outcome.ts";

/** Turns whatever a handler throws, at once or in mid stream, into the error that travels; see errors-on-wire.ts. */
export function errorsInterceptor(manners: Manners = NO_MANNERS): Interceptor {
  return (next) => (request) =>
    withHooks(next, request, {
      mapError: (thrown) =>
        withNote(
          toConnectError(thrown, request.contextValues.get(requestIdKey)),
          manners.get(request.service.typeName)?.errorNote,
        ),
    });
}
