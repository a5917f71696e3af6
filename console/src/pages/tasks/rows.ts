import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { useInfiniteQuery } from "@connectrpc/connect-query";
import type { Task, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import { useSoon } from "../../rpc/soon.ts";
import { useWatchedTasks } from "../../rpc/watched-tasks.ts";
import { mergedRows } from "../../rules/merged-rows.ts";

/** Number of tasks on one page of the list. */
const PAGE = 200;

/**
 * When the stream reports that tasks have left the list, the older pages are read again, at most once in this many
 * milliseconds.
 */
const READ_MS = 1_000;

export interface TaskFilter {
  readonly agentId: string;
  readonly capabilityId: string;
  readonly correlationId: string;
  readonly statuses: TaskStatus[];
}

/**
 * Returns the tasks that match a filter, newest first. A stream reports the newest tasks at once. The pages with older
 * tasks are read at intervals.
 */
export function useTaskRows(filter: TaskFilter) {
  const request = { ...filter, pageSize: PAGE };
  const queries = useQueryClient();
  const readPages = useSoon(() => void queries.invalidateQueries(), READ_MS);
  const watched = useWatchedTasks(request, ({ removedTaskIds }) => {
    // An earlier read of the pages may still contain the removed tasks, so the pages are read again.
    if (removedTaskIds.length > 0) readPages();
  });
  const pages = useInfiniteQuery(
    TaskService.method.listTasks,
    { ...request, pageToken: "" },
    {
      pageParamKey: "pageToken",
      getNextPageParam: ({ nextPageToken }) => (nextPageToken === "" ? undefined : nextPageToken),
      refetchInterval: ({ state }) => Math.max(10_000, 2_000 * (state.data?.pages.length ?? 1)),
    },
  );
  const rows = useMemo(() => {
    const older = pages.data?.pages.flatMap(({ tasks }) => tasks) ?? [];
    return mergedRows<Task>(watched.tasks, older, {
      idOf: ({ id }) => id,
      timeOf: ({ createTime }) => msOf(createTime),
      isNewer: (one, other) => one.lastSequence >= other.lastSequence,
    });
  }, [watched.tasks, pages.data]);
  return { rows, watched, pages };
}

function msOf(time: Timestamp | undefined): number {
  return time === undefined ? 0 : timestampMs(time);
}
