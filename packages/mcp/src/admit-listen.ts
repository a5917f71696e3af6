import { admitRights, type GateOptions, neededRights } from "./gate.ts";
import type { ListenRequest } from "./listen-request.ts";
import { fromMember, type Presentation } from "./presentation.ts";
import { gatedRequestOf, LISTEN, SUBSCRIBE } from "./rules/methods.ts";
import { strip } from "./rules/strip.ts";
import type { ToolMap } from "./rules/tool-map.ts";
import type { ServerTasks } from "./server-tasks.ts";
import type { FollowedTasks } from "./task-streams.ts";

/** A request to listen that the gate has admitted. */
export interface AdmittedListen {
  /**
   * The token that came with the request; undefined if the request had none. `admitListen` has used the token's proof.
   */
  readonly presentation: Presentation | undefined;
  readonly tasks: FollowedTasks<Record<string, unknown>>;
}

export interface ListenOptions {
  readonly gate: GateOptions;
  readonly map: ToolMap;
  readonly tasks: ServerTasks;
  readonly audience: () => string;
}

/**
 * Decides whether a client may listen (`subscriptions/listen`). The client needs the capability to read each resource
 * that the request names. For each task, the client needs the capabilities of the call that began the task. One
 * holder proof covers the whole request.
 *
 * @throws Refusal; UpstreamError; DeputeError if the authoriser is unavailable
 */
export async function admitListen(
  { gate, map, tasks, audience }: ListenOptions,
  { params: rawParams, uris, taskIds, presented, login, declared }: ListenRequest,
): Promise<AdmittedListen> {
  const { params, member } = strip(rawParams);
  const presentation = member === undefined ? presented : fromMember(member, audience());
  const { _meta, ...proved } = params;
  const listened = await tasks.listened(taskIds, { login, declared, presentation });
  const read =
    uris.length === 0
      ? []
      : await neededRights(gate, gatedRequestOf(SUBSCRIBE, { uri: uris }, map), presentation);
  const rights = [...read, ...listened.flatMap(({ handle }) => handle.rights)];
  const holder = await admitRights(gate, { rights, proved, name: LISTEN }, presentation);
  const principal = holder?.principal;
  return { presentation, tasks: await tasks.follow(listened, { presentation, declared, principal }) };
}
