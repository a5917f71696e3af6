import { type CallOptions, Code, ConnectError } from "@connectrpc/connect";
import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { linkSignals } from "@depute/service";

/** An element of a task's stream: an event, or a heartbeat without an event. */
export interface StreamItem {
  readonly taskEvent?: TaskEvent | undefined;
}

/** A stream of a task's events from which the first event was already read. */
export interface StartedStream {
  readonly first: IteratorResult<StreamItem>;
  readonly events: AsyncIterator<StreamItem>;
}

/**
 * Wraps a stream so that its reader can end the call early, by `return`. The streams of Connect's clients have no
 * `return`: only the signal of the call ends them early. A unary handler that reads only the start of a stream cannot
 * rely on its own signal. That signal never aborts after success, so the stream's handler would continue to run.
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

/** Reads the first event of a stream, so that a refusal is thrown before the answer begins. */
export async function firstOf(stream: AsyncIterable<StreamItem>): Promise<StartedStream> {
  const events = stream[Symbol.asyncIterator]();
  return { first: await events.next(), events };
}
