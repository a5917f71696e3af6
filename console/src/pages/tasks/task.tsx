import { createQueryOptions, useQuery, useTransport } from "@connectrpc/connect-query";
import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { Card, Tag } from "../../parts/facts.tsx";
import { ValueView } from "../../parts/json.tsx";
import { Liveness, Loading, NotShown, Opening } from "../../parts/states.tsx";
import { TabsView } from "../../parts/tabs.tsx";
import { Text } from "../../parts/text.tsx";
import { useSoon } from "../../rpc/soon.ts";
import { hashOf } from "../../rules/route.ts";
import { failureText } from "../../rules/task-events.ts";
import { statusFacts } from "../../rules/task-status.ts";
import { TaskActionsRow } from "./actions.tsx";
import { Bar } from "./list.tsx";
import { TaskFacts } from "./task-facts.tsx";
import { Timeline } from "./timeline.tsx";
import { useTaskEvents } from "./watch.ts";

/** The graph needs a large library, so its code is loaded when the graph is first shown. */
const Tree = lazy(() => import("./tree.tsx"));

/** Each event of a task causes a new read of the task, at most once in this many milliseconds. */
const READ_MS = 200;

/** Shows one task, and updates with each of its events. */
export function TaskPage({ id }: { readonly id: string }) {
  const reread = useReread(id);
  const { events, connection } = useTaskEvents(id, reread);
  const query = useQuery(TaskService.method.getTask, { taskId: id });
  const task = query.data?.task;
  return (
    <>
      <nav aria-label="Path" className="crumbs">
        <a href={hashOf({ page: "tasks" })}>Tasks</a>
      </nav>
      {query.isPending && <Opening what="Task" />}
      {query.isError && task === undefined && <NotShown what="Task" error={query.error} />}
      {task !== undefined && (
        <>
          <TaskHead task={task} connection={connection} onDone={reread} />
          <TabsView
            label="Parts of the task"
            tabs={[
              {
                id: "timeline",
                title: "Timeline",
                content: () => (
                  <div className="columns">
                    <Card
                      title="Events"
                      aside={<span className="quiet small-text">{events.length} events</span>}
                    >
                      {connection.state === "refused" && (
                        <p className="refused">{connection.refusal.message}</p>
                      )}
                      <Timeline events={events} />
                    </Card>
                    <TaskFacts task={task} events={events} />
                  </div>
                ),
              },
              { id: "data", title: "Input and output", content: () => <TaskData task={task} /> },
              {
                id: "tree",
                title: "Tree",
                content: () => (
                  <Suspense fallback={<Loading what="the tree" />}>
                    <Tree task={task} />
                  </Suspense>
                ),
              },
            ]}
          />
        </>
      )}
    </>
  );
}

/** Returns a function that reads the task again soon after an event, at most once per READ_MS. */
function useReread(id: string): () => void {
  const queries = useQueryClient();
  const transport = useTransport();
  return useSoon(() => {
    const { queryKey } = createQueryOptions(TaskService.method.getTask, { taskId: id }, { transport });
    void queries.invalidateQueries({ queryKey });
  }, READ_MS);
}

interface TaskHeadProps {
  readonly task: Task;
  readonly connection: Parameters<typeof Liveness>[0]["connection"];
  readonly onDone: () => void;
}

function TaskHead({ task, connection, onDone }: TaskHeadProps) {
  const { label, tone } = statusFacts(task.status);
  return (
    <>
      <div className="page-head">
        <h1>
          <Text value={(task.description || task.capabilityId || task.id).slice(0, 300)} />
        </h1>
        <Tag tone={tone}>{label}</Tag>
        <Liveness connection={connection} />
      </div>
      <div className="task-bar">
        {task.progress !== undefined && <Bar progress={task.progress} status={task.status} />}
        {task.progress?.message !== undefined && task.progress.message !== "" && (
          <span className="quiet">
            <Text value={task.progress.message} />
          </span>
        )}
      </div>
      {task.failure !== undefined && (
        <p className="refused">
          <Text value={failureText(task.failure)} />
        </p>
      )}
      <TaskActionsRow task={task} onDone={onDone} />
    </>
  );
}

function TaskData({ task }: { readonly task: Task }) {
  const { output } = task;
  return (
    <div className="columns even">
      <Card title="Input">
        <ValueView value={task.input} label="Input" />
      </Card>
      <Card title="Output">
        {output?.minimal !== undefined && output.minimal !== "" && (
          <p>
            <Text value={output.minimal} />
          </p>
        )}
        <ValueView value={output?.full} label="Output" />
        {output?.compact !== undefined && (
          <>
            <h3>Compact form</h3>
            <ValueView value={output.compact} label="Compact output" />
          </>
        )}
      </Card>
    </div>
  );
}
