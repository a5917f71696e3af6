import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { introduce, startPlatform, type TestPlatform, value } from "../gateway/platform.ts";
import { type ConsolePage, expectAccessible, hasBrowser, openBrowser, openPage } from "./browser.ts";

describe.skipIf(!hasBrowser())("tasks in a browser", () => {
  let platform: TestPlatform;
  let browser: Browser;
  let opened: ConsolePage;
  beforeAll(async () => {
    [platform, browser] = await Promise.all([startPlatform(), openBrowser()]);
    await introduce(platform, "painter");
    opened = await openPage(browser, platform.url);
  }, 60_000);
  afterAll(async () => {
    await browser?.close();
    await platform?.stop();
  });

  const createTask = async (description: string) => {
    const { task } = await platform.clients.tasks.createTask({
      requestId: crypto.randomUUID(),
      draft: { agentId: "painter", description, input: value({ color: "red" }) },
    });
    return task?.id ?? "";
  };

  test("a new task appears in the open list, and its page opens from there", async () => {
    const { page, open, faults } = opened;
    await open("#/tasks");
    await page.getByText("No tasks").waitFor();
    await createTask("Paint the door");
    await page.getByRole("link", { name: "Paint the door" }).click();
    await page.getByRole("heading", { level: 1, name: "Paint the door" }).waitFor();
    await page.getByText("local delegates to painter").waitFor();
    expect(faults).toEqual([]);
  });

  test("the figures of the open overview follow a task from its creation to its end", async () => {
    const { page, open } = await openPage(browser, platform.url);
    await open("#/overview");
    const { tasks } = await platform.clients.tasks.listTasks({ statuses: [TaskStatus.PENDING] });
    const before = tasks.length;
    const pending = page.locator(".figure", { hasText: "Pending" });
    await pending.getByText(String(before), { exact: true }).waitFor();
    const taskId = await createTask("Paint the fence");
    await pending.getByText(String(before + 1), { exact: true }).waitFor();
    await platform.clients.tasks.cancelTask({ taskId, reason: "rain" });
    await pending.getByText(String(before), { exact: true }).waitFor();
    await page.context().close();
  });

  test("events, progress and the end of a task appear as they happen", async () => {
    const { page, open, faults } = opened;
    const id = await createTask("Paint the wall");
    await open(`#/tasks/${id}`);
    await page.getByText("Created", { exact: true }).first().waitFor();
    platform.work("painter", async (_, context) => {
      await context.progress(1, 2, "first coat");
      return { output: { painted: true } };
    });
    await page.getByText("1 of 2: first coat").waitFor();
    await page.locator(".page-head .tag", { hasText: "Completed" }).waitFor();
    await page.getByRole("tab", { name: "Input and output" }).click();
    await page.getByLabel("Output, text").getByText('"painted": true').first().waitFor();
    expect(faults).toEqual([]);
    await expectAccessible(page);
  });
});
