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

/** Calls `next` under the hooks; a stream ends when its last message was read, it failed, or its reader left. */
export async function withHooks(next: Next, request: Request, hooks: CallHooks): Promise<Response> {
  let response: Response;
  try {
    response = await (hooks.run === undefined ? next(request) : hooks.run(() => next(request)));
  } catch (thrown) {
    throw failed(hooks, thrown);
  }
  if (response.stream) return { ...response, message: hooked(response.message, hooks) };
  hooks.end?.(undefined);
  return response;
}

/** Tells the hooks of a failure; gives what is thrown. */
function failed(hooks: CallHooks, thrown: unknown): unknown {
  const mapped = hooks.mapError === undefined ? thrown : hooks.mapError(thrown);
  hooks.end?.(mapped);
  return mapped;
}

function hooked<T>(source: AsyncIterable<T>, hooks: CallHooks): AsyncIterable<T> {
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
  return {
    [Symbol.asyncIterator]() {
      const iterator = source[Symbol.asyncIterator]();
      const step = () => iterator.next();
      return {
        async next() {
          try {
            const item = await (hooks.run === undefined ? step() : hooks.run(step));
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
}
