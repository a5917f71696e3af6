import type { Interceptor, Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import type { Credentials } from "./credentials.ts";

/** Timeout of a unary call in milliseconds. */
const CALL_MS = 30_000;

/** Creates the transport to the platform that served the page. */
export function createTransport(credentials: Credentials): Transport {
  return createConnectTransport({
    baseUrl: location.origin,
    useBinaryFormat: true,
    interceptors: [limited, presenting(credentials)],
  });
}

const limited: Interceptor = (next) => (request) => {
  const signal = AbortSignal.any([request.signal, AbortSignal.timeout(CALL_MS)]);
  return next(request.stream ? request : { ...request, signal });
};

function presenting(credentials: Credentials): Interceptor {
  return (next) => async (request) => {
    if (credentials.kind === "secret") request.header.set("authorization", `Bearer ${credentials.secret}`);
    if (credentials.kind === "key") {
      // The code for signatures is loaded on demand, because only callers with a key need it.
      const { proofHeaders } = await import("./proof.ts");
      const path = `/${request.service.typeName}/${request.method.name}`;
      const headers = proofHeaders(credentials, `${location.origin}${path}`);
      for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
    }
    return next(request);
  };
}
