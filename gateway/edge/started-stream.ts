import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";

/** An element of a task's stream: an event, or a heartbeat without one. */
export interface StreamItem {
  readonly taskEvent?: TaskEvent | undefined;
}

/** A stream of a task's events from which the first event was already read. */
export interface StartedStream {
  readonly first: IteratorResult<StreamItem>;
  readonly events: AsyncIterator<StreamItem>;
}

/** Reads the first event of a stream, so that a refusal is thrown before the answer begins. */
export async function firstOf(stream: AsyncIterable<StreamItem>): Promise<StartedStream> {
  const events = stream[Symbol.asyncIterator]();
  return { first: await events.next(), events };
}
