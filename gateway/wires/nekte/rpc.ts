import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { type DelegateEvent, type Nekte, VerifyResultSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import { type Clock, fromTimestamp } from "@depute/core";
import { encode } from "@depute/wire";
import { rpcCall } from "../../src/wire-call.ts";
import { PLATFORM_AGENT } from "./documents.ts";
import { NEKTE, withCode } from "./errors.ts";
import { readLastEventId, toBytes } from "./events.ts";
import type { NekteMethods } from "./methods.ts";
import { stateOfTask } from "./states.ts";

/** The metadata that names the agent whose NEKTE server this is to be; without it, all agents are meant. */
export const AGENT_METADATA = "nekte-agent";

/** nekte.v1.Nekte as it was published: for all agents, or as the server of one. */
export function nekteService(methods: NekteMethods, clock: Clock): ServiceImpl<typeof Nekte> {
  return {
    async discover(request, context) {
      const agentId = agentOf(context);
      const found = await coded(methods.discover(agentId, request, rpcCall(context, clock)));
      const { capabilities, version } = found;
      const of = <Level extends "ref" | "summary" | "full">(level: Level) =>
        capabilities.flatMap((each) => (each.case === level ? [each.value as ValueAt<Level>] : []));
      return {
        agent: agentId || PLATFORM_AGENT,
        version,
        refs: of("ref"),
        summaries: of("summary"),
        schemas: of("full"),
      };
    },

    async invoke(request, context) {
      const outcome = await coded(methods.invoke(agentOf(context), request, rpcCall(context, clock)));
      if (outcome.kind === "outdated") {
        const { schema } = outcome;
        return { error: { ...NEKTE.VERSION_MISMATCH, currentHash: schema.h, schema } };
      }
      const { result, ms, taskId } = outcome;
      return {
        output: toBytes(result.out),
        resolvedLevel: result.level,
        meta: { ms, tokensUsed: result.tokens, taskId },
      };
    },

    async *delegate(request, context: HandlerContext) {
      const begin = async () => {
        const after = readLastEventId(context.requestHeader.get("last-event-id"));
        return methods.delegate(agentOf(context), request, after, rpcCall(context, clock));
      };
      const told = await coded(begin());
      for await (const { event, sequence } of told) {
        yield { ...withEveryLevel(event), ...(sequence === undefined ? {} : { sequence }) };
      }
    },

    async context(request, context) {
      return coded(methods.context(agentOf(context), request, rpcCall(context, clock)));
    },

    async verify(request, context) {
      const { checks, result } = await coded(
        methods.verify(agentOf(context), request, rpcCall(context, clock)),
      );
      const { status } = result;
      return {
        taskId: request.taskId,
        checks: [...checks],
        ...(status === undefined ? {} : { status }),
        data: toBytes(encode(VerifyResultSchema, result)),
      };
    },

    async taskCancel(request, context) {
      return coded(methods.cancel(agentOf(context), request, rpcCall(context, clock)));
    },

    async taskResume(request, context) {
      return coded(methods.resume(agentOf(context), request, rpcCall(context, clock)));
    },

    async taskStatus(request, context) {
      const task = await coded(methods.status(agentOf(context), request, rpcCall(context, clock)));
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

function agentOf({ requestHeader }: HandlerContext): string {
  return requestHeader.get(AGENT_METADATA) ?? "";
}

const NULL = toBytes(null);

/**
 * A result with something to parse at each level. The published proto has no presence, so its clients parse the levels that
 * are not there too: those are JSON null.
 */
function withEveryLevel(told: DelegateEvent): DelegateEvent {
  const { event } = told;
  const { output } = event.case === "complete" ? event.value : {};
  if (event.case !== "complete" || output === undefined) return told;
  const whole = { ...output, compact: output.compact ?? NULL, full: output.full ?? NULL };
  return { ...told, event: { case: "complete", value: { ...event.value, output: whole } } };
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
