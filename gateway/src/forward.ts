import type { DescMethod, DescService } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type HandlerContext,
  type ServiceImpl,
  type Transport,
} from "@connectrpc/connect";
import type { Clock } from "@depute/core";
import { forwardOptions } from "@depute/service";

/**
 * Implements a service by calls to another server, with the caller's own credentials, deadline and cancellation.
 * Messages pass unchanged. An error of the service passes with all its details.
 */
export function forwardService<Desc extends DescService>(
  service: Desc,
  transport: Transport,
  clock: Clock,
): ServiceImpl<Desc> {
  const methods: Record<string, unknown> = {};
  for (const method of service.methods) methods[method.localName] = forwardMethod(method, transport, clock);
  return methods as ServiceImpl<Desc>;
}

function forwardMethod(method: DescMethod, transport: Transport, clock: Clock) {
  switch (method.methodKind) {
    case "unary":
      return async (request: object, context: HandlerContext) => {
        const { signal, timeoutMs, headers } = forwardOptions(context, clock);
        const { message } = await transport.unary(
          method as DescMethod & { methodKind: "unary" },
          signal,
          timeoutMs,
          headers,
          request as never,
        );
        return message;
      };
    case "server_streaming":
      return async function* (request: object, context: HandlerContext) {
        const { signal, timeoutMs, headers } = forwardOptions(context, clock);
        const { message } = await transport.stream(
          method as DescMethod & { methodKind: "server_streaming" },
          signal,
          timeoutMs,
          headers,
          once(request) as never,
        );
        yield* message;
      };
    default:
      // The platform has only unary and server-streaming calls, so all other kinds are refused.
      return () => {
        throw new ConnectError(`${method.name} cannot be called through the gateway`, Code.Unimplemented);
      };
  }
}

async function* once<T>(item: T): AsyncIterable<T> {
  yield item;
}
