import type { HandlerContext } from "@connectrpc/connect";
import {
  AttestationStep,
  TreeOutcome,
  type VerifyAttestationTreeRequest,
} from "@depute/contracts/depute/verifier/v1/attestation_service_pb";
import { verifyObject } from "@depute/dct";
import { type CollectedNode, collectTree } from "../attestation-tree.ts";
import { canonicalOutput } from "../attestations.ts";
import { loadAuthority } from "../authority-context.ts";
import { createBreath } from "../breath.ts";
import type { By } from "../checker/checker.ts";
import { readText } from "../json-value.ts";
import { byOf } from "../judging.ts";
import { outputFault } from "../rules/attestation-findings.ts";
import {
  budgetFinding,
  failed,
  inconclusive,
  type Outcome,
  parentsFirst,
  passed,
  type TreeFinding,
  type TreeStep,
  totalCosts,
} from "../rules/attestation-tree.ts";
import type { Attestation } from "../rules/documents.ts";
import { isDeterministic } from "../rules/methods.ts";
import { signerAuthority } from "../rules/signer-authority.ts";
import type { Verifier } from "../verifier.ts";

const STEPS: Record<TreeStep, AttestationStep> = {
  signature: AttestationStep.SIGNATURE,
  output: AttestationStep.OUTPUT,
  verification: AttestationStep.VERIFICATION,
  cost: AttestationStep.COST,
  budget: AttestationStep.BUDGET,
  authority: AttestationStep.AUTHORITY,
};

const OUTCOMES: Record<Outcome, TreeOutcome> = {
  passed: TreeOutcome.PASSED,
  failed: TreeOutcome.FAILED,
  inconclusive: TreeOutcome.INCONCLUSIVE,
};

/** Attestations whose outputs are checked at once. */
const AT_ONCE = 32;

/** Verifies an attestation with all that it builds on (DelegateOS 7.3, which leaves it to v0.2). */
export async function verifyAttestationTree(
  verifier: Verifier,
  request: VerifyAttestationTreeRequest,
  context: HandlerContext,
) {
  const identity = await verifier.authority.identify(context);
  const by = byOf({ identity, signal: context.signal });
  const rootOutput = readText(request.output, request.outputJson, "output");
  const breathe = createBreath();
  const nodes = await collectTree(verifier, request.id, breathe);
  const known = await loadAuthority(verifier, nodes, request.tokens, context, breathe);
  const vouched = vouchedFor(verifier, nodes);
  const totals = totalsOf(nodes);
  const verifyNode = async ({ attestation, storeTime, depth }: CollectedNode, given: string | undefined) => {
    const { contract, judgement } = await verifier.contracts.get(attestation.contractId);
    const budget = contract.constraints.maxBudgetMicrocents;
    const total = totals.get(attestation.id) ?? 0n;
    const { costMicrocents } = attestation.result;
    const judge = (output: string) =>
      isDeterministic(contract.verification) ? verifier.checker.verify(judgement, output, by) : undefined;
    const findings = [
      signatureFinding(verifier, attestation),
      ...(await outputFindings(verifier, by, attestation, given, vouched, judge)),
      costMicrocents <= budget
        ? passed("cost")
        : failed("cost", `${costMicrocents} microcents are more than the budget of ${budget}`),
      budgetFinding(total, budget),
      signerAuthority(verifier.engine, attestation, contract, storeTime, known),
    ];
    return answerOf(attestation.id, depth, total, findings);
  };
  const answers: ReturnType<typeof answerOf>[] = [];
  for (let at = 0; at < nodes.length; at += AT_ONCE) {
    const some: Promise<ReturnType<typeof answerOf>>[] = [];
    for (const [i, node] of nodes.slice(at, at + AT_ONCE).entries()) {
      const answer = verifyNode(node, at + i === 0 ? rootOutput : undefined);
      // It is looked at below; until then a failure is not nobody's.
      answer.catch(() => {});
      some.push(answer);
      await breathe();
    }
    answers.push(...(await Promise.all(some)));
    await breathe();
  }
  return { valid: answers.every((node) => node.passed), nodes: answers };
}

function signatureFinding({ engine }: Verifier, attestation: Attestation): TreeFinding {
  const verified = verifyObject(engine, "attestation", attestation);
  return verified.ok ? passed("signature") : failed("signature", verified.refusal.detail);
}

/** Contract and output hash of what the verifier itself has judged, and how. */
type Vouched = ReadonlyMap<string, boolean>;

function vouchedFor({ keypair }: Verifier, nodes: readonly CollectedNode[]): Vouched {
  const vouched = new Map<string, boolean>();
  for (const { attestation } of nodes) {
    const { principal, type, result } = attestation;
    if (principal !== keypair.principal.id || type !== "delegation_verification") continue;
    const key = keyOf(attestation);
    vouched.set(key, (vouched.get(key) ?? true) && result.verificationOutcome?.passed === true);
  }
  return vouched;
}

function keyOf({ contractId, result }: Attestation): string {
  return `${contractId} ${result.outputHash ?? ""}`;
}

async function outputFindings(
  verifier: Verifier,
  by: By,
  attestation: Attestation,
  given: string | undefined,
  vouched: Vouched,
  judge: (output: string) => Promise<{ passed: boolean; details?: string }> | undefined,
): Promise<TreeFinding[]> {
  const { output: own, outputHash } = attestation.result;
  const output = own === undefined ? given : JSON.stringify(own);
  if (output === undefined) {
    if (outputHash === undefined) {
      const nothing = "the attestation holds neither an output nor its hash";
      return [failed("output", nothing), failed("verification", nothing)];
    }
    const judged = vouched.get(keyOf(attestation));
    if (judged === undefined) {
      const missing = "only a hash is there, and the verifier did not sign for it";
      return [inconclusive("output", missing), inconclusive("verification", missing)];
    }
    const verdict = judged
      ? passed("verification")
      : failed("verification", "the verifier judged that it fails");
    return [passed("output"), verdict];
  }
  const held = await canonicalOutput(verifier, output, by);
  const fault = outputFault({ held, hash: outputHash, given: undefined });
  if (fault !== undefined) return [failed("output", fault), failed("verification", fault)];
  const result = await judge(held.canonical);
  if (result === undefined) {
    const judged = outputHash === undefined ? undefined : vouched.get(keyOf(attestation));
    if (judged === true) return [passed("output"), passed("verification")];
    return [
      passed("output"),
      inconclusive("verification", "it needs a model or a person, and is not repeated here"),
    ];
  }
  return [
    passed("output"),
    result.passed ? passed("verification") : failed("verification", result.details ?? "it did not pass"),
  ];
}

function totalsOf(nodes: readonly CollectedNode[]): Map<string, bigint> {
  const costs = nodes.map(({ attestation: { id, childAttestations, contractId, delegationId, result } }) => ({
    id,
    children: childAttestations,
    delegation: `${contractId} ${delegationId}`,
    cost: result.costMicrocents,
  }));
  const sorted = parentsFirst(costs);
  // Children are stored before their parents, so none is among its own.
  if (sorted === undefined) throw new Error("stored attestations build on one another in a circle");
  return totalCosts(sorted);
}

function answerOf(attestationId: string, depth: number, total: bigint, findings: readonly TreeFinding[]) {
  const faults = findings.filter(({ outcome }) => outcome !== "passed");
  return {
    attestationId,
    depth,
    passed: faults.length === 0,
    totalCostMicrocents: total,
    findings: faults.map(({ step, outcome, details }) => ({
      step: STEPS[step],
      outcome: OUTCOMES[outcome],
      details,
    })),
  };
}
