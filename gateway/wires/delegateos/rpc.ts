import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { DelegateosService } from "@depute/contracts/depute/gateway/v1/delegateos_service_pb";
import type { Clock } from "@depute/core";
import { refusalIn } from "../../edge/fault.ts";
import { rpcCall, type WireCall } from "../../edge/wire-call.ts";
import type { DelegateosMethods } from "./methods.ts";

/**
 * Serves DelegateOS's methods as RPCs. Every RPC has an answer, even if DelegateOS defines the method as a
 * notification.
 */
export function delegateosService(
  methods: DelegateosMethods,
  clock: Clock,
): Required<ServiceImpl<typeof DelegateosService>> {
  const answer = async <Params, Result>(
    params: Params | undefined,
    context: HandlerContext,
    method: (params: Params, call: WireCall) => Promise<Result>,
  ) => {
    if (params === undefined) throw new Error("a valid request has parameters");
    try {
      return { result: await method(params, rpcCall(context, clock)) };
    } catch (thrown) {
      throw refusalIn(thrown);
    }
  };
  return {
    delegate: ({ parameters: params }, context) =>
      answer(params, context, (...of) => methods.delegate(...of)),
    complete: ({ parameters: params }, context) =>
      answer(params, context, (...of) => methods.complete(...of)),
    revoke: ({ parameters: params }, context) => answer(params, context, (...of) => methods.revoke(...of)),
  };
}
