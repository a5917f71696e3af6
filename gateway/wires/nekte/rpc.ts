import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { type DelegateEvent, type Nekte, VerifyResultSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import { type Clock, fromTimestamp } from "@depute/core";
import type { ServiceManners } from "@depute/service";
import { encode } from "@depute/wire";
import { refusalIn } from "../../src/fault.ts";
import { rpcCall } from "../../src/wire-call.ts";
import { PLATFORM_AGENT } from "./documents.ts";
import { errorNote, NEKTE } from "./errors.ts";
import { readLastEventId, toBytes } from "./events.ts";
import type { NekteMethods } from "./methods.ts";
import { prepareRequest } from "./proto3.ts";
import { stateOfTask } from "./states.ts";

/** The metadata that names the agent whose NEKTE server this is to be; without it, all agents are meant. */
export const AGENT_METADATA = "nekte-agent";

/** What every call of `nekte.v1.Nekte` goes through before and after its method. */
export const NEKTE_MANNERS: ServiceManners = { errorNote, prepare: prepareRequest };

export interface NekteServiceOptions {
  readonly methods: NekteMethods;
  readonly clock: Clock;
  /** Names below which `{agent}.NAME` is an agent's own authority, in lower case and without ports. */
  readonly hosts: () => readonly string[];
  /** The agent whose server it is wherever the call does not name one; absent for all agents. */
  readonly agentId?: string;
}

/** nekte.v1.Nekte as it was published: for all agents, or as the server of one. */
export function nekteService(options: NekteServiceOptions): ServiceImpl<typeof Nekte> {
  const { methods, clock } = options;
  const agentOf = ({ requestHeader, url }: HandlerContext): string =>
    requestHeader.get(AGENT_METADATA) ?? options.agentId ?? agentOfHost(url, options.hosts());
  return {
    async discover(request, context) {
      const agentId = agentOf(context);
      const found = await plain(methods.discover(agentId, request, rpcCall(context, clock)));
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
      const outcome = await plain(methods.invoke(agentOf(context), request, rpcCall(context, clock)));
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
      const told = await plain(begin());
      for await (const { event, sequence } of told) {
        yield { ...withEveryLevel(event), ...(sequence === undefined ? {} : { sequence }) };
      }
    },

    async context(request, context) {
      return plain(methods.context(agentOf(context), request, rpcCall(context, clock)));
    },

    async verify(request, context) {
      const { checks, result } = await plain(
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
      return plain(methods.cancel(agentOf(context), request, rpcCall(context, clock)));
    },

    async taskResume(request, context) {
      return plain(methods.resume(agentOf(context), request, rpcCall(context, clock)));
    },

    async taskStatus(request, context) {
      const task = await plain(methods.status(agentOf(context), request, rpcCall(context, clock)));
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

/**
 * The agent whose virtual host a call names, `{agent}.NAME`; empty for none. Names of hosts have no upper case, so that only agents
 * whose ids have none are reached by it. (RFC 9113 section 8.3.1)
 */
export function agentOfHost(url: string, hosts: readonly string[]): string {
  const host = URL.parse(url)?.hostname ?? "";
  const name = hosts.find((each) => host.endsWith(`.${each}`));
  return name === undefined ? "" : host.slice(0, -name.length - 1);
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

/** What the call gives. Its refusal leaves the data of the JSON wire behind. */
async function plain<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (thrown) {
    throw refusalIn(thrown);
  }
}
