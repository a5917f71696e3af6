import { type ContextKey, type ContextValues, createContextKey } from "@connectrpc/connect";
import type { CallEnd } from "./call-end.ts";

/** What the interceptors found out about a call, for handlers and for the interceptors after them. */

/** The id that the call has in logs and in its response; see request-id.ts. */
export const requestIdKey: ContextKey<string> = createContextKey("", { description: "request id" });

/** The principal that the tokens service found behind a caller's credentials; empty until then. */
export const principalKey: ContextKey<string> = createContextKey("", { description: "principal" });

/** Epoch ms at which the call's answer is due; undefined for a call without a time limit. */
export const deadlineKey: ContextKey<number | undefined> = createContextKey<number | undefined>(undefined, {
  description: "deadline",
});

/** True when the call did not cross a socket: only the direct transport sets it. */
export const inProcessKey: ContextKey<boolean> = createContextKey(false, { description: "in process" });

/** How to end the call before its answer, where what carries it offers that; else its signal is the only way. */
export const callEndKey: ContextKey<CallEnd | undefined> = createContextKey<CallEnd | undefined>(undefined, {
  description: "call end",
});

/** True when what carries the call checks the size of its answer itself. */
export const answerCheckedKey: ContextKey<boolean> = createContextKey(false, {
  description: "answer checked",
});

/** The part of a HandlerContext that carries the call's values. */
export interface WithValues {
  readonly values: ContextValues;
}
