import type { MessageInitShape } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import {
  TaskService,
  type WatchTasksRequestSchema,
  type WatchTasksResponse,
} from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { useMemo, useRef, useState } from "react";
import { applyChange } from "../rules/watched-tasks.ts";
import { type Connection, useFollow } from "./follow.ts";

const NO_TASKS: readonly Task[] = [];

export interface WatchedTasks {
  /** The newest tasks that match the request, newest first; empty until the first response. */
  readonly tasks: readonly Task[];
  /** Whether there are older tasks that also match. */
  readonly hasMore: boolean;
  /** Whether the stream has sent its first response. */
  readonly isRead: boolean;
  readonly connection: Connection;
}

/**
 * Follows the newest tasks of the caller that match a request.
 *
 * @param onChange called for each response of a stream except the first
 */
export function useWatchedTasks(
  request: MessageInitShape<typeof WatchTasksRequestSchema>,
  onChange: (response: WatchTasksResponse) => void,
): WatchedTasks {
  const transport = useTransport();
  const client = useMemo(() => createClient(TaskService, transport), [transport]);
  const key = JSON.stringify(request, (_, value) => (typeof value === "bigint" ? String(value) : value));
  const [list, setList] = useState({ key: "", tasks: NO_TASKS, hasMore: false });
  const isFirst = useRef(true);
  const connection = useFollow<WatchTasksResponse>(`tasks ${key}`, {
    open: (signal) => {
      isFirst.current = true;
      return client.watchTasks(request, { signal });
    },
    take: (response) => {
      const replaces = isFirst.current;
      isFirst.current = false;
      setList((shown) => ({
        key,
        tasks: applyChange(shown.key === key ? shown.tasks : NO_TASKS, response, replaces),
        hasMore: response.hasMore,
      }));
      if (!replaces) onChange(response);
      return false;
    },
  });
  const isRead = list.key === key;
  return {
    tasks: isRead ? list.tasks : NO_TASKS,
    hasMore: isRead && list.hasMore,
    isRead,
    connection,
  };
}
