import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { WatchTasksResponse } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ALICE, BOB } from "../../testing/fakes.ts";
import { as, type Platform, refusal, startPlatform } from "../../testing/platform.ts";

let platform: Platform;
beforeEach(async () => {
  platform = await startPlatform();
});
afterEach(() => platform.stop());

let count = 0;
const createTask = async (caller = ALICE, agentId = "worker") => {
  const request = { requestId: `request ${++count}`, draft: { agentId, description: "say hello" } };
  return (await platform.tasks.createTask(request, as(caller))).task?.id ?? "";
};

/** A client of WatchTasks that keeps a list of tasks up to date from the responses. */
function watch(filter: object, caller = ALICE) {
  const leaving = new AbortController();
  const options = { ...as(caller), signal: leaving.signal };
  const responses = platform.tasks.watchTasks(filter, options)[Symbol.asyncIterator]();
  const list = new Map<string, TaskStatus>();
  return {
    list,
    /** Reads responses until the list satisfies a condition. Returns these responses. */
    async until(isReached: () => boolean): Promise<WatchTasksResponse[]> {
      const received: WatchTasksResponse[] = [];
      do {
        const { value, done } = await responses.next();
        if (done === true) throw new Error("the stream ended");
        for (const { id, status } of value.tasks) list.set(id, status);
        for (const id of value.removedTaskIds) list.delete(id);
        received.push(value);
      } while (!isReached());
      return received;
    },
    async leave() {
      leaving.abort();
      await responses.next().catch(() => {});
    },
  };
}

describe("a watch of tasks", () => {
  test("begins with all tasks, also if there are none", async () => {
    const empty = watch({});
    const [first] = await empty.until(() => true);
    expect(first).toMatchObject({ tasks: [], removedTaskIds: [] });
    const ids = [await createTask(), await createTask()];
    const full = watch({});
    const [all] = await full.until(() => true);
    expect(all?.tasks.map(({ id }) => id)).toEqual(ids.reverse());
    await Promise.all([empty.leave(), full.leave()]);
  });

  test("shows a new task, and each changed task, without the others", async () => {
    const waiting = await createTask();
    const watcher = watch({});
    await watcher.until(() => true);
    const created = await createTask();
    const news = await watcher.until(() => watcher.list.has(created));
    expect(news.flatMap(({ tasks }) => tasks.map(({ id }) => id))).toEqual([created]);
    await platform.tasks.cancelTask({ taskId: waiting }, as(ALICE));
    const ends = await watcher.until(() => watcher.list.get(waiting) === TaskStatus.CANCELLED);
    expect(ends.flatMap(({ tasks }) => tasks.map(({ id }) => id))).toEqual([waiting]);
    await watcher.leave();
  });

  test("removes a task that leaves the filter, and adds only tasks that pass it", async () => {
    const taskId = await createTask();
    const watcher = watch({ statuses: [TaskStatus.PENDING], agentId: "worker" });
    await watcher.until(() => watcher.list.has(taskId));
    await createTask(ALICE, "bob");
    await platform.tasks.cancelTask({ taskId }, as(ALICE));
    await watcher.until(() => watcher.list.size === 0);
    const next = await createTask();
    await watcher.until(() => watcher.list.size > 0);
    expect([...watcher.list.keys()]).toEqual([next]);
    await watcher.leave();
  });

  test("keeps the newest tasks up to its size", async () => {
    const older = await createTask();
    const watcher = watch({ pageSize: 1 });
    expect(await watcher.until(() => watcher.list.has(older))).toMatchObject([{ hasMore: false }]);
    const newer = await createTask();
    expect(await watcher.until(() => watcher.list.has(newer))).toMatchObject([{ hasMore: true }]);
    expect([...watcher.list.keys()]).toEqual([newer]);
    await watcher.leave();
  });

  test("shows only the caller's tasks", async () => {
    const his = watch({}, BOB);
    await his.until(() => true);
    await createTask(ALICE);
    const own = await createTask(BOB);
    await his.until(() => his.list.size > 0);
    expect([...his.list.keys()]).toEqual([own]);
    await his.leave();
  });

  test("combines many changes, and its list equals the list of ListTasks", async () => {
    const watcher = watch({ pageSize: 1000 });
    await watcher.until(() => true);
    const ids = await Promise.all(Array.from({ length: 60 }, () => createTask()));
    await Promise.all(ids.slice(20).map((taskId) => platform.tasks.cancelTask({ taskId }, as(ALICE))));
    const isCancelled = (id: string) => watcher.list.get(id) === TaskStatus.CANCELLED;
    const responses = await watcher.until(
      () => ids.every((id) => watcher.list.has(id)) && ids.slice(20).every(isCancelled),
    );
    expect(responses.length).toBeLessThan(30);
    const { tasks } = await platform.tasks.listTasks({ pageSize: 1000 }, as(ALICE));
    expect([...watcher.list].sort()).toEqual(tasks.map(({ id, status }) => [id, status]).sort());
    await watcher.leave();
  });

  test("refuses a size beyond the limit", async () => {
    const responses = platform.tasks.watchTasks({ pageSize: 1001 }, as(ALICE));
    expect(await refusal(responses[Symbol.asyncIterator]().next())).toMatchObject({ fields: ["page_size"] });
  });
});
