import { reasonName } from "@depute/core";
import { fromConnectError } from "@depute/service";

/** How a call was refused: the reason's name, its metadata, and the fields at fault. */
export interface Refusal {
  readonly reason: string;
  readonly metadata: Record<string, string>;
  readonly fields: string[];
}

/** The refusal of a call that has to fail. */
export async function refusal(call: Promise<unknown>): Promise<Refusal> {
  const answer = await call.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  if ("value" in answer) throw new Error("the call was not refused");
  const { reason, metadata, violations } = fromConnectError(answer.error);
  return { reason: reasonName(reason), metadata, fields: violations.map(({ field }) => field) };
}
