/**
 * Waits for the first response of a watch, which shows that the service has admitted the caller. If the service
 * refuses, this function throws the refusal before any header is sent. So the answer gets the refusal's HTTP status.
 *
 * @param watched a watch whose request asks for a first response at once
 * @returns the responses after the first
 * @throws the service's refusal of the watch
 */
export async function admitted<T>(watched: AsyncIterable<T>): Promise<AsyncIterable<T>> {
  const responses = watched[Symbol.asyncIterator]();
  await responses.next();
  return { [Symbol.asyncIterator]: () => responses };
}
