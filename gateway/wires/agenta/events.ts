import { ExecutionReceiptSchema } from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import type { WatchReceiptsResponse } from "@depute/contracts/depute/tasks/v1/execution_service_pb";
import { encode } from "@depute/wire";
import type { SseEvent } from "../../edge/sse.ts";
import { toAgentaError } from "./errors.ts";

/**
 * Converts receipts to server-sent events. A receipt of a settlement becomes `settled_receipt`, and every other receipt
 * becomes `receipt`. If the stream fails, the last event is `error`. The event id is the receipt's sequence.
 */
export async function* toSse(
  watched: AsyncIterable<WatchReceiptsResponse>,
  requestId: string,
): AsyncGenerator<SseEvent, void, undefined> {
  try {
    for await (const { receipt: numbered } of watched) {
      if (numbered?.receipt === undefined) continue;
      const { sequence, receipt, settles } = numbered;
      const event = settles ? "settled_receipt" : "receipt";
      yield { event, id: String(sequence), data: encode(ExecutionReceiptSchema, receipt) };
    }
  } catch (thrown) {
    yield { event: "error", data: toAgentaError(thrown, requestId).body };
  }
}
