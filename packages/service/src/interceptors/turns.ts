import type { Interceptor } from "@connectrpc/connect";
import { clientAddressKey, inProcessKey } from "../call-values.ts";
import { callerKey } from "../caller.ts";
import { HOP } from "../hop-headers.ts";
import { type FairTurns, lineOf } from "../quotas/fair-turns.ts";
import type { Next, Request } from "./outcome.ts";

/**
 * Gives each call a turn before it begins; see {@link FairTurns}. A call within the process needs no turn, because the
 * call that it serves already has one. A call that a service makes on its own behalf needs no turn either. Otherwise
 * this call could wait for a turn while the last turn belongs to a call that waits for this call.
 */
export function turnsInterceptor(turns: FairTurns): Interceptor {
  const inTurn = async (next: Next, request: Request) => {
    const entered = turns.enter(lineOfCall(request), request.signal);
    const turn = entered instanceof Promise ? await entered : entered;
    try {
      return await next(request);
    } finally {
      turn.end();
    }
  };
  return (next) => (request) => (isInner(request) ? next(request) : inTurn(next, request));
}

function isInner({ contextValues, header }: Request): boolean {
  if (contextValues.get(inProcessKey)) return true;
  const caller = contextValues.get(callerKey);
  return caller === undefined || (caller.kind === "local" && header.get(HOP.origin) === "service");
}

function lineOfCall({ contextValues }: Request): string {
  const { principal = "" } = contextValues.get(callerKey) ?? {};
  return lineOf(principal, contextValues.get(clientAddressKey));
}
