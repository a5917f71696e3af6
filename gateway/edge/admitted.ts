/**
 * Waits for the first response of a watch. This response shows that the service has admitted the caller. If the service
 * refuses the watch, the function throws before the gateway sends any header. So the answer gets the HTTP status of the
 * refusal.
 *
 * @param watched a watch whose request asks for an immediate first response
 * @returns the responses after the first
 * @throws the service's refusal of the watch
 */
export async function admitted<T>(watched: AsyncIterable<T>): Promise<AsyncIterable<T>> {
  const responses = watched[Symbol.asyncIterator]();
  await responses.next();
  return { [Symbol.asyncIterator]: () => responses };
}
