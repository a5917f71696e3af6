import { type CallOptions, Code, ConnectError } from "@connectrpc/connect";
import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { linkSignals } from "@depute/service";

/** An element of a task's stream: an event, or a heartbeat without an event. */
export interface StreamItem {
  readonly taskEvent?: TaskEvent | undefined;
}

/** A stream of a task's events. The first event has already been read. */
export interface StartedStream {
  readonly first: IteratorResult<StreamItem>;
  readonly events: AsyncIterator<StreamItem>;
}

/**
 * Wraps the stream of a call, so that its reader can end the call early with `return`. The streams of Connect's clients
 * have no `return`: only the signal of the call ends them early. If a unary handler succeeds, its own signal never
 * aborts. So without this function, a handler that reads only the start of a stream would leave the call open.
 */
export async function* leavable<Item>(
  open: (options: CallOptions) => AsyncIterable<Item>,
  options: CallOptions,
): AsyncGenerator<Item, void, undefined> {
  const link = linkSignals(...(options.signal === undefined ? [] : [options.signal]));
  let isOver = false;
  try {
    yield* open({ ...options, signal: link.signal });
    isOver = true;
  } finally {
    if (isOver) link.release();
    else link.abort(new ConnectError("the reader has left", Code.Canceled));
  }
}

/**
 * Reads the first event of a stream. If the service refuses the call, this function throws before the answer begins.
 */
export async function firstOf(stream: AsyncIterable<StreamItem>): Promise<StartedStream> {
  const events = stream[Symbol.asyncIterator]();
  return { first: await events.next(), events };
}
