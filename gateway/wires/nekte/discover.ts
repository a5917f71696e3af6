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
 * Maximum number of capabilities in an answer, by level. NEKTE has no pages, so callers must narrow the list by a
 * filter.
 */
export const MAX_LISTED = [1000, 1000, 100] as const;
/** Maximum number of concurrent look-ups of one discovery. */
const CONCURRENCY = 16;

/** The result of a discovery. */
export interface Discovery {
  /** The version of the addressed agent; the version of NEKTE if the request addresses no agent. */
  readonly version: string;
  readonly capabilities: readonly DiscoveredCapability["capability"][];
}

/**
 * Lists capabilities of one agent, or of all live agents (NEKTE 1). In a list of all agents, an id that several agents
 * offer is written `agent/capability`. Filters and invocations accept this form too.
 *
 * @throws ConnectError as DiscoveryService.DiscoverCapabilities
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
    // Without the caller's principal no further page can be read. The holder proof was valid for the first call only.
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

/** Returns an agent's version or, if the agent states none, the revision of its record. */
async function versionOf(
  agents: Clients["agents"],
  id: string,
  { aside, viewer }: WireCall,
): Promise<string> {
  if (viewer === undefined) return "0";
  const { agent } = await agents.getAgent({ agentId: id, viewer }, aside);
  return agent?.version || String(agent?.revision ?? 0);
}

/** Splits the id in a filter: listed ids have the form `agent/capability` if several agents offer the capability. */
function readName(filter: DiscoverFilter | undefined) {
  const id = filter?.id ?? "";
  const slash = id.indexOf("/");
  if (filter === undefined || slash < 0) return { agentId: "", filter };
  return {
    agentId: id.slice(0, slash),
    filter: create(DiscoverFilterSchema, { ...filter, id: id.slice(slash + 1) }),
  };
}

/** Returns the ids that several live agents offer, even if the list has only one of the offers. */
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
  // A complete list shows every id that several agents share. Otherwise the registry is asked about each id
  // that occurs only once in the list.
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
  // Changes a copy, because the registry may still use the message.
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
      throw new Error("the registry listed a capability at no level");
  }
}
