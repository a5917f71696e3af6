import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { VerificationMethod } from "@depute/contracts/delegateos/v0/verification_pb";
import {
  type CheckOutputRequest,
  type CheckSchemaRequest,
  SchemaDialect,
  type VerificationService,
} from "@depute/contracts/depute/verifier/v1/verification_service_pb";
import { CanonicalError, canonicalJson, invalid } from "@depute/core";
import { SCHEMA_LIMITS } from "../checker/schema-limits.ts";
import { readValue } from "../json-value.ts";
import type { VerificationSpec } from "../rules/documents.ts";
import type { Verifier } from "../verifier.ts";

const METHODS: Record<VerificationSpec["method"], VerificationMethod> = {
  schema_match: VerificationMethod.SCHEMA_MATCH,
  deterministic_check: VerificationMethod.DETERMINISTIC_CHECK,
  composite: VerificationMethod.COMPOSITE,
  llm_judge: VerificationMethod.LLM_JUDGE,
  human_review: VerificationMethod.HUMAN_REVIEW,
};

/** VerificationService (DelegateOS 6, 10.3). */
export function verificationService({
  contracts,
  checker,
  authority,
}: Verifier): ServiceImpl<typeof VerificationService> {
  return {
    async checkOutput(request: CheckOutputRequest, context: HandlerContext) {
      await authority.identify(context);
      if (request.output === undefined) throw invalid("output", "is needed");
      const { text } = readValue(request.output, "output");
      const { contract, judgement } = await contracts.get(request.contractId);
      const result = await checker.verify(judgement, text, context.signal);
      return { method: METHODS[contract.verification.method], result };
    },

    async checkSchema(request: CheckSchemaRequest, context: HandlerContext) {
      await authority.identify(context);
      if (request.schema === undefined) throw invalid("schema", "is needed");
      const schema = readValue(request.schema, "schema", SCHEMA_LIMITS.bytes);
      const value = request.value === undefined ? undefined : readValue(request.value, "value").text;
      const dialect = request.dialect === SchemaDialect.SCHEMA_DIALECT_DRAFT_07 ? "draft-07" : "2020-12";
      return {
        violations: await checker.validate(canonicalSchema(schema.value), dialect, value, context.signal),
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
