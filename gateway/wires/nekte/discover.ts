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
import type { Clients } from "../../src/clients.ts";
import type { WireCall } from "../../src/wire-call.ts";
import { NEKTE_VERSION } from "./documents.ts";

/** The most capabilities that an answer lists, by level: NEKTE has no pages, a filter narrows. */
export const MAX_LISTED = [1000, 1000, 100] as const;
/** Look-ups of one discovery that are under way at once. */
const CONCURRENCY = 16;

/** What was found. */
export interface Discovery {
  /** The version of the agent that was asked, or of the platform. */
  readonly version: string;
  readonly capabilities: readonly DiscoveredCapability["capability"][];
}

/**
 * Lists capabilities of one agent, or of all living ones (NEKTE 1).
 *
 * Among all, an id that several agents offer is written `agent/capability`, and so is understood in a filter and in an
 * invocation.
 *
 * @throws ConnectError as DiscoveryService.DiscoverCapabilities
 */
export async function discover(
  { discovery, agents }: Pick<Clients, "discovery" | "agents">,
  agentId: string,
  { level, filter }: DiscoverRequest,
  call: WireCall,
): Promise<Discovery> {
  const wanted = agentId === "" ? readName(filter) : { agentId, filter };
  const found: DiscoveredCapability[] = [];
  const max = MAX_LISTED[level as 0 | 1 | 2];
  let pageToken = "";
  let options: CallOptions = call.asCaller;
  let viewer: string | undefined = "";
  do {
    const page = await discovery.discoverCapabilities(
      {
        level,
        agentId: wanted.agentId,
        pageSize: max - found.length,
        pageToken,
        viewer,
        ...(wanted.filter === undefined ? {} : { filter: wanted.filter }),
      },
      options,
    );
    found.push(...page.capabilities);
    pageToken = page.nextPageToken;
    options = call.aside;
    viewer = call.viewer;
    // Without knowing whose sight it is, no more is shown than the caller itself was.
  } while (pageToken !== "" && found.length < max && viewer !== undefined);
  if (agentId !== "") {
    return {
      version: found[0]?.agentVersion || (await versionOf(agents, agentId, call)),
      capabilities: found.map(({ capability }) => capability),
    };
  }
  const isWhole = filter === undefined && pageToken === "";
  const shared = await sharedIds(discovery, found, isWhole, call);
  return { version: NEKTE_VERSION, capabilities: found.map((one) => withName(one, shared)) };
}

/** An agent's own version, or the number of its record's revision where it gives none. */
async function versionOf(
  agents: Clients["agents"],
  id: string,
  { aside, viewer }: WireCall,
): Promise<string> {
  if (viewer === undefined) return "0";
  const { agent } = await agents.getAgent({ id, viewer }, aside);
  return agent?.version || String(agent?.revision ?? 0);
}

/** A filter's id may name the agent too, as ids are listed. */
function readName(filter: DiscoverFilter | undefined) {
  const id = filter?.id ?? "";
  const slash = id.indexOf("/");
  if (filter === undefined || slash < 0) return { agentId: "", filter };
  return {
    agentId: id.slice(0, slash),
    filter: create(DiscoverFilterSchema, { ...filter, id: id.slice(slash + 1) }),
  };
}

/** The ids that more than one living agent offers, whether or not all of them were found. */
async function sharedIds(
  discovery: Clients["discovery"],
  found: readonly DiscoveredCapability[],
  isWhole: boolean,
  { aside, viewer }: WireCall,
): Promise<ReadonlySet<string>> {
  const once = new Set<string>();
  const shared = new Set<string>();
  for (const { capability } of found) {
    const id = capability.value?.id ?? "";
    if (once.has(id)) shared.add(id);
    once.add(id);
  }
  // A list of everything shows by itself what is there twice; a part of it has to be asked about.
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
  // The registry's message is left as it is: it may be its own.
  return { ...capability, value: { ...value, id: `${agentId}/${value.id}` } } as typeof capability;
}

/** A capability of any level in the one form that the JSON wire lists: what a level lacks is absent. */
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
    case "ref":
      return create(CapabilityFullSchema, { id: value.id, cat: value.cat, h: value.h });
    default:
      throw new Error("the registry listed a capability at no level");
  }
}
