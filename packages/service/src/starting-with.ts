/** Returns an iterable of `first`, which was already read from `rest`, and of the items that remain in `rest`. */
export function startingWith<T>(first: IteratorResult<T>, rest: AsyncIterator<T>): AsyncIterable<T> {
  let pending: IteratorResult<T> | undefined = first;
  return {
    [Symbol.asyncIterator]: () => ({
      next() {
        if (pending === undefined) return rest.next();
        const item = pending;
        pending = undefined;
        return Promise.resolve(item);
      },
      return: (value?: unknown) => rest.return?.(value) ?? Promise.resolve({ done: true, value: value as T }),
    }),
  };
}
