import type { Interceptor } from "@connectrpc/connect";
import { type CryptoEngine, createProof, type Keypair } from "@depute/dct";

/** Who calls, and under which token. */
export interface Holder {
  readonly engine: CryptoEngine;
  readonly keypair: Keypair;
  /** The platform's public address, as its DEPUTE_PUBLIC_URL says it, without a trailing slash. */
  readonly publicUrl: string;
  /** The token to present; its last delegatee must be the keypair's principal. Absent: the proof only says who calls. */
  readonly token?: string;
}

/**
 * The headers by which a holder proves possession of its key for one request, as RFC 9449 has it.
 *
 * @param path the path that is called, e.g. `/depute.tasks.v1.TaskService/CreateTask` or `/nekte`
 */
export function holderHeaders(holder: Holder, path: string, method = "POST"): Record<string, string> {
  const { engine, keypair, publicUrl, token } = holder;
  const claims = { htm: method, htu: `${publicUrl}${path}` };
  const dpop = createProof(engine, keypair, token === undefined ? claims : { ...claims, token });
  return token === undefined ? { dpop } : { dpop, authorization: `DPoP ${token}` };
}

/** Gives every call a holder proof of its own. A proof serves once, so a retried call must pass here again. */
export function holderInterceptor(holder: Holder): Interceptor {
  return (next) => (request) => {
    const path = `/${request.service.typeName}/${request.method.name}`;
    for (const [name, value] of Object.entries(holderHeaders(holder, path))) request.header.set(name, value);
    return next(request);
  };
}
