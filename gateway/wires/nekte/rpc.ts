import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  type DelegateEventSchema,
  type Nekte,
  VerifyResultSchema,
} from "@depute/contracts/nekte/v1/nekte_pb";
import { type Clock, fromTimestamp } from "@depute/core";
import type { ServiceManners } from "@depute/service";
import { encode } from "@depute/wire";
import { refusalIn } from "../../edge/fault.ts";
import { rpcCall } from "../../edge/wire-call.ts";
import { PLATFORM_AGENT } from "./documents.ts";
import { errorNote, NEKTE } from "./errors.ts";
import { readLastEventId, type SequencedEvent, toBytes } from "./events.ts";
import type { NekteMethods } from "./methods.ts";
import { prepareRequest } from "./proto3.ts";
import { stateOfTask } from "./states.ts";

/**
 * Name of the request metadata with the id of the addressed agent. If a call has no such metadata, the server's own
 * agent or the host name determines the agent.
 */
export const AGENT_METADATA = "nekte-agent";

/** How every method of `nekte.v1.Nekte` changes requests and errors. */
export const NEKTE_MANNERS: ServiceManners = {
  errorNote: (reason) => ({ metadata: errorNote(reason) }),
  prepare: prepareRequest,
};

export interface NekteServiceOptions {
  readonly methods: NekteMethods;
  readonly clock: Clock;
  /** Host names below which `{agent}.NAME` addresses one agent, in lower case and without ports. */
  readonly hosts: () => readonly string[];
  /**
   * The only agent of the server: calls without AGENT_METADATA address this agent. If absent, the server serves all
   * agents: calls without AGENT_METADATA address the agent in the host name, or all agents.
   */
  readonly agentId?: string;
}

/** Implements the published service nekte.v1.Nekte, either for all agents or as the server of one agent. */
export function nekteService(options: NekteServiceOptions): ServiceImpl<typeof Nekte> {
  const { methods, clock } = options;
  const agentOf = ({ requestHeader, url }: HandlerContext): string =>
    requestHeader.get(AGENT_METADATA) ?? options.agentId ?? agentOfHost(url, options.hosts());
  return {
    async discover(request, context) {
      const agentId = agentOf(context);
      const discovered = await plain(methods.discover(agentId, request, rpcCall(context, clock)));
      const { capabilities, version } = discovered;
      const levelOf = <Level extends "reference" | "summary" | "full">(level: Level) =>
        capabilities.flatMap((each) => (each.case === level ? [each.value as ValueAt<Level>] : []));
      return {
        agent: agentId || PLATFORM_AGENT,
        version,
        refs: levelOf("reference"),
        summaries: levelOf("summary"),
        schemas: levelOf("full"),
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
        return methods.delegate(agentOf(context), request, after, rpcCall(context, clock), withEveryLevel);
      };
      yield* await plain(begin());
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
 * Returns the agent in a call's host name `{agent}.NAME`; empty if the host name contains no agent. Host names are
 * lower case, so this form cannot address an agent whose id contains upper case. (RFC 9113 section 8.3.1)
 */
export function agentOfHost(url: string, hosts: readonly string[]): string {
  const host = URL.parse(url)?.hostname ?? "";
  const name = hosts.find((each) => host.endsWith(`.${each}`));
  return name === undefined ? "" : host.slice(0, -name.length - 1);
}

const NULL = toBytes(null);

/**
 * Adds JSON null for every level that a result lacks. The published proto has no field presence, so clients parse the
 * bytes of each level, even if the level is absent.
 */
function withEveryLevel({
  event: delegateEvent,
  sequence,
}: SequencedEvent): MessageInitShape<typeof DelegateEventSchema> {
  const place = sequence === undefined ? {} : { sequence };
  const { event } = delegateEvent;
  const { output } = event.case === "complete" ? event.value : {};
  if (event.case !== "complete" || output === undefined) return { ...delegateEvent, ...place };
  const fullOutput = { ...output, compact: output.compact ?? NULL, full: output.full ?? NULL };
  return {
    ...delegateEvent,
    ...place,
    event: { case: "complete", value: { ...event.value, output: fullOutput } },
  };
}

type Discovered = Awaited<ReturnType<NekteMethods["discover"]>>["capabilities"][number];
type ValueAt<Level> = Extract<Discovered, { case: Level }>["value"];

/** Awaits a call. Converts an exception to a DeputeError, without the data that only the JSON wire adds. */
async function plain<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (thrown) {
    throw refusalIn(thrown);
  }
}
