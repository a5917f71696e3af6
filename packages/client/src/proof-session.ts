import { timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type Client,
  Code,
  ConnectError,
  type Interceptor,
  type StreamRequest,
  type StreamResponse,
} from "@connectrpc/connect";
import { HolderSessionService } from "@depute/contracts/depute/tokens/v1/holder_session_service_pb";
import { encodeBase64Url } from "@depute/core";
import { type CallerSession, requestSession } from "@depute/dct";
import type { Holder } from "./holder.ts";
import { metadataOf, reasonOf } from "./reasons.ts";

/** A holder session is replaced this many milliseconds before it expires. */
const MARGIN_MS = 10_000;
/** Minimum number of milliseconds between two attempts of `ready` to open a holder session. */
const ATTEMPT_MS = 5000;

/** The holder of a key, and the platform that the holder trusts. */
export interface SessionHolder extends Holder {
  /**
   * The principal of the platform, which signs holder sessions. Without it, the client cannot detect an impostor
   * between itself and the platform.
   */
  readonly platform?: string;
}

/**
 * Proves possession of the holder's key once per holder session, and authenticates each call by a code of this session.
 * If the platform has lost the session, the interceptor opens a new session and makes the call again. A stream is
 * opened again only before its first message.
 *
 * @param opener a client that sends no credentials
 */
export function sessionInterceptor(
  holder: SessionHolder,
  opener: Client<typeof HolderSessionService>,
): Interceptor {
  const sessions = new ProofSessions(holder, opener);
  return (next) => async (request) => {
    const htu = `${holder.publicUrl}/${request.service.typeName}/${request.method.name}`;
    const prove: Prove = async () => {
      const session = await sessions.current();
      request.header.set("dpop", session.prove({ htm: "POST", htu }));
      if (holder.token !== undefined) request.header.set("authorization", `DPoP ${holder.token}`);
      return (error) => {
        if (!isProofRefused(error)) return false;
        sessions.forget(session);
        return true;
      };
    };
    if (request.stream) return provenStream(request, prove, (each) => next(each) as Promise<StreamResponse>);
    const isSessionLost = await prove();
    try {
      return await next(request);
    } catch (error) {
      if (!isSessionLost(error)) throw error;
    }
    // The platform refuses a call with an invalid proof before it executes the call, so the call can be repeated.
    await prove();
    return next(request);
  };
}

/**
 * Adds an authentication code of the current holder session to a request. Returns a function that decides whether an
 * error means that the platform has lost the session.
 */
type Prove = () => Promise<(error: unknown) => boolean>;

/** Opens a stream, and opens it again if the platform refuses the proof before the first message. */
async function provenStream(
  request: StreamRequest,
  prove: Prove,
  next: (request: StreamRequest) => Promise<StreamResponse>,
): Promise<StreamResponse> {
  // The requests of a client stream are not stored, so the interceptor cannot open such a stream a second time.
  const isRepeatable = request.method.methodKind === "server_streaming";
  const messages = isRepeatable ? await collected(request.message) : [];
  const open = () => next(isRepeatable ? { ...request, message: iterated(messages) } : request);
  const isSessionLost = await prove();

  async function* read(response: StreamResponse) {
    let hasBegun = false;
    try {
      for await (const message of response.message) {
        hasBegun = true;
        yield message;
      }
      return;
    } catch (error) {
      if (!isSessionLost(error) || hasBegun || !isRepeatable) throw error;
    }
    await prove();
    yield* (await open()).message;
  }

  let response: StreamResponse;
  try {
    response = await open();
  } catch (error) {
    if (!isSessionLost(error) || !isRepeatable) throw error;
    await prove();
    return open();
  }
  return { ...response, message: read(response) };
}

async function collected<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

async function* iterated<T>(items: readonly T[]): AsyncIterable<T> {
  yield* items;
}

/** Whether the platform refused the proof of a call, for example because a restart lost the session. */
export function isProofRefused(error: unknown): boolean {
  if (ConnectError.from(error).code === Code.Unauthenticated) return true;
  return reasonOf(error) === "TOKEN_DENIED" && metadataOf(error).denial === "invalid_proof";
}

/** The holder sessions of one key and token, one at a time. */
export class ProofSessions {
  readonly #holder: SessionHolder;
  readonly #opener: Client<typeof HolderSessionService>;
  readonly #audience: string;
  #opening: Promise<CallerSession> | undefined;
  #session: CallerSession | undefined;
  #nextAttempt = 0;

  /**
   * @param opener a client that sends no credentials
   * @param audience the address for which the sessions can be used, including all addresses below it
   */
  constructor(
    holder: SessionHolder,
    opener: Client<typeof HolderSessionService>,
    audience: string = holder.publicUrl,
  ) {
    this.#holder = holder;
    this.#opener = opener;
    this.#audience = audience;
  }

  /** Returns the open session, and opens one if there is none. Throws the error of the call that opens it. */
  async current(): Promise<CallerSession> {
    const session = this.#usable();
    if (session !== undefined) return session;
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  /**
   * Returns the open session. Without one, returns undefined at once, and opens one in the background. Until then, the
   * caller proves its calls by single proofs.
   *
   * @param onFault receives the error of an attempt to open a session
   */
  ready(onFault: (thrown: unknown) => void): CallerSession | undefined {
    const session = this.#usable();
    if (session !== undefined) return session;
    if (Date.now() < this.#nextAttempt) return undefined;
    this.#nextAttempt = Date.now() + ATTEMPT_MS;
    this.current().catch(onFault);
    return undefined;
  }

  /** Ends the use of a session that the platform has lost. */
  forget(session: CallerSession): void {
    if (this.#session === session) this.#session = undefined;
  }

  #usable(): CallerSession | undefined {
    const session = this.#session;
    return session !== undefined && session.terms.expiresAt - Date.now() > MARGIN_MS ? session : undefined;
  }

  async #open(): Promise<CallerSession> {
    const { engine, keypair, publicUrl, token, platform } = this.#holder;
    const audience = this.#audience;
    const { name, parent } = HolderSessionService.method.openHolderSession;
    const htu = `${publicUrl}/${parent.typeName}/${name}`;
    const claims = { htm: "POST", htu, audience, ...(token !== undefined && { token }) };
    const { proof, accept } = requestSession(engine, keypair, claims);
    const headers = { dpop: proof, ...(token !== undefined && { authorization: `DPoP ${token}` }) };
    const { result } = await this.#opener.openHolderSession({ audience }, { headers });
    if (result.case !== "grant") {
      const denial = result.value?.type ?? "no answer";
      throw new ConnectError(
        `the platform opened no holder session: ${denial}; check the key and the token`,
        Code.Unauthenticated,
      );
    }
    const { id, expireTime, verifierKey, signer, signature } = result.value;
    const grant = {
      id,
      signer,
      expiresAt: expireTime === undefined ? 0 : timestampMs(expireTime),
      verifierKey: encodeBase64Url(verifierKey),
      signature: encodeBase64Url(signature),
    };
    this.#session = accept(grant, platform);
    return this.#session;
  }
}
