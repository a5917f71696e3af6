import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { useInfiniteQuery, useQuery } from "@connectrpc/connect-query";
import type { Task, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { useMemo } from "react";
import { mergedRows } from "../../rules/merged-rows.ts";

/** Tasks on one page of the list. */
const PAGE = 200;

/** Pause between two reads of the newest tasks, in milliseconds. No RPC streams the tasks of a caller. */
const HEAD_MS = 1_500;

export interface TaskFilter {
  readonly agentId: string;
  readonly capabilityId: string;
  readonly correlationId: string;
  readonly statuses: TaskStatus[];
}

/**
 * Returns the tasks that match a filter, newest first. The newest page is read every HEAD_MS, the older pages less
 * often.
 */
export function useTaskRows(filter: TaskFilter) {
  const request = { ...filter, pageSize: PAGE };
  const head = useQuery(TaskService.method.listTasks, request, { refetchInterval: HEAD_MS });
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
    return mergedRows<Task>(head.data?.tasks ?? [], older, {
      idOf: ({ id }) => id,
      timeOf: ({ createTime }) => msOf(createTime),
      isNewer: (one, other) => one.lastSequence >= other.lastSequence,
    });
  }, [head.data, pages.data]);
  return { rows, head, pages };
}

function msOf(time: Timestamp | undefined): number {
  return time === undefined ? 0 : timestampMs(time);
}
