import type { Clock } from "@depute/core";
import type { DomainMetrics } from "@depute/service";
import type { Store, WriteTx } from "@depute/store";
import type { TaskChange, TaskEventName, TaskObserver } from "./hooks.ts";
import { agentClassOf, OTHER_AGENTS } from "./rules/agent-class.ts";
import { OPEN_STATUSES, statusName, TERMINAL_STATUSES } from "./rules/state-machine.ts";
import { countOpen, countQueued } from "./store/metric-rows.ts";

interface TaskMetricsOptions {
  readonly metrics: DomainMetrics;
  readonly store: Pick<Store, "read">;
  readonly clock: Clock;
  /** The ids of the base agents that metrics name (DEPUTE_METRICS_AGENT_CLASSES). */
  readonly agentClasses: readonly string[];
}

/** The events that the observer of `taskMetrics` counts. */
export const COUNTED_EVENTS: ReadonlySet<TaskEventName> = new Set([
  "completed",
  "failed",
  "cancelled",
  "rejected",
  "expired",
  "revoked",
  "requeued",
]);

/** The reason of a failed attempt whose lease expired. */
const LEASE_LOST = "LEASE_LOST";

/** Registers the metrics of tasks. Returns the observer that counts {@link COUNTED_EVENTS} of this process. */
export function taskMetrics({ metrics, store, clock, agentClasses }: TaskMetricsOptions): TaskObserver {
  const named = new Set(agentClasses);
  metrics.gauge("depute_tasks_queued", async () =>
    [...(await queueOf(store, named))].map(([agent_class, { tasks }]) => [{ agent_class }, tasks]),
  );
  metrics.gauge("depute_tasks_queue_age_seconds", async () => {
    const now = clock.now();
    return [...(await queueOf(store, named))].map(([agent_class, { oldestMs = now }]) => [
      { agent_class },
      Math.max(0, now - oldestMs) / 1000,
    ]);
  });
  metrics.gauge("depute_tasks_open", async () => {
    const counts = await store.read(countOpen);
    return OPEN_STATUSES.map((status) => [{ state: statusName(status) }, counts.get(status) ?? 0]);
  });
  const ended = metrics.counter("depute_tasks_ended_total");
  const leasesLost = metrics.counter("depute_task_leases_lost_total");
  const retries = metrics.counter("depute_task_retries_total");
  // Sets each counter to 0 at the start, so that a monitor sees the first increase.
  for (const status of TERMINAL_STATUSES) ended({ state: statusName(status) }, 0);
  const count = ({ before, after, events }: TaskChange) => {
    const { status } = after.task;
    const isEnd = TERMINAL_STATUSES.some((terminal) => terminal === status);
    if (isEnd && before?.task.status !== status) ended({ state: statusName(status) });
    for (const { payload } of events) {
      if (payload.case === "failed" && payload.value.reason === LEASE_LOST) leasesLost({});
      if (payload.case !== "requeued") continue;
      if (payload.value.cause?.reason === LEASE_LOST) leasesLost({});
      if (payload.value.attemptCounted) retries({});
    }
  };
  return async (tx: WriteTx, change) => tx.afterCommit(() => count(change));
}

/** The pending tasks of a class of agents. */
interface ClassQueue {
  tasks: number;
  /** The creation time of the oldest pending task, in epoch milliseconds; absent if no task is pending. */
  oldestMs?: number;
}

/** Reads the pending tasks of each class, including classes without pending tasks. */
async function queueOf(
  store: Pick<Store, "read">,
  named: ReadonlySet<string>,
): Promise<ReadonlyMap<string, ClassQueue>> {
  const classes = new Map<string, ClassQueue>([...named, OTHER_AGENTS].map((name) => [name, { tasks: 0 }]));
  for (const { agentId, tasks, oldestMs } of await store.read(countQueued)) {
    const agentClass = agentClassOf(agentId, named);
    const sum = classes.get(agentClass) ?? { tasks: 0 };
    classes.set(agentClass, {
      tasks: sum.tasks + tasks,
      oldestMs: Math.min(sum.oldestMs ?? oldestMs, oldestMs),
    });
  }
  return classes;
}
