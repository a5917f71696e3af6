import { useQuery } from "@connectrpc/connect-query";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { Card, Tag } from "../../parts/facts.tsx";
import { Refused } from "../../parts/states.tsx";
import { Line } from "../../parts/text.tsx";
import { unlessRefused } from "../../rpc/refusal.ts";
import { hashOf } from "../../rules/route.ts";
import { statusFacts } from "../../rules/task-status.ts";

/**
 * Milliseconds between two reads of the tasks. No RPC streams the tasks of a session, so the card reads at intervals.
 */
const READ_MS = 3_000;

/** Maximum number of tasks that the card lists. The card lists the newest tasks. */
const MAX_TASKS = 20;

/** Lists the caller's tasks that belong to a session; shows nothing if no such task exists. */
export function SessionTasks({ sessionId }: { readonly sessionId: string }) {
  const query = useQuery(
    TaskService.method.listTasks,
    { correlationId: sessionId, pageSize: MAX_TASKS },
    { refetchInterval: unlessRefused(READ_MS), retry: false },
  );
  const tasks = query.data?.tasks ?? [];
  if (query.isError && query.data === undefined) return <Refused error={query.error} />;
  if (tasks.length === 0) return null;
  return (
    <Card
      title="Tasks"
      aside={<a href={hashOf({ page: "tasks", query: { correlation: sessionId } })}>Show all in the list</a>}
    >
      <ul className="plain-list">
        {tasks.map(({ id, description, capabilityId, status }) => (
          <li key={id} className="row wrap">
            <a href={hashOf({ page: "tasks", id })}>
              <Line value={description || capabilityId || id} max={80} />
            </a>
            <Tag tone={statusFacts(status).tone}>{statusFacts(status).label}</Tag>
          </li>
        ))}
      </ul>
    </Card>
  );
}
