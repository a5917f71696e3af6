import type { Timers } from "@depute/core";

/**
 * Maximum time in milliseconds for which the proxy delays the headers of a stream. If the platform refuses the
 * credentials, it usually does so within this time. The proxy can then still set the HTTP status. The call itself may
 * take longer.
 */
export const HOLD_MS = 500;

/**
 * Delays a response until its first bytes arrive, because sent headers cannot be changed. The delay ends after {@link
 * HOLD_MS}, because clients wait for the headers.
 *
 * @param instead called after the delay; may return a response that replaces the delayed response
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

/**
 * Waits for the first bytes or the timeout. A rejection is ignored here, because the reader of the body gets the same
 * rejection.
 */
async function within(coming: Promise<unknown>, timers: Timers): Promise<void> {
  let cancel = () => {};
  const over = new Promise<void>((resolve) => {
    cancel = timers.after(HOLD_MS, resolve);
  });
  await Promise.race([coming.catch(() => {}), over]);
  cancel();
}
