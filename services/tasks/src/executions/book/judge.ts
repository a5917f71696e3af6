import { toJsonString } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import type { CallOptions, Client } from "@connectrpc/connect";
import type { Offer } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import type { TaskOutput } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { ResultService } from "@depute/contracts/depute/verifier/v1/result_service_pb";
import type { VerificationService } from "@depute/contracts/depute/verifier/v1/verification_service_pb";
import { ErrorReason } from "@depute/core";
import { reasonOf } from "@depute/service";
import { failureOf, type ResultCheck, type TaskEngine } from "../../core/index.ts";
import { evidenceFault } from "../rules/evidence.ts";
import { checkForms } from "../rules/forms.ts";
import { priceOf } from "../rules/price.ts";
import { requiredArtifacts } from "../rules/terms.ts";
import { findByTask, readOffer } from "../store/execution-rows.ts";

export interface JudgeOptions {
  readonly engine: Pick<TaskEngine, "store">;
  readonly results: Client<typeof ResultService>;
  readonly verification: Client<typeof VerificationService>;
}

/**
 * Checks the delivery of an execution: the offer's schema, the required evidence, the digests, and the price within the
 * buyer's limit. A violation fails the task with a reason that `outcome.ts` maps to an execution error.
 */
export function executionJudge({ engine, results, verification }: JudgeOptions): ResultCheck {
  const { store } = engine;
  return async ({ task }, { output, delivery }, options) => {
    if (task.executionRequestId === "") return undefined;
    const found = await store.read(async (tx) => {
      const record = await findByTask(tx, task.id);
      return record && { record, offer: await readOffer(tx, record) };
    });
    if (found === undefined) return undefined;
    const { record, offer } = found;
    const unfit = await outputFault(offer, output, options);
    if (unfit !== undefined) return failureOf("OUTPUT_SCHEMA_VIOLATION", unfit);
    const { artifacts = [], usage, quotedAmount } = delivery ?? {};
    // A malformed address causes a refusal and does not fail the task, because the seller can correct the address.
    checkForms(artifacts.map(({ uri }, at) => [`delivery.artifacts[${at}].uri`, "uri", uri]));
    const checked =
      artifacts.length === 0 ? [] : (await results.checkArtifacts({ artifacts }, options)).artifacts;
    const verdicts = checked.map(({ verdict }) => verdict);
    const fault = evidenceFault(requiredArtifacts(record.request, offer), artifacts, verdicts);
    if (fault !== undefined) return failureOf(fault.reason, fault.message);
    if (offer.pricing === undefined) return undefined;
    const price = priceOf(offer.pricing, record.limit, usage, quotedAmount);
    return "error" in price ? failureOf(ErrorReason.BUDGET_EXCEEDED, price.error.message) : undefined;
  };

  /**
   * Returns why an output does not fit the offer's schema; undefined if it fits. A check that timed out counts as not
   * fitting.
   */
  async function outputFault(
    { outputSchema: schema }: Offer,
    output: TaskOutput | undefined,
    options: CallOptions,
  ): Promise<string | undefined> {
    const value = output?.full;
    // A receipt's result is an object, even if the schema allows other values. (Agenta execution_receipt.schema.json
    // `result`)
    if (value?.kind.case !== "structValue") return "the result must be an object";
    if (schema === undefined) return undefined;
    try {
      const { violations } = await verification.checkSchema(
        { schema, valueJson: toJsonString(ValueSchema, value) },
        options,
      );
      const [first] = violations;
      return first && `/result${first.path}: ${first.message}`;
    } catch (error) {
      if (reasonOf(error) !== ErrorReason.CHECK_TIMEOUT) throw error;
      return "the result could not be checked against the offer's schema in time";
    }
  }
}
