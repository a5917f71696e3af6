import type { DescMessage, Message } from "@bufbuild/protobuf";
import type { Interceptor, StreamRequest } from "@connectrpc/connect";
import type { Timers } from "@depute/core";
import { bytesOf } from "../answer-limit.ts";
import { chargeKey, cpuTallyKey, messageSizesKey, quotasKey, trustedKey } from "../call-values.ts";
import { type Caller, callerKey } from "../caller.ts";
import { HOP } from "../hop-headers.ts";
import { Bill } from "../quotas/bill.ts";
import { classOf } from "../quotas/call-class.ts";
import { type Pace, paced } from "../quotas/paced.ts";
import type { Quotas } from "../quotas/quotas.ts";
import { currentRequest } from "./current-call.ts";
import { type Next, type Request, withHooks } from "./outcome.ts";

type Response = Awaited<ReturnType<Next>>;

/**
 * Counts calls and their bytes against the quotas of their callers. A call with a token or a holder proof is counted
 * only after the token or the proof was verified. Otherwise a caller could use up the quota of another principal. Calls
 * of the platform itself and of `local` have no quotas. When the quota of bytes is used up, further calls are refused,
 * and messages of open streams are delayed.
 */
export function quotasInterceptor(quotas: Quotas, timers: Timers): Interceptor {
  const billed = async (next: Next, request: Request, caller: Caller) => {
    const { contextValues } = request;
    const bill = new Bill(quotas, classOf(request.method));
    const prove = (principal: string, organization: string) => bill.prove(principal, organization);
    try {
      if (caller.kind === "credential") prove(caller.principal, caller.organization ?? "");
      else contextValues.set(chargeKey, prove);
      return await counted(next, request, bill, timers);
    } catch (thrown) {
      quotas.noteRefusal(thrown);
      throw thrown;
    } finally {
      bill.useCpu(contextValues.get(cpuTallyKey));
    }
  };
  return (next) => (request) => {
    const { contextValues } = request;
    contextValues.set(quotasKey, quotas);
    const caller = contextValues.get(callerKey);
    return caller === undefined || isExempt(caller, request) ? next(request) : billed(next, request, caller);
  };
}

/**
 * Counts the refusal of one item of a batch, if a quota refused it. The interceptor counts the refusal of a whole call.
 */
export function noteRefusedItem(refusal: unknown): void {
  currentRequest()?.contextValues.get(quotasKey)?.noteRefusal(refusal);
}

function isExempt({ kind }: Caller, { contextValues, header }: Request): boolean {
  return kind === "local" || (contextValues.get(trustedKey) && header.get(HOP.origin) === "service");
}

async function counted(next: Next, request: Request, bill: Bill, timers: Timers): Promise<Response> {
  const { method, contextValues } = request;
  const sizes = contextValues.get(messageSizesKey);
  if (sizes !== undefined) sizes.onAnswer = (bytes) => bill.use(bytes);
  const useMessage = (desc: DescMessage) => (message: Message) => bill.use(bytesOf(desc, message));
  const useAnswer = sizes === undefined ? useMessage(method.output) : undefined;
  if (sizes !== undefined) bill.use(sizes.request);
  if (!request.stream) {
    if (sizes === undefined) useMessage(method.input)(request.message);
    const response = await next(request);
    if (!response.stream) useAnswer?.(response.message);
    return response;
  }
  const pace = <T extends Message>(onItem: ((item: T) => void) | undefined): Pace<T> => ({
    ...{ timers, signal: request.signal, waitMs: () => bill.waitMs },
    ...(onItem && { onItem }),
  });
  const received = paced(request.message, pace(sizes === undefined ? useMessage(method.input) : undefined));
  const passed: StreamRequest = { ...request, message: received };
  const response = await withHooks(next, passed, { end: () => bill.end() });
  return response.stream ? { ...response, message: paced(response.message, pace(useAnswer)) } : response;
}
