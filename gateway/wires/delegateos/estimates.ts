import { type Offer, PricingModel } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import type { TaskContract } from "@depute/contracts/delegateos/v0/contract_pb";
import type { Agent } from "@depute/contracts/depute/registry/v1/agent_pb";
import { type Clock, toTimestamp } from "@depute/core";
import type { Clients } from "../../edge/clients.ts";
import type { WireCall } from "../../edge/wire-call.ts";

/** Microcents per cent: 1 USD is 100,000,000 microcents. Prices of offers are in minor units, which are cents. */
const MICROCENTS_OF_A_CENT = 1_000_000n;
const MAX = BigInt(Number.MAX_SAFE_INTEGER);
const PAGE_SIZE = 1000;

/**
 * Estimates for an agent's work on a contract. A member is absent if the agent's statements are not sufficient to
 * compute the estimate.
 */
export interface Estimates {
  readonly durationMs?: bigint;
  readonly costMicrocents?: bigint;
}

/**
 * Returns the agent's capability ids of the form `namespace:action`, which name DelegateOS capabilities (DelegateOS
 * 12).
 */
export function declaredRights({ capabilityIds }: Agent): ReadonlySet<string> {
  return new Set(capabilityIds.filter((id) => id.includes(":")));
}

/**
 * Estimates a contract's work from the agent's own statements (DelegateOS 9.2). DelegateOS defines estimates but no
 * source for them, so this is Depute's choice. The duration is the sum of the average times in the capabilities' cost
 * hints. If a hint is missing, the shortest target time in the agent's offers replaces it. The cost is the sum of the
 * cheapest open offers at a fixed price in USD. The platform has no exchange rates. Only the required capabilities that
 * the agent declares count. If one of them has no duration or no cost, the whole work has none, because a partial sum
 * would be too low.
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
  const costMicrocents = sum(offers.map((capabilityOffers) => least(capabilityOffers.map(priceOf))));
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
  const query = { sellerAgentId: agent.id, capability, validAt: toTimestamp(clock.now()) };
  const { offers: listedOffers } = await offers.listOffers({ ...query, pageSize: PAGE_SIZE }, call.aside);
  return listedOffers.flatMap(({ offer, open }) => (open && offer !== undefined ? [offer] : []));
}

function priceOf({ pricing }: Offer): bigint | undefined {
  const isFixed = pricing?.pricingModel === PricingModel.FIXED && pricing.currency === "USD";
  return isFixed ? pricing.amount * MICROCENTS_OF_A_CENT : undefined;
}

function targetMs({ serviceLevels }: Offer): bigint | undefined {
  return serviceLevels === undefined ? undefined : serviceLevels.targetCompletionSeconds * 1000n;
}

function least(values: readonly (bigint | undefined)[]): bigint | undefined {
  const knownValues = values.filter((value) => value !== undefined);
  return knownValues.sort((one, other) => Number(one - other))[0];
}

/** Adds values. Returns undefined if a value is undefined, or if the sum is too large for the wire. */
function sum(values: readonly (bigint | undefined)[]): bigint | undefined {
  let total = 0n;
  for (const value of values) {
    if (value === undefined) return undefined;
    total += value;
  }
  return total > MAX ? undefined : total;
}
