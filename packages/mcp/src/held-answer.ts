import type { Timers } from "@depute/core";

/** Milliseconds for which the headers of a stream wait. A refusal of credentials comes before; work may take longer. */
export const HOLD_MS = 500;

/**
 * Holds an answer until its first bytes are there, because a stream's headers cannot be taken back; at most
 * {@link HOLD_MS}, because a client waits for them.
 *
 * @param instead looked at once the first bytes are there: the answer to give in place of the held one
 */
export async function held(
  answer: Response,
  instead: () => Response | undefined,
  timers: Timers,
): Promise<Response> {
  if (answer.body === null) return answer;
  const reader = answer.body.getReader();
  const first = reader.read();
  await within(first, timers);
  const other = instead();
  if (other !== undefined) {
    await reader.cancel();
    return other;
  }
  let next: typeof first | undefined = first;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await (next ?? reader.read());
      next = undefined;
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
  const { status, headers } = answer;
  return new Response(body, { status, headers });
}

/** Resolves when something has come, or when the time is over. What it rejects with is thrown where it is read. */
async function within(coming: Promise<unknown>, timers: Timers): Promise<void> {
  let cancel = () => {};
  const over = new Promise<void>((resolve) => {
    cancel = timers.after(HOLD_MS, resolve);
  });
  await Promise.race([coming.catch(() => {}), over]);
  cancel();
}
