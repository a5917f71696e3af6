import { type Offer, PricingModel } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import type { TaskContract } from "@depute/contracts/delegateos/v0/contract_pb";
import type { Agent } from "@depute/contracts/depute/registry/v1/agent_pb";
import { type Clock, toTimestamp } from "@depute/core";
import type { Clients } from "../../src/clients.ts";
import type { WireCall } from "../../src/wire-call.ts";

/** 1 USD is 100,000,000 microcents; offers are priced in minor units, which are cents. */
const MICROCENTS_OF_A_CENT = 1_000_000n;
const MAX = BigInt(Number.MAX_SAFE_INTEGER);
const PAGE_SIZE = 1000;

/** What an agent says that a contract's work takes; a member is absent where the agent says nothing of it. */
export interface Estimates {
  readonly durationMs?: bigint;
  readonly costMicrocents?: bigint;
}

/** Ids of capabilities that are rights in DelegateOS's sense, `namespace:action` (DelegateOS 12). */
export function declaredRights({ capabilityIds }: Agent): ReadonlySet<string> {
  return new Set(capabilityIds.filter((id) => id.includes(":")));
}

/**
 * What an agent's own words give for all that a contract requires (DelegateOS 9.2).
 *
 * The text has estimates and no place where they come from. Depute's choice: the duration is the sum of the cost hints of
 * the capabilities, or of the target times of the agent's offers where there is no hint; the cost is the sum of its
 * cheapest open offers at a fixed price in USD, since nothing here knows rates of exchange. Where one requirement has
 * none, a sum would say too little, so that there is no estimate.
 */
export async function estimate(
  clients: Pick<Clients, "discovery" | "offers">,
  clock: Clock,
  agent: Agent,
  { constraints }: TaskContract,
  call: WireCall,
): Promise<Estimates> {
  const declared = declaredRights(agent);
  const required = (constraints?.requiredCapabilities ?? []).filter((right) => declared.has(right));
  if (required.length === 0) return {};
  const [hints, offers] = await Promise.all([
    hintsOf(clients, agent, call),
    Promise.all(required.map((right) => offersOf(clients, clock, agent, right, call))),
  ]);
  const durationMs = sum(
    required.map((right, i) => hints.get(right) ?? least((offers[i] ?? []).map(targetMs))),
  );
  const costMicrocents = sum(offers.map((of) => least(of.map(priceOf))));
  return {
    ...(durationMs !== undefined && { durationMs }),
    ...(costMicrocents !== undefined && { costMicrocents }),
  };
}

async function hintsOf(
  { discovery }: Pick<Clients, "discovery">,
  agent: Agent,
  call: WireCall,
): Promise<ReadonlyMap<string, bigint>> {
  const request = { level: 1, agentId: agent.id, pageSize: PAGE_SIZE };
  const { capabilities } = await discovery.discoverCapabilities(request, call.aside);
  return new Map(
    capabilities.flatMap(({ capability }) => {
      const ms = capability.case === "summary" ? capability.value.cost?.avgMs : undefined;
      return ms === undefined ? [] : [[capability.value?.id ?? "", BigInt(ms)]];
    }),
  );
}

async function offersOf(
  { offers }: Pick<Clients, "offers">,
  clock: Clock,
  agent: Agent,
  capability: string,
  call: WireCall,
): Promise<Offer[]> {
  const about = { sellerAgentId: agent.id, capability, validAt: toTimestamp(clock.now()) };
  const { offers: found } = await offers.listOffers({ ...about, pageSize: PAGE_SIZE }, call.aside);
  return found.flatMap(({ offer, open }) => (open && offer !== undefined ? [offer] : []));
}

function priceOf({ pricing }: Offer): bigint | undefined {
  const isFixed = pricing?.pricingModel === PricingModel.FIXED && pricing.currency === "USD";
  return isFixed ? pricing.amount * MICROCENTS_OF_A_CENT : undefined;
}

function targetMs({ serviceLevels }: Offer): bigint | undefined {
  return serviceLevels === undefined ? undefined : serviceLevels.targetCompletionSeconds * 1000n;
}

function least(values: readonly (bigint | undefined)[]): bigint | undefined {
  const known = values.filter((value) => value !== undefined);
  return known.sort((one, other) => Number(one - other))[0];
}

/** Undefined where one is not known, or the sum is more than the wire can state. */
function sum(values: readonly (bigint | undefined)[]): bigint | undefined {
  let total = 0n;
  for (const value of values) {
    if (value === undefined) return undefined;
    total += value;
  }
  return total > MAX ? undefined : total;
}
