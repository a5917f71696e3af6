import { create } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import {
  ComponentChangeSchema,
  type Evidence,
  type RecordEvidenceRequest,
  RecordEvidenceRequestSchema,
  type RecordEvidenceResponse,
  RecordEvidenceResponseSchema,
  TrustEntrySchema,
} from "@depute/contracts/depute/registry/v1/trust_service_pb";
import { DeputeError, ErrorReason, haveOneOwner, invalid, toTimestamp } from "@depute/core";
import { type Identity, mayActFor } from "@depute/service";
import type { ReadTx } from "@depute/store";
import { agentNotFound, checkMayActFor, identify, type RegistryContext, viewerFor } from "../context.ts";
import { verifyEd25519 } from "../ed25519.ts";
import { digestOf } from "../idempotency.ts";
import type { StoredAgent } from "../rules/agent.ts";
import { addOutcome } from "../rules/bayesian.ts";
import { baseOf } from "../rules/registration.ts";
import { applyEvidence, COMPONENTS, decay, type Effect, trustScore, type Worth } from "../rules/trust.ts";
import {
  attestationEffects,
  endorsementEffects,
  isSubstantial,
  MAX_ENDORSEMENTS,
  MIN_ENDORSER_SCORE,
  ratingEffects,
  sessionEffects,
} from "../rules/trust-effects.ts";
import { readImport } from "../rules/trust-import.ts";
import { isKnown, worthOf } from "../rules/witness.ts";
import { findVisible } from "../store/agents.ts";
import {
  addEvidence,
  countEvidence,
  findEvidence,
  hasSubstantialOutcome,
  nextSequence,
  putTrust,
  type StoredTrust,
} from "../store/trust.ts";
import { findTrustOrInitial } from "./initial-trust.ts";
import { affiliationOf } from "./organization-proofs.ts";
import { assessWitness, countGains, type Parties, type WitnessAssessment } from "./witness-assessment.ts";

/** The effects of one piece of evidence and the assessment of its witness. */
interface EvidenceAssessment {
  readonly effects: readonly Effect[];
  readonly reference: string;
  readonly witness: WitnessAssessment;
}

/** Implements TrustService.RecordEvidence. */
export async function recordEvidence(
  registry: RegistryContext,
  request: RecordEvidenceRequest,
  context: HandlerContext,
): Promise<RecordEvidenceResponse> {
  const identity = await identify(registry, context);
  const { evidence, evidenceId } = request;
  if (evidence === undefined) throw invalid("evidence", "is required");
  const digest = digestOf(RecordEvidenceRequestSchema, request);
  return registry.store.write(async (tx) => {
    const existing = await findEvidence(tx, identity.principal, evidenceId);
    if (existing !== undefined) {
      if (existing.digest === digest) return create(RecordEvidenceResponseSchema, { entry: existing.entry });
      throw new DeputeError(ErrorReason.EVIDENCE_EXISTS, "the id was used for other evidence; use a new id", {
        metadata: { evidence: evidenceId },
        violations: [{ field: "evidence_id", description: "was used for other evidence" }],
      });
    }
    const parties = await findParties(tx, identity, evidence);
    const now = registry.clock.now();
    const { effects, reference, witness } = await assessEvidence(
      registry,
      tx,
      identity,
      evidence,
      parties,
      now,
    );
    const { subject, subjectId, counterpartId } = parties;
    const worth = worthOf(witness.standing, [...witness.sources.values()], now);
    const before = await findTrustOrInitial(tx, subject, subjectId, "", now);
    const after = withEvidence(before, evidence, effects, now, worth);
    await putTrust(tx, subjectId, "", after);
    if (counterpartId !== "") {
      const pair = await findTrustOrInitial(tx, subject, subjectId, counterpartId, now);
      await putTrust(tx, subjectId, counterpartId, withEvidence(pair, evidence, effects, now, worth));
    }
    await countGains(tx, subjectId, witness, effects, now);
    const faded = decay(before.trust, now);
    const changed = COMPONENTS.filter((name) => faded.components[name] !== after.trust.components[name]);
    const entry = create(TrustEntrySchema, {
      sequence: BigInt(await nextSequence(tx)),
      evidence,
      recordedBy: identity.principal,
      time: toTimestamp(now),
      scoreBefore: trustScore(faded),
      scoreAfter: trustScore(after.trust),
      changes: changed.map((component) =>
        create(ComponentChangeSchema, {
          component,
          before: faded.components[component],
          after: after.trust.components[component],
        }),
      ),
      standing: witness.standing,
      witnessAgentId: witness.witnessId,
    });
    const kind = evidence.kind.case ?? "";
    const substantial = isSubstantial(evidence.kind);
    const key = { caller: identity.principal, evidenceId, digest, kind, reference, substantial };
    await addEvidence(tx, subjectId, counterpartId, key, entry);
    return create(RecordEvidenceResponseSchema, { entry });
  });
}

/**
 * Finds the agents that a piece of evidence names.
 *
 * @throws DeputeError AGENT_NOT_FOUND; INVALID_REQUEST for evidence between agents of one principal or organization,
 * and for a counterpart that is missing or, in an import, present
 */
