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
 * Serves a service by calling it elsewhere, with the caller's own credentials, deadline and cancellation.
 *
 * Messages pass as they are; an error of the service is the answer's error, details and all.
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
      // None of the platform's calls is of another kind; one that comes has to be thought about.
      return () => {
        throw new ConnectError(`${method.name} cannot be called through the gateway`, Code.Unimplemented);
      };
  }
}

async function* once<T>(item: T): AsyncIterable<T> {
  yield item;
}
