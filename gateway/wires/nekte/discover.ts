import { create } from "@bufbuild/protobuf";
import type { CallOptions } from "@connectrpc/connect";
import type { DiscoveredCapability } from "@depute/contracts/depute/registry/v1/discovery_service_pb";
import {
  type CapabilityFull,
  CapabilityFullSchema,
  type DiscoverFilter,
  DiscoverFilterSchema,
  type DiscoverRequest,
} from "@depute/contracts/nekte/v1/nekte_pb";
import type { Clients } from "../../edge/clients.ts";
import type { WireCall } from "../../edge/wire-call.ts";
import { NEKTE_VERSION } from "./documents.ts";

/**
 * Maximum number of capabilities in an answer, by level. NEKTE has no pages, so callers must shorten the list with a
 * filter.
 */
export const MAX_LISTED = [1000, 1000, 100] as const;
/** Maximum number of simultaneous calls to the registry in one discovery. */
const CONCURRENCY = 16;

/** The result of a discovery. */
export interface Discovery {
  /** The version of the addressed agent; the version of NEKTE if the request addresses no agent. */
  readonly version: string;
  readonly capabilities: readonly DiscoveredCapability["capability"][];
}

/**
 * Lists the capabilities of one agent, or of all live agents (NEKTE 1). If the list is about all agents, and several
 * agents offer a capability with the same id, the id in the list becomes `agent/capability`. Filters and invocations
 * also accept this form.
 *
 * @throws the ConnectErrors of DiscoveryService.DiscoverCapabilities and AgentService.GetAgent
 */
export async function discover(
  { discovery, agents }: Pick<Clients, "discovery" | "agents">,
  agentId: string,
  { level, filter }: DiscoverRequest,
  call: WireCall,
): Promise<Discovery> {
  const selection = agentId === "" ? readName(filter) : { agentId, filter };
  const discovered: DiscoveredCapability[] = [];
  const max = MAX_LISTED[level as 0 | 1 | 2];
  let pageToken = "";
  let options: CallOptions = call.asCaller;
  let viewer: string | undefined = "";
  do {
    const page = await discovery.discoverCapabilities(
      {
        level,
        agentId: selection.agentId,
        pageSize: max - discovered.length,
        pageToken,
        viewer,
        ...(selection.filter === undefined ? {} : { filter: selection.filter }),
      },
      options,
    );
    discovered.push(...page.capabilities);
    pageToken = page.nextPageToken;
    options = call.aside;
    viewer = call.viewer;
    // The holder proof was valid only for the first call. So further pages can be read only if the gateway knows the
    // caller's principal.
  } while (pageToken !== "" && discovered.length < max && viewer !== undefined);
  if (agentId !== "") {
    return {
      version: discovered[0]?.agentVersion || (await versionOf(agents, agentId, call)),
      capabilities: discovered.map(({ capability }) => capability),
    };
  }
  const isWhole = filter === undefined && pageToken === "";
  const shared = await sharedIds(discovery, discovered, isWhole, call);
  return { version: NEKTE_VERSION, capabilities: discovered.map((one) => withName(one, shared)) };
}

/**
 * Returns an agent's version. If the agent states no version, returns the revision of its record. Returns `0` if the
 * gateway does not know the viewer.
 */
async function versionOf(
  agents: Clients["agents"],
  id: string,
  { aside, viewer }: WireCall,
): Promise<string> {
  if (viewer === undefined) return "0";
  const { agent } = await agents.getAgent({ agentId: id, viewer }, aside);
  return agent?.version || String(agent?.revision ?? 0);
}

/**
 * Splits the id in a filter into the agent's id and the capability's id. Only an id of the form `agent/capability`
 * contains an agent's id.
 */
function readName(filter: DiscoverFilter | undefined) {
  const id = filter?.id ?? "";
  const slash = id.indexOf("/");
  if (filter === undefined || slash < 0) return { agentId: "", filter };
  return {
    agentId: id.slice(0, slash),
    filter: create(DiscoverFilterSchema, { ...filter, id: id.slice(slash + 1) }),
  };
}

/** Returns those ids that several live agents offer, even if the list contains only one of these offers. */
async function sharedIds(
  discovery: Clients["discovery"],
  discovered: readonly DiscoveredCapability[],
  isWhole: boolean,
  { aside, viewer }: WireCall,
): Promise<ReadonlySet<string>> {
  const once = new Set<string>();
  const shared = new Set<string>();
  for (const { capability } of discovered) {
    const id = capability.value?.id ?? "";
    if (once.has(id)) shared.add(id);
    once.add(id);
  }
  // A complete list contains all offers of an id. If the list is not complete, the gateway asks the registry about each
  // id that occurs only once.
  if (isWhole || viewer === undefined) return shared;
  const unsure = [...once].filter((id) => !shared.has(id));
  for (let at = 0; at < unsure.length; at += CONCURRENCY) {
    await Promise.all(
      unsure.slice(at, at + CONCURRENCY).map(async (id) => {
        const { capabilities } = await discovery.discoverCapabilities(
          { level: 0, filter: { id }, pageSize: 2, viewer },
          aside,
        );
        if (capabilities.length > 1) shared.add(id);
      }),
    );
  }
  return shared;
}

function withName(
  { agentId, capability }: DiscoveredCapability,
  shared: ReadonlySet<string>,
): DiscoveredCapability["capability"] {
  const { value } = capability;
  if (value === undefined || !shared.has(value.id)) return capability;
  // Creates a new object, because the registry may still use the original message.
  return { ...capability, value: { ...value, id: `${agentId}/${value.id}` } } as typeof capability;
}

/** Converts a capability of any level to the single form of the JSON wire. Members that the level lacks are absent. */
export function toListed({ case: level, value }: DiscoveredCapability["capability"]): CapabilityFull {
  switch (level) {
    case "full":
      return value;
    case "summary": {
      const { id, cat, h, desc, cost, agentHint } = value;
      return create(CapabilityFullSchema, {
        id,
        h,
        desc,
        ...(cat === undefined ? {} : { cat }),
        ...(cost === undefined ? {} : { cost }),
        ...(agentHint === undefined ? {} : { agentHint }),
      });
    }
    case "reference":
      return create(CapabilityFullSchema, { id: value.id, cat: value.cat, h: value.h });
    default:
      throw new Error("the registry answered with a capability without a level");
  }
}
