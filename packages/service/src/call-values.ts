import { type ContextKey, type ContextValues, createContextKey } from "@connectrpc/connect";
import type { Quotas } from "./quotas/quotas.ts";

/** Facts about a call that interceptors pass to handlers and to later interceptors. */

/** The call's id in logs and in the response; see request-id.ts. */
export const requestIdKey: ContextKey<string> = createContextKey("", { description: "request id" });

/**
 * The principal that a holder proof, a token or a message has proven in this call. Empty before the proof, and in calls
 * without such a proof, such as calls with a credential.
 */
export const principalKey: ContextKey<string> = createContextKey("", { description: "principal" });

/** The call's deadline in epoch milliseconds; undefined for a call without deadline. */
export const deadlineKey: ContextKey<number | undefined> = createContextKey<number | undefined>(undefined, {
  description: "deadline",
});

/**
 * Called with the caller's principal as soon as it is proven. Throws DeputeError CALLER_NOT_ALLOWED if the caller has
 * no role that the method requires. Undefined if the call needs no check of roles at that time.
 */
export const roleCheckKey: ContextKey<((principal: string) => void) | undefined> = createContextKey<
  ((principal: string) => void) | undefined
>(undefined, { description: "role check" });

/**
 * True if only another process can check the roles of the call's caller. This process then does not validate the
 * request; the other process validates the request after it has checked the roles.
 */
export const rolesOpenKey: ContextKey<boolean> = createContextKey(false, { description: "roles open" });

/** True for a call that did not cross a socket. Only `createDirectTransport` sets this value. */
export const inProcessKey: ContextKey<boolean> = createContextKey(false, { description: "in process" });

/**
 * The SPIFFE id in the client certificate of the call's connection. Empty if the certificate has no SPIFFE id;
 * undefined if the client has no certificate.
 */
export const clientCertificateKey: ContextKey<string | undefined> = createContextKey<string | undefined>(
  undefined,
  { description: "client certificate" },
);

/** The network address of the connection's client, without a port; empty for a UNIX socket and within the process. */
export const clientAddressKey: ContextKey<string> = createContextKey("", { description: "client address" });

/** True for a call of the platform's own processes: in process, or with the internal secret. */
export const trustedKey: ContextKey<boolean> = createContextKey(false, { description: "trusted" });

/**
 * Counts the call against the quotas of its caller, once the caller's principal is proven; undefined if the call is
 * counted already, or has no quotas.
 */
export const chargeKey: ContextKey<((principal: string, organization: string) => void) | undefined> =
  createContextKey<((principal: string, organization: string) => void) | undefined>(undefined, {
    description: "charge",
  });

/** The quotas that the call's service counts; undefined for none. */
export const quotasKey: ContextKey<Quotas | undefined> = createContextKey<Quotas | undefined>(undefined, {
  description: "quotas",
});

/** Milliseconds of processor time that the call's verifications took and that no quota has counted yet. */
export const cpuTallyKey: ContextKey<number> = createContextKey(0, { description: "cpu tally" });

/** The sizes of a call's messages, in bytes of their encoded form, before compression and without headers. */
export interface MessageSizes {
  readonly request: number;
  /** Called with the size of each message of the response. */
  onAnswer?: (bytes: number) => void;
}

/** The sizes of the call's messages; undefined if the transport does not know them. */
export const messageSizesKey: ContextKey<MessageSizes | undefined> = createContextKey<
  MessageSizes | undefined
>(undefined, { description: "message sizes" });

/** The revocation ids of the caller's token, beginning with the authority block; empty without a verified token. */
export const blocksKey: ContextKey<readonly string[]> = createContextKey<readonly string[]>([], {
  description: "blocks",
});

/** True if the transport checks the size of the response itself, so that the interceptor need not. */
export const answerCheckedKey: ContextKey<boolean> = createContextKey(false, {
  description: "answer checked",
});

/** An object with a call's values, e.g. a HandlerContext. */
export interface WithValues {
  readonly values: ContextValues;
}
