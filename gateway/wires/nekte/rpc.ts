import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { type Nekte, VerifyResultSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import { type Clock, fromTimestamp } from "@depute/core";
import { encode } from "@depute/wire";
import { rpcCall } from "../../src/wire-call.ts";
import { PLATFORM_AGENT } from "./documents.ts";
import { NEKTE, withCode } from "./errors.ts";
import { toBytes } from "./events.ts";
import type { NekteMethods } from "./methods.ts";
import { stateOfTask } from "./states.ts";

/**
 * nekte.v1.Nekte as it was published, for all agents.
 */
export function nekteService(methods: NekteMethods, clock: Clock): ServiceImpl<typeof Nekte> {
  const all = "";
  return {
    async discover(request, context) {
      const { capabilities } = await coded(methods.discover(all, request, rpcCall(context, clock)));
      const of = <Level extends "ref" | "summary" | "full">(level: Level) =>
        capabilities.flatMap((each) => (each.case === level ? [each.value as ValueAt<Level>] : []));
      return { agent: PLATFORM_AGENT, refs: of("ref"), summaries: of("summary"), schemas: of("full") };
    },

    async invoke(request, context) {
      const outcome = await coded(methods.invoke(all, request, rpcCall(context, clock)));
      if (outcome.kind === "outdated") {
        const { schema } = outcome;
        return { error: { ...NEKTE.VERSION_MISMATCH, currentHash: schema.h, schema } };
      }
      const { result, ms } = outcome;
      return {
        output: toBytes(result.out),
        resolvedLevel: result.level,
        meta: { ms, tokensUsed: result.tokens },
      };
    },

    async *delegate(request, context: HandlerContext) {
      const told = await coded(methods.delegate(all, request, 0n, rpcCall(context, clock)));
      for await (const { event } of told) yield event;
    },

    async context(request, context) {
      return coded(methods.context(all, request, rpcCall(context, clock)));
    },

    async verify(request, context) {
      const { checks, result } = await coded(methods.verify(request, rpcCall(context, clock)));
      const { status } = result;
      return {
        taskId: request.taskId,
        checks: [...checks],
        ...(status === undefined ? {} : { status }),
        data: toBytes(encode(VerifyResultSchema, result)),
      };
    },

    async taskCancel(request, context) {
      return coded(methods.cancel(request, rpcCall(context, clock)));
    },

    async taskResume(request, context) {
      return coded(methods.resume(request, rpcCall(context, clock)));
    },

    async taskStatus(request, context) {
      const task = await coded(methods.status(request, rpcCall(context, clock)));
      const { progress, checkpointAvailable, createTime, updateTime } = task;
      return {
        taskId: request.taskId,
        status: stateOfTask(task),
        ...(progress === undefined
          ? {}
          : { progressProcessed: progress.processed, progressTotal: progress.total }),
        checkpointAvailable,
        createdAt: BigInt(createTime === undefined ? 0 : fromTimestamp(createTime)),
        updatedAt: BigInt(updateTime === undefined ? 0 : fromTimestamp(updateTime)),
      };
    },
  };
}

type Discovered = Awaited<ReturnType<NekteMethods["discover"]>>["capabilities"][number];
type ValueAt<Level> = Extract<Discovered, { case: Level }>["value"];

/** What the call gives; its refusal carries the NEKTE code. */
async function coded<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (thrown) {
    throw withCode(thrown);
  }
}
