import type { ReadTx, WriteTx } from "@depute/store";
import type { RegistryContext } from "../context.ts";
import type { StoredAgent } from "../rules/agent.ts";
import { baseOf } from "../rules/registration.ts";
import { decay, type Effect, trustScore } from "../rules/trust.ts";
import {
  bestWitness,
  type Source,
  sourceNames,
  standingOf,
  type Witness,
  withGains,
} from "../rules/witness.ts";
import { findAgent } from "../store/agents.ts";
import { findSources, putSource } from "../store/trust.ts";
import { affiliationOf } from "./organization-proofs.ts";
import { trustOf } from "./trust-of.ts";

/** The agents that evidence is about and of; an instance stands for its base. */
export interface Parties {
  readonly subject: StoredAgent;
  readonly subjectId: string;
  /** Undefined for an import. */
  readonly counterpart: StoredAgent | undefined;
  readonly counterpartId: string;
}

/** What the word behind evidence is worth, and the sources that it comes from, by their names. */
export interface Weighed {
  readonly standing: number;
  /** The agent whose word counts; empty for an import. */
  readonly witnessId: string;
  /** Undefined for a source that gave nothing before. */
  readonly names: readonly string[];
  readonly sources: ReadonlyMap<string, Source>;
}

/** An import needs no witness: its operator says what the components are. */
const OPERATORS_WORD: Weighed = { standing: 0, witnessId: "", names: [], sources: new Map() };

/** What the word behind evidence is worth, by what is stored of its witnesses. */
export async function weigh(
  { trustLevels }: RegistryContext,
  tx: ReadTx,
  { subject, subjectId, counterpart, counterpartId }: Parties,
  verifierId: string,
  now: number,
): Promise<Weighed> {
  if (counterpart === undefined) return OPERATORS_WORD;
  const [, established = 100] = trustLevels;
  const witnessOf = async (agent: StoredAgent, id: string): Promise<Witness> => {
    const { trust } = await trustOf(tx, agent, id, "", now);
    return { affiliation: await affiliationOf(tx, agent, id), score: trustScore(decay(trust, now)) };
  };
  const other = await witnessOf(counterpart, counterpartId);
  const verifyingId = baseOf(verifierId) ?? verifierId;
  const verifying = verifyingId === "" ? undefined : await findAgent(tx, verifyingId);
  const verifier = verifying && (await witnessOf(verifying, verifyingId));
  const own = await affiliationOf(tx, subject, subjectId);
  const witness = bestWitness(own, other, verifier, established);
  const heard = [other, ...(witness === other ? [] : [witness])];
  const names = [...new Set(heard.flatMap(({ affiliation }) => sourceNames(affiliation)))];
  return {
    standing: standingOf(witness, established),
    witnessId: witness.affiliation.agentId,
    names,
    sources: await findSources(tx, subjectId, names),
  };
}

/** Notes gains with each source that they came from, so that the next one counts less. */
export async function countGains(
  tx: WriteTx,
  subjectId: string,
  { names, sources }: Weighed,
  effects: readonly Effect[],
  now: number,
): Promise<void> {
  if (!effects.some((effect) => "gain" in effect)) return;
  for (const name of names) await putSource(tx, subjectId, name, withGains(sources.get(name), effects, now));
}
