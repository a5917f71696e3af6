import { ExecutionReceiptSchema } from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import type { WatchReceiptsResponse } from "@depute/contracts/depute/tasks/v1/execution_service_pb";
import { encode } from "@depute/wire";
import type { SseEvent } from "../../src/sse.ts";
import { toAgentaError } from "./errors.ts";

/**
 * Receipts as events: `receipt` for each status, `settled_receipt` for the one that says how the payment was settled, `error`
 * when the stream breaks. The id is the receipt's number.
 */
export async function* toSse(
  watched: AsyncIterable<WatchReceiptsResponse>,
  requestId: string,
): AsyncGenerator<SseEvent, void, undefined> {
  try {
    for await (const { receipt: numbered } of watched) {
      if (numbered?.receipt === undefined) continue;
      const { number, receipt, settles } = numbered;
      const event = settles ? "settled_receipt" : "receipt";
      yield { event, id: String(number), data: encode(ExecutionReceiptSchema, receipt) };
    }
  } catch (thrown) {
    yield { event: "error", data: toAgentaError(thrown, requestId).body };
  }
}
