import { ConnectError, type Interceptor } from "@connectrpc/connect";
import { requestIdKey } from "../call-values.ts";
import { REQUEST_ID_HEADER, requestIdFrom } from "../request-id.ts";

/** Gives each call its id, for logs and for hops, and says it in the response, also when that is an error. */
export function requestIdInterceptor(): Interceptor {
  return (next) => async (request) => {
    const id = requestIdFrom(request.header.get(REQUEST_ID_HEADER));
    request.contextValues.set(requestIdKey, id);
    try {
      const response = await next(request);
      response.header.set(REQUEST_ID_HEADER, id);
      return response;
    } catch (thrown) {
      if (thrown instanceof ConnectError) thrown.metadata.set(REQUEST_ID_HEADER, id);
      throw thrown;
    }
  };
}
