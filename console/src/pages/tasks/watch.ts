import { createClient } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { useMemo, useRef, useState } from "react";
import { type Connection, useFollow } from "../../rpc/follow.ts";
import { statusFacts } from "../../rules/task-status.ts";

/** Maximum number of events that a page keeps. If there are more, the page drops the oldest events. */
const MAX_EVENTS = 2_000;

/**
 * Follows the events of a task from the first event on. If the stream breaks, a new stream continues after the last
 * received event.
 */
export function useTaskEvents(taskId: string, onEvent: (event: TaskEvent) => void) {
  const transport = useTransport();
  const client = useMemo(() => createClient(TaskService, transport), [transport]);
  const [events, setEvents] = useState<readonly TaskEvent[]>([]);
  const cursor = useRef(0n);
  const hasEnded = useRef(false);
  const connection: Connection = useFollow(taskId, {
    open: (signal) => client.watchTask({ taskId, afterSequence: cursor.current }, { signal }),
    take: ({ taskEvent }) => {
      if (taskEvent === undefined || taskEvent.sequence <= cursor.current) return false;
      cursor.current = taskEvent.sequence;
      hasEnded.current = !statusFacts(taskEvent.status).isOpen;
      setEvents((before) => [...before.slice(-MAX_EVENTS + 1), taskEvent]);
      onEvent(taskEvent);
      return hasEnded.current;
    },
    isOver: () => hasEnded.current,
  });
  return { events, connection };
}
