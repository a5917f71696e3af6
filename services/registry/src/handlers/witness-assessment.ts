import type { ReadTx, WriteTx } from "@depute/store";
import type { RegistryContext } from "../context.ts";
import type { StoredAgent } from "../rules/agent.ts";
import { baseOf } from "../rules/registration.ts";
import { decay, type Effect, trustScore } from "../rules/trust.ts";
import {
  bestWitness,
  type Source,
  sourceNames,
  type Witness,
  withGains,
  witnessStanding,
} from "../rules/witness.ts";
import { findAgent } from "../store/agents.ts";
import { findSources, putSource } from "../store/trust.ts";
import { findTrustOrInitial } from "./initial-trust.ts";
import { affiliationOf } from "./organization-proofs.ts";

/** The subject and the counterpart of a piece of evidence. If an agent is an instance, its base is the party. */
export interface Parties {
  readonly subject: StoredAgent;
  readonly subjectId: string;
  /** The agent on the other side of the evidence; undefined for an import. */
  readonly counterpart: StoredAgent | undefined;
  readonly counterpartId: string;
}

/**
 * The assessment of the witness of a piece of evidence. The witness's standing scales gains. Repeated gains from one
 * source count less, so the assessment also has the sources of the evidence.
 */
export interface WitnessAssessment {
  readonly standing: number;
  /** The id of the witness; empty for an import. */
  readonly witnessId: string;
  /**
   * The names of all sources of the evidence. `sources` has only those sources from which the subject has gained
   * trust before.
   */
  readonly names: readonly string[];
  readonly sources: ReadonlyMap<string, Source>;
}

/** The assessment of an import. An import has no witness, because an operator sets the components of trust directly. */
const IMPORT_ASSESSMENT: WitnessAssessment = { standing: 0, witnessId: "", names: [], sources: new Map() };

/** Returns the assessment of the witness of a piece of evidence, from stored records. */
export async function assessWitness(
  { trustLevels }: RegistryContext,
  tx: ReadTx,
  { subject, subjectId, counterpart, counterpartId }: Parties,
  verifierId: string,
  now: number,
): Promise<WitnessAssessment> {
  if (counterpart === undefined) return IMPORT_ASSESSMENT;
  const [, established = 100] = trustLevels;
  const witnessOf = async (agent: StoredAgent, id: string): Promise<Witness> => {
    const { trust } = await findTrustOrInitial(tx, agent, id, "", now);
    return { affiliation: await affiliationOf(tx, agent, id), score: trustScore(decay(trust, now)) };
  };
  const counterpartWitness = await witnessOf(counterpart, counterpartId);
  const verifierBaseId = baseOf(verifierId) ?? verifierId;
  const verifierAgent = verifierBaseId === "" ? undefined : await findAgent(tx, verifierBaseId);
  const verifier = verifierAgent && (await witnessOf(verifierAgent, verifierBaseId));
  const ownAffiliation = await affiliationOf(tx, subject, subjectId);
  const witness = bestWitness(ownAffiliation, counterpartWitness, verifier, established);
  const witnesses = [counterpartWitness, ...(witness === counterpartWitness ? [] : [witness])];
  const names = [...new Set(witnesses.flatMap(({ affiliation }) => sourceNames(affiliation)))];
  return {
    standing: witnessStanding(witness, established),
    witnessId: witness.affiliation.agentId,
    names,
    sources: await findSources(tx, subjectId, names),
  };
}

/** Adds the gains of one piece of evidence to each of its sources. Later gains from these sources then count less. */
export async function countGains(
  tx: WriteTx,
  subjectId: string,
  { names, sources }: WitnessAssessment,
  effects: readonly Effect[],
  now: number,
): Promise<void> {
  if (!effects.some((effect) => "gain" in effect)) return;
  for (const name of names) await putSource(tx, subjectId, name, withGains(sources.get(name), effects, now));
}
