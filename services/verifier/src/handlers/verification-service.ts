import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { VerificationMethod } from "@depute/contracts/delegateos/v0/verification_pb";
import {
  type CheckOutputRequest,
  type CheckSchemaRequest,
  SchemaDialect,
  type VerificationService,
} from "@depute/contracts/depute/verifier/v1/verification_service_pb";
import { CanonicalError, canonicalJson, invalid } from "@depute/core";
import { SCHEMA_LIMITS } from "@depute/wire/json-schema";
import { canonicalOutput } from "../attestations.ts";
import { readText, readValue, requireText } from "../json-value.ts";
import { checkCallerOf, payingTokenOf, verifyByContract } from "../output-verification.ts";
import type { VerificationSpec } from "../rules/documents.ts";
import { isDeterministic } from "../rules/methods.ts";
import type { Verifier } from "../verifier.ts";

const METHODS: Record<VerificationSpec["method"], VerificationMethod> = {
  schema_match: VerificationMethod.SCHEMA_MATCH,
  deterministic_check: VerificationMethod.DETERMINISTIC_CHECK,
  composite: VerificationMethod.COMPOSITE,
  llm_judge: VerificationMethod.LLM_JUDGE,
  human_review: VerificationMethod.HUMAN_REVIEW,
};

/** Handles the calls of VerificationService (DelegateOS 6 and 10.3). */
export function verificationService(verifier: Verifier): ServiceImpl<typeof VerificationService> {
  const { contracts, checker, authority } = verifier;
  return {
    async checkOutput(request: CheckOutputRequest, context: HandlerContext) {
      const identity = await authority.identify(context);
      const text = requireText(request.output, request.outputJson, "output");
      const contract = await contracts.get(request.contractId);
      const { verification } = contract.contract;
      const by = { identity, signal: context.signal };
      // Models and reviewers get the output in its canonical form, so that equal outputs look equal.
      const shownOutput = isDeterministic(verification)
        ? { canonical: text, hash: "" }
        : await canonicalOutput(verifier, text, checkCallerOf(by));
      const payingToken = payingTokenOf(request.payingToken, context);
      const subject = {
        knownContract: contract,
        output: shownOutput.canonical,
        outputHash: shownOutput.hash,
        payingToken,
        ...by,
      };
      const { result, reviewId, cost } = await verifyByContract(verifier, subject);
      const answer = { method: METHODS[verification.method], reviewId, judgeCostMicrocents: BigInt(cost) };
      return result === undefined ? answer : { ...answer, result };
    },

    async checkSchema(request: CheckSchemaRequest, context: HandlerContext) {
      const identity = await authority.identify(context);
      if (request.schema === undefined) throw invalid("schema", "is required");
      const schema = readValue(request.schema, "schema", SCHEMA_LIMITS.bytes);
      const value = readText(request.value, request.valueJson, "value");
      const dialect = request.dialect === SchemaDialect.SCHEMA_DIALECT_DRAFT_07 ? "draft-07" : "2020-12";
      return {
        violations: await checker.validate(
          canonicalSchema(schema.value),
          dialect,
          value,
          checkCallerOf({ identity, signal: context.signal }),
        ),
      };
    },
  };
}

function canonicalSchema(value: unknown): string {
  try {
    return canonicalJson(value);
  } catch (error) {
    if (error instanceof CanonicalError) throw invalid("schema", error.message);
    throw error;
  }
}
