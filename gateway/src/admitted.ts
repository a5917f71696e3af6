/**
 * Waits for the first response of a watch, which says that the service has admitted the caller. A refusal is thrown here,
 * before any header of the answer is sent, and so has its own status.
 *
 * @param watched a watch that was asked to tell its start
 * @returns the responses after the first
 * @throws what the service refused the watch with
 */
export async function admitted<T>(watched: AsyncIterable<T>): Promise<AsyncIterable<T>> {
  const responses = watched[Symbol.asyncIterator]();
  await responses.next();
  return { [Symbol.asyncIterator]: () => responses };
}
