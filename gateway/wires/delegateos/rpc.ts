import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { DelegateosService } from "@depute/contracts/depute/delegateos/v1/delegateos_service_pb";
import type { Clock } from "@depute/core";
import { refusalIn } from "../../src/fault.ts";
import { rpcCall, type WireCall } from "../../src/wire-call.ts";
import type { DelegateosMethods } from "./methods.ts";

/** DelegateOS's methods as RPCs. Unlike the text's notifications, each has an answer. */
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
    delegate: ({ params }, context) => answer(params, context, (...of) => methods.delegate(...of)),
    complete: ({ params }, context) => answer(params, context, (...of) => methods.complete(...of)),
    revoke: ({ params }, context) => answer(params, context, (...of) => methods.revoke(...of)),
  };
}
