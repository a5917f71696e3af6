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
import type { CheckCaller } from "../checker/checker.ts";
import { readText } from "../json-value.ts";
import { checkCallerOf } from "../output-verification.ts";
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
import { createYieldToEventLoop } from "../yield-to-event-loop.ts";

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

/** Maximum number of attestations in one batch of concurrent verifications. */
const AT_ONCE = 32;

/**
 * Verifies an attestation and all its descendants. The rules are Depute's choice, because DelegateOS 7.3 leaves trees
 * to its version 0.2.
 */
export async function verifyAttestationTree(
  verifier: Verifier,
  request: VerifyAttestationTreeRequest,
  context: HandlerContext,
) {
  const identity = await verifier.authority.identify(context);
  const by = checkCallerOf({ identity, signal: context.signal });
  const rootOutput = readText(request.output, request.outputJson, "output");
  const yieldToEventLoop = createYieldToEventLoop(verifier);
  const nodes = await collectTree(verifier, request.attestationId, yieldToEventLoop);
  const knownAuthority = await loadAuthority(verifier, nodes, request.tokens, context, yieldToEventLoop);
  const ownVerdicts = ownVerdictsOf(verifier, nodes);
  const totals = totalsOf(nodes);
  const verifyNode = async (
    { attestation, storeTime, depth }: CollectedNode,
    sentOutput: string | undefined,
  ) => {
    const { contract, outputRule } = await verifier.contracts.get(attestation.contractId);
    const budget = contract.constraints.maxBudgetMicrocents;
    const total = totals.get(attestation.id) ?? 0n;
    const { costMicrocents } = attestation.result;
    const judge = (output: string) =>
      isDeterministic(contract.verification) ? verifier.checker.verify(outputRule, output, by) : undefined;
    const findings = [
      signatureFinding(verifier, attestation),
      ...(await outputFindings(verifier, by, attestation, sentOutput, ownVerdicts, judge)),
      costMicrocents <= budget
        ? passed("cost")
        : failed("cost", `${costMicrocents} microcents exceed the budget of ${budget}`),
      budgetFinding(total, budget),
      signerAuthority(verifier.engine, attestation, contract, storeTime, knownAuthority),
    ];
    return answerOf(attestation.id, depth, total, findings);
  };
  const answers: ReturnType<typeof answerOf>[] = [];
  for (let at = 0; at < nodes.length; at += AT_ONCE) {
    const some: Promise<ReturnType<typeof answerOf>>[] = [];
    for (const [i, node] of nodes.slice(at, at + AT_ONCE).entries()) {
      const answer = verifyNode(node, at + i === 0 ? rootOutput : undefined);
      // Promise.all below handles a rejection. A rejection before that would count as unhandled without this empty
      // handler.
      answer.catch(() => {});
      some.push(answer);
      await yieldToEventLoop();
    }
    answers.push(...(await Promise.all(some)));
    await yieldToEventLoop();
  }
  return { valid: answers.every((node) => node.passed), nodes: answers };
}

function signatureFinding({ engine }: Verifier, attestation: Attestation): TreeFinding {
  const verified = verifyObject(engine, "attestation", attestation);
  return verified.ok ? passed("signature") : failed("signature", verified.refusal.detail);
}

/** For each contract and output hash, whether the output passed according to the verifier's own attestations. */
type OwnVerdicts = ReadonlyMap<string, boolean>;

function ownVerdictsOf({ keypair }: Verifier, nodes: readonly CollectedNode[]): OwnVerdicts {
  const ownVerdicts = new Map<string, boolean>();
  for (const { attestation } of nodes) {
    const { principal, type, result } = attestation;
    if (principal !== keypair.principal.id || type !== "delegation_verification") continue;
    const key = keyOf(attestation);
    ownVerdicts.set(key, (ownVerdicts.get(key) ?? true) && result.verificationOutcome?.passed === true);
  }
  return ownVerdicts;
}

function keyOf({ contractId, result }: Attestation): string {
  return `${contractId} ${result.outputHash ?? ""}`;
}

async function outputFindings(
  verifier: Verifier,
  by: CheckCaller,
  attestation: Attestation,
  sentOutput: string | undefined,
  ownVerdicts: OwnVerdicts,
  judge: (output: string) => Promise<{ passed: boolean; details?: string }> | undefined,
): Promise<TreeFinding[]> {
  const { output: ownOutput, outputHash } = attestation.result;
  const output = ownOutput === undefined ? sentOutput : JSON.stringify(ownOutput);
  if (output === undefined) {
    if (outputHash === undefined) {
      const nothing = "the attestation holds neither an output nor its hash";
      return [failed("output", nothing), failed("verification", nothing)];
    }
    const ownVerdict = ownVerdicts.get(keyOf(attestation));
    if (ownVerdict === undefined) {
      const missing = "the attestation has only a hash of the output, and the verifier did not attest it";
      return [inconclusive("output", missing), inconclusive("verification", missing)];
    }
    const verdict = ownVerdict
      ? passed("verification")
      : failed("verification", "the verifier attested that the output failed");
    return [passed("output"), verdict];
  }
  const heldOutput = await canonicalOutput(verifier, output, by);
  const fault = outputFault({ heldOutput, hash: outputHash, sent: undefined });
  if (fault !== undefined) return [failed("output", fault), failed("verification", fault)];
  const result = await judge(heldOutput.canonical);
  if (result === undefined) {
    const ownVerdict = outputHash === undefined ? undefined : ownVerdicts.get(keyOf(attestation));
    if (ownVerdict === true) return [passed("output"), passed("verification")];
    return [
      passed("output"),
      inconclusive("verification", "the contract needs a model or a reviewer, which this call does not ask"),
    ];
  }
  return [
    passed("output"),
    result.passed
      ? passed("verification")
      : failed("verification", result.details ?? "the output did not pass"),
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
  // There can be no cycle, because the store accepts an attestation only after its children.
  if (sorted === undefined) throw new Error("stored attestations form a cycle");
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
