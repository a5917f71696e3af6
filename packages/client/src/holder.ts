import type { Interceptor } from "@connectrpc/connect";
import { type CryptoEngine, createProof, type Keypair } from "@depute/dct";

/** The caller's key and token. */
export interface Holder {
  readonly engine: CryptoEngine;
  readonly keypair: Keypair;
  /** The platform's public address without a trailing slash. It must equal the platform's DEPUTE_PUBLIC_URL. */
  readonly publicUrl: string;
  /**
   * The token to present. Its last delegatee must be the keypair's principal. If absent, the proof only identifies
   * the caller.
   */
  readonly token?: string;
}

/**
 * Returns the headers that prove possession of the holder's key for one request (RFC 9449).
 *
 * @param path the path of the call, for example `/depute.tasks.v1.TaskService/CreateTask` or `/nekte`
 */
export function holderHeaders(holder: Holder, path: string, method = "POST"): Record<string, string> {
  const { engine, keypair, publicUrl, token } = holder;
  const claims = { htm: method, htu: `${publicUrl}${path}` };
  const dpop = createProof(engine, keypair, token === undefined ? claims : { ...claims, token });
  return token === undefined ? { dpop } : { dpop, authorization: `DPoP ${token}` };
}

/**
 * Adds a new holder proof to every call. Each proof is valid once, so a repeated call must pass through this
 * interceptor again.
 */
export function holderInterceptor(holder: Holder): Interceptor {
  return (next) => (request) => {
    const path = `/${request.service.typeName}/${request.method.name}`;
    for (const [name, value] of Object.entries(holderHeaders(holder, path))) request.header.set(name, value);
    return next(request);
  };
}
