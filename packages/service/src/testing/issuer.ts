import type { webcrypto } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer as createHttpServer } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo } from "node:net";
import {
  exportJWK,
  generateKeyPair,
  type JWK,
  type JWTHeaderParameters,
  type JWTPayload,
  SignJWT,
} from "jose";

/** A key pair of an issuer. */
export interface IssuerKey {
  readonly kid: string;
  readonly alg: string;
  readonly privateKey: webcrypto.CryptoKey;
  readonly jwk: JWK;
}

/**
 * An issuer of JSON Web Tokens with discovery, on a port of loopback. A test can replace each of its documents by a
 * hostile one.
 */
export interface TestIssuer {
  readonly url: string;
  /** The keys that the issuer publishes. A test may change the list. */
  readonly keys: IssuerKey[];
  /** The requests that arrived, with the path and the `authorization` header. */
  readonly requests: { path: string; authorization: string | undefined }[];
  /** Functions that answer single paths instead of the issuer, by path. */
  readonly answers: Map<string, (request: IncomingMessage, response: ServerResponse) => void>;
  /**
   * Signs a JSON Web Token with `key`, or with the last key if `key` is absent. Members of `claims` and `header`
   * replace the defaults; an undefined member removes its default.
   */
  sign(
    claims: Record<string, unknown>,
    header?: { readonly [name in keyof JWTHeaderParameters]?: string | undefined },
    key?: IssuerKey,
  ): Promise<string>;
  stop(): Promise<void>;
}

export async function createIssuerKey(kid: string, alg = "ES256"): Promise<IssuerKey> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  return { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: "sig" } };
}

/**
 * @param now returns the time in epoch milliseconds; a JSON Web Token is valid for five minutes from its signing
 * @param tls the certificate of the issuer in PEM; absent for clear text
 */
export async function startTestIssuer(
  now: () => number,
  tls?: { readonly certificate: string; readonly key: string },
): Promise<TestIssuer> {
  const keys = [await createIssuerKey("first")];
  const requests: TestIssuer["requests"] = [];
  const answers: TestIssuer["answers"] = new Map();
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    const path = request.url ?? "";
    requests.push({ path, authorization: request.headers.authorization });
    const other = answers.get(path);
    if (other !== undefined) return other(request, response);
    const documents: Record<string, unknown> = {
      "/.well-known/openid-configuration": { issuer: url, jwks_uri: `${url}/keys` },
      "/keys": { keys: keys.map(({ jwk }) => jwk) },
    };
    const document = documents[path];
    response.writeHead(document === undefined ? 404 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(document ?? {}));
  };
  const server =
    tls === undefined
      ? createHttpServer(listener)
      : createHttpsServer({ cert: tls.certificate, key: tls.key }, listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const scheme = tls === undefined ? "http" : "https";
  const url = `${scheme}://localhost:${(server.address() as AddressInfo).port}`.replace(
    "http://localhost",
    "http://127.0.0.1",
  );
  return {
    url,
    keys,
    requests,
    answers,
    sign(claims, header = {}, key = keys.at(-1)) {
      if (key === undefined) throw new Error("the issuer has no key");
      const iat = Math.floor(now() / 1000);
      const payload: JWTPayload = { iss: url, aud: "depute", sub: "ada", iat, exp: iat + 300, ...claims };
      const protectedHeader = { alg: key.alg, kid: key.kid, typ: "JWT", ...header };
      return new SignJWT(JSON.parse(JSON.stringify(payload)))
        .setProtectedHeader(JSON.parse(JSON.stringify(protectedHeader)))
        .sign(key.privateKey);
    },
    stop() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