async function findParties(tx: ReadTx, identity: Identity, evidence: Evidence): Promise<Parties> {
  const viewer = viewerFor(identity, "");
  const subjectId = baseOf(evidence.agentId) ?? evidence.agentId;
  const counterpartId = baseOf(evidence.counterpartAgentId) ?? evidence.counterpartAgentId;
  const subject = await findVisible(tx, subjectId, viewer);
  if (subject === undefined) throw agentNotFound(evidence.agentId);
  const isImport = evidence.kind.case === "signedImport";
  if (isImport !== (counterpartId === "")) {
    throw invalid("evidence.counterpart_agent_id", isImport ? "must be empty for an import" : "is required");
  }
  const counterpart = isImport ? undefined : await findVisible(tx, counterpartId, viewer);
  if (!isImport && counterpart === undefined) throw agentNotFound(evidence.counterpartAgentId);
  if (counterpart !== undefined) {
    const affiliation = await affiliationOf(tx, subject, subjectId);
    if (haveOneOwner(affiliation, await affiliationOf(tx, counterpart, counterpartId))) {
      throw invalid(
        "evidence.counterpart_agent_id",
        "has the same owner as the agent: evidence must come from another owner",
      );
    }
  }
  return { subject, subjectId, counterpart, counterpartId };
}

/**
 * Checks that the caller may record the evidence, and returns its effects.
 *
 * @throws DeputeError CALLER_NOT_ALLOWED, INVALID_REQUEST, LIMIT_EXCEEDED, SIGNATURE_INVALID
 */
async function assessEvidence(
  registry: RegistryContext,
  tx: ReadTx,
  identity: Identity,
  { kind }: Evidence,
  parties: Parties,
  now: number,
): Promise<EvidenceAssessment> {
  const { subjectId, counterpart, counterpartId } = parties;
  const verifierId = kind.case === "attestation" ? kind.value.verifierAgentId : "";
  const witness = await assessWitness(registry, tx, parties, verifierId, now);
  switch (kind.case) {
    case "attestation":
      checkWitness(identity);
      return { effects: attestationEffects(kind.value), reference: kind.value.attestationId, witness };
    case "session": {
      checkWitness(identity);
      const effects = sessionEffects(kind.value, isKnown(witness.standing));
      return { effects, reference: kind.value.sessionId, witness };
    }
    case "rating": {
      checkMayActFor(identity, counterpart?.record.principal ?? "", "evidence.counterpart_agent_id");
      const { reference } = kind.value;
      if (!(await hasSubstantialOutcome(tx, subjectId, counterpartId, reference))) {
        throw invalid(
          "evidence.rating.reference",
          "must be the reference of recorded work of the two agents with a stake or a verified result",
        );
      }
      if ((await countEvidence(tx, subjectId, counterpartId, ["rating"], reference, 1)) > 0) {
        throw invalid("evidence.rating.reference", "has already been rated");
      }
      return { effects: ratingEffects(kind.value), reference, witness };
    }
    case "endorsement": {
      checkMayActFor(identity, counterpart?.record.principal ?? "", "evidence.counterpart_agent_id");
      await checkEndorser(tx, counterpart, counterpartId, subjectId, now);
      return { effects: endorsementEffects(), reference: "", witness };
    }
    case "signedImport": {
      const expected = { agentId: subjectId, audience: registry.publicUrl, now };
      const components = readImport(kind.value.statement, expected, registry.trustOperators, verifyEd25519);
      return { effects: components, reference: "", witness };
    }
    default:
      throw invalid("evidence.kind", "is required");
  }
}

/** Requires that the caller is the platform, because only the platform's services observe outcomes of work. */
function checkWitness(identity: Identity): void {
  if (identity.local) return;
  throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "only the platform may record outcomes", {
    violations: [{ field: "evidence", description: "may not be recorded by the caller" }],
  });
}

async function checkEndorser(
  tx: ReadTx,
  endorser: StoredAgent | undefined,
  endorserId: string,
  subjectId: string,
  now: number,
): Promise<void> {
  const endorserTrust =
    endorser && decay((await findTrustOrInitial(tx, endorser, endorserId, "", now)).trust, now);
  if (endorserTrust === undefined || trustScore(endorserTrust) < MIN_ENDORSER_SCORE) {
    throw invalid("evidence.counterpart_agent_id", `has a score below ${MIN_ENDORSER_SCORE}`);
  }
  if ((await countEvidence(tx, subjectId, endorserId, ["endorsement"], undefined, 1)) > 0) {
    throw invalid("evidence.counterpart_agent_id", "already endorses the agent");
  }
  const all = await countEvidence(tx, subjectId, undefined, ["endorsement"], undefined, MAX_ENDORSEMENTS);
  if (all < MAX_ENDORSEMENTS) return;
  throw new DeputeError(
    ErrorReason.LIMIT_EXCEEDED,
    "the agent has reached the limit of endorsements; no more are possible",
    {
      metadata: { limit: "endorsements", max: String(MAX_ENDORSEMENTS) },
    },
  );
}

function withEvidence(
  { trust, bayesian }: StoredTrust,
  { kind }: Evidence,
  effects: readonly Effect[],
  now: number,
  worth: Worth,
): StoredTrust {
  const outcome = kind.case === "attestation" ? kind.value : undefined;
  return {
    trust: applyEvidence(trust, effects, now, worth),
    bayesian:
      outcome === undefined
        ? bayesian
        : addOutcome(
            bayesian,
            {
              success: outcome.success,
              quality: outcome.quality,
              durationMs: outcome.duration === undefined ? 0 : durationMs(outcome.duration),
            },
            now,
            { standing: worth.standing, repeats: worth.repeats("commitmentFulfillment") },
          ),
  };
}

/**
 * Whether a caller may read evidence between the given agents: the caller is `local`, or may act for at least one of
 * them.
 */
export function isParty(identity: Identity, agents: readonly (StoredAgent | undefined)[]): boolean {
  return identity.local || agents.some((agent) => agent && mayActFor(identity, agent.record.principal));
}
