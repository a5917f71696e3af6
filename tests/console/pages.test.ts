import { gzipSync } from "node:zlib";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { introduce, startPlatform, type TestPlatform, value } from "../gateway/platform.ts";
import { expectAccessible, hasBrowser, openBrowser, openPage } from "./browser.ts";

const PAGES = ["overview", "tasks", "agents", "tokens", "reviews", "sessions", "executions", "log"];

/** Maximum compressed size in bytes of everything that the first paint loads. */
const MAX_FIRST_PAINT = 400 * 1024;

const HOSTILE = [
  "<img src=x onerror=\"document.title='run'\">",
  "<script>document.title='run'</script>",
  "\u202egnp.exe \u0000\u001b[31m",
  "```mermaid\nclick A call alert()\n```",
].join(" ");

describe.skipIf(!hasBrowser())("the console in a browser", () => {
  let platform: TestPlatform;
  let browser: Browser;
  beforeAll(async () => {
    [platform, browser] = await Promise.all([startPlatform(), openBrowser()]);
    await introduce(platform, "worker-1", [["paint"]]);
  }, 60_000);
  afterAll(async () => {
    await browser?.close();
    await platform?.stop();
  });

  const create = async (description: string, input = "x", agentId = "worker-1") => {
    const draft = { agentId, description, input: value({ input }) };
    const { task } = await platform.clients.tasks.createTask({ requestId: crypto.randomUUID(), draft });
    return task?.id ?? "";
  };

  test.each([
    { scheme: "light", width: 1280 },
    { scheme: "dark", width: 1280 },
    { scheme: "light", width: 390 },
  ] as const)(
    "every page is accessible and breaks no policy: $scheme, $width pixels",
    async (options) => {
      const { page, open, faults, close } = await openPage(browser, platform.url, options);
      for (const name of PAGES) {
        await open(`#/${name}`);
        await page.getByRole("heading", { level: 1 }).waitFor();
        await expectAccessible(page);
        const overflow = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
        expect([name, overflow]).toEqual([name, 0]);
      }
      expect(faults).toEqual([]);
      await close();
    },
    120_000,
  );

  test("the first paint stays below its limit, and comes from this origin alone", async () => {
    const { page, open, close } = await openPage(browser, platform.url);
    const sizes: Promise<number>[] = [];
    const origins = new Set<string>();
    page.on("response", (response) => {
      origins.add(new URL(response.url()).protocol === "data:" ? "data:" : new URL(response.url()).origin);
      if (response.url().includes("/console")) {
        sizes.push(response.body().then((body) => gzipSync(body).length));
      }
    });
    await open("#/overview");
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    const total = (await Promise.all(sizes)).reduce((one, other) => one + other, 0);
    expect(total).toBeGreaterThan(10_000);
    expect(total).toBeLessThan(MAX_FIRST_PAINT);
    expect([...origins].filter((origin) => origin !== "data:")).toEqual([platform.url]);
    await close();
  });

  test("hostile texts are shown as text, also of a megabyte", async () => {
    const { page, open, faults, close } = await openPage(browser, platform.url);
    const id = await create(HOSTILE, `${HOSTILE}${"x".repeat(1_000_000)}`);
    await open("#/tasks");
    await page.getByRole("link", { name: "<script>" }).waitFor();
    await open(`#/tasks/${id}`);
    const heading = page.getByRole("heading", { level: 1 });
    await expect.poll(() => heading.textContent()).toContain("‹U+202E›gnp.exe ‹U+0000›‹U+001B›[31m");
    await page.getByRole("tab", { name: "Input and output" }).click();
    await page.getByRole("button", { name: /Show more/ }).waitFor();
    expect(await page.locator("main img, main script").count()).toBe(0);
    expect(await page.title()).not.toBe("run");
    expect(faults).toEqual([]);
    await close();
  });

  test("of ten thousand tasks, only those in view are in the document", async () => {
    await introduce(platform, "busy");
    for (let batch = 0; batch < 100; batch++) {
      const requests = Array.from({ length: 100 }, (_, index) => ({
        requestId: crypto.randomUUID(),
        draft: { agentId: "busy", description: `piece ${batch * 100 + index}`, input: value({}) },
      }));
      await platform.clients.tasks.batchCreateTasks({ requests });
    }
    const { page, open, faults, close } = await openPage(browser, platform.url);
    await open("#/tasks?agent=busy");
    const rows = page.getByRole("table", { name: "Tasks" }).getByRole("row");
    await rows.nth(5).waitFor();
    const scroll = "document.querySelector('.table-body').scrollTo(0, 1e9)";
    let mostRows = 0;
    await expect
      .poll(
        async () => {
          await page.evaluate(scroll);
          mostRows = Math.max(mostRows, await rows.count());
          return page.getByRole("link", { name: "piece 0", exact: true }).count();
        },
        { timeout: 60_000 },
      )
      .toBe(1);
    await page.getByText("10,000 tasks").waitFor();
    expect(mostRows).toBeLessThan(100);
    for (const at of [0, 0.25, 0.5, 0.75]) {
      await page.evaluate(`(() => {
        const body = document.querySelector(".table-body");
        body.scrollTo(0, ${at} * body.scrollHeight);
      })()`);
      const inView = page.getByRole("link", { name: `piece ${9_999 - at * 10_000}`, exact: true });
      await inView.waitFor();
      expect(await rows.count()).toBeLessThan(100);
    }
    expect(faults).toEqual([]);
    await close();
  }, 120_000);

  test("the pages and their dialogs work by keyboard", async () => {
    const { page, open, close } = await openPage(browser, platform.url);
    const id = await create("By keyboard");
    await open(`#/tasks/${id}`);
    await page.getByRole("button", { name: "Cancel task" }).focus();
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog", { name: "Cancel task" });
    await dialog.waitFor();
    await expectAccessible(page);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await expect.poll(() => page.evaluate("document.activeElement?.textContent")).toBe("Cancel task");
    await close();
  });
});
