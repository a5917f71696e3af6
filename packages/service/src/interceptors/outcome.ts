import {
  Code,
  ConnectError,
  type Interceptor,
  type StreamRequest,
  type UnaryRequest,
} from "@connectrpc/connect";

export type Next = Parameters<Interceptor>[0];
export type Request = UnaryRequest | StreamRequest;
type Response = Awaited<ReturnType<Next>>;

/** How one call is looked at, whether it answers once or many times. */
export interface CallHooks {
  /** Runs each step of the call; the place for an async context. */
  run?<T>(step: () => Promise<T>): Promise<T>;
  /** What is thrown instead of what was thrown. */
  mapError?(thrown: unknown): unknown;
  /** Called once, when the call has ended: with what was thrown, after mapping, or with undefined. */
  end?(thrown: unknown): void;
}

const direct = <T>(step: () => Promise<T>) => step();

/** Calls `next` under the hooks; a stream ends when its last message was read, it failed, or its reader left. */
export async function withHooks(next: Next, request: Request, hooks: CallHooks): Promise<Response> {
  const run = hooks.run?.bind(hooks) ?? direct;
  let ended = false;
  const end = (thrown?: unknown) => {
    if (ended) return;
    ended = true;
    hooks.end?.(thrown);
  };
  const fail = (thrown: unknown) => {
    const mapped = hooks.mapError === undefined ? thrown : hooks.mapError(thrown);
    end(mapped);
    return mapped;
  };
  let response: Response;
  try {
    response = await run(() => next(request));
  } catch (thrown) {
    throw fail(thrown);
  }
  if (!response.stream) {
    end();
    return response;
  }
  const source = response.message;
  const message: typeof source = {
    [Symbol.asyncIterator]() {
      const iterator = source[Symbol.asyncIterator]();
      return {
        async next() {
          try {
            const item = await run(() => iterator.next());
            if (item.done === true) end();
            return item;
          } catch (thrown) {
            throw fail(thrown);
          }
        },
        async return(value?: unknown) {
          end(new ConnectError("canceled", Code.Canceled));
          return (await iterator.return?.(value)) ?? { done: true, value };
        },
      };
    },
  };
  return { ...response, message };
}
