import type { CallOptions } from "@connectrpc/connect";
import { ExecutionReceiptSchema } from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import type { Execution, NumberedReceipt } from "@depute/contracts/depute/tasks/v1/execution_service_pb";
import { DeputeError, ErrorReason, fromTimestamp, isObject } from "@depute/core";
import { encode } from "@depute/wire";
import type { TokensContext } from "../context.ts";
import { partiesOf } from "../delegation-log.ts";
import type { ExplainedServices } from "../explained-services.ts";
import { answerOf, type Subject, type Viewer } from "./explained.ts";

/**
 * Reads a receipt with the platform's own credentials. The buyer, the parties of the buyer's chain and auditors may see
 * the explanation. For all other callers, including the seller, the error is that of an unknown receipt.
 *
 * @throws DeputeError EXECUTION_NOT_FOUND, DELEGATION_NOT_FOUND; the other errors of the tasks service
 */
export async function ofReceipt(
  { explained, delegations }: TokensContext,
  receiptId: string,
  viewer: Viewer,
  options: CallOptions,
): Promise<Subject> {
  const hidden = () =>
    new DeputeError(
      ErrorReason.EXECUTION_NOT_FOUND,
      "the receipt does not exist, or the caller may not see its buyer's authority; ask the buyer for the bundle",
      { metadata: { receipt: receiptId } },
    );
  const read = await find(explained, receiptId, options);
  if (read === undefined) throw hidden();
  const { execution, numbered } = read;
  const { authorityRevocationIds: ids, buyerPrincipal: buyer, organization, createTime } = execution;
  const chain = await delegations.chainOfBlocks(ids);
  const maySee = viewer.mayActFor(buyer) || viewer.maySee(partiesOf(chain), organization);
  if (!maySee) throw hidden();
  if (!execution.authorityKnown || chain.length < ids.length) throw notRecorded(receiptId);
  const { receipt, sequence } = numbered;
  const document = receipt === undefined ? undefined : encode(ExecutionReceiptSchema, receipt);
  return {
    ...{ kind: "receipt", id: receiptId, chain, principal: buyer },
    time: createTime === undefined ? undefined : fromTimestamp(createTime),
    proofs: isObject(document) ? { receipt: document } : {},
    receipt: {
      requestId: receipt?.requestId ?? "",
      sequence: Number(sequence),
      ...{ buyer, organization },
    },
  };
}

async function find(
  { executions }: Pick<ExplainedServices, "executions">,
  receiptId: string,
  options: CallOptions,
): Promise<{ execution: Execution; numbered: NumberedReceipt } | undefined> {
  try {
    const name = { case: "receiptId", value: receiptId } as const;
    const { execution } = await answerOf(executions.getExecution({ name }, options));
    const requestId = execution?.request?.requestId ?? "";
    const { receipts } = await answerOf(executions.listReceipts({ requestId }, options));
    const numbered = receipts.find(({ receipt }) => receipt?.receiptId === receiptId);
    return execution === undefined || numbered === undefined ? undefined : { execution, numbered };
  } catch (error) {
    // The error of the tasks service names the execution. A caller that may not see the receipt must not learn that
    // name.
    if (error instanceof DeputeError && error.reason === ErrorReason.EXECUTION_NOT_FOUND) return undefined;
    throw error;
  }
}

function notRecorded(receiptId: string): DeputeError {
  return new DeputeError(
    ErrorReason.DELEGATION_NOT_FOUND,
    "the buyer's token is not recorded here; record it with RecordToken, or explain the token itself",
    { metadata: { delegation: "", receipt: receiptId } },
  );
}
