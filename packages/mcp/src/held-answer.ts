/**
 * Holds an answer until its first bytes are there, because a stream's headers cannot be taken back.
 *
 * @param instead looked at once the first bytes are there: the answer to give in place of the held one
 */
export async function held(answer: Response, instead: () => Response | undefined): Promise<Response> {
  if (answer.body === null) return answer;
  const reader = answer.body.getReader();
  const first = await reader.read();
  const other = instead();
  if (other !== undefined) {
    await reader.cancel();
    return other;
  }
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      if (first.value !== undefined) controller.enqueue(first.value);
      if (first.done) controller.close();
    },
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
  const { status, headers } = answer;
  return new Response(body, { status, headers });
}
