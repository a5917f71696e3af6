import { openBrowser, openPage } from "../../tests/console/browser.ts";
import { introduce, startPlatform, value } from "../../tests/gateway/platform.ts";
import { amount } from "../amount.ts";
import type { Benchmarks } from "../bench.ts";

const TASKS = amount(10_000, 100);
const BATCH = 100;

/** Distance of one scroll step, in pixels: four rows. */
const STEP_PX = 176;
const STEPS = amount(600);

/** Maximum number of frames within which the page must have read every task. */
const MAX_FRAMES = 20_000;

/** Duration of a frame that the user sees as a jerk, in milliseconds. At 60 frames per second a frame takes 16.7 ms. */
const LONG_FRAME_MS = 50;

/** The frames of a browser that scrolls down the list of ten thousand tasks, one step in each frame. */
const benchmarks: Benchmarks = async () => {
  const [platform, browser] = await Promise.all([startPlatform(), openBrowser()]);
  await introduce(platform, "busy");
  for (let batch = 0; batch < TASKS / BATCH; batch++) {
    const requests = Array.from({ length: BATCH }, (_, index) => ({
      requestId: crypto.randomUUID(),
      draft: { agentId: "busy", description: `piece ${batch * BATCH + index}`, input: value({}) },
    }));
    await platform.clients.tasks.batchCreateTasks({ requests });
  }
  const { page, open } = await openPage(browser, platform.url);
  await open("#/tasks?agent=busy");
  await readAll();
  const frames = await page.evaluate<number[]>(SCROLL);
  const sorted = frames.toSorted((one, other) => one - other);
  const at = (share: number) => sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN;
  const figure = (name: string, unit: string, measured: number) => ({ name, unit, measure: () => measured });
  return [
    {
      name: `scroll ${STEPS} steps down ${TASKS} tasks`,
      figures: [
        figure("median frame", "ms", at(0.5)),
        figure("95 % of the frames at most", "ms", at(0.95)),
        figure("longest frame", "ms", at(1)),
        figure(`frames above ${LONG_FRAME_MS} ms`, "", frames.filter((ms) => ms > LONG_FRAME_MS).length),
        figure("rows in the document", "", await page.getByRole("row").count()),
      ],
      close: async () => {
        await browser.close();
        await platform.stop();
      },
    },
  ];

  /** Scrolls to the end until the page has read every task, and then back to the start. */
  async function readAll(): Promise<void> {
    const isComplete = page.getByText(`${TASKS.toLocaleString("en")} tasks`, { exact: true });
    await page.getByRole("table", { name: "Tasks" }).waitFor();
    for (let frame = 0; (await isComplete.count()) === 0; frame++) {
      if (frame > MAX_FRAMES) throw new Error("the page did not read every task; look at the platform's log");
      await page.evaluate("document.querySelector('.table-body').scrollTo(0, 1e9)");
      await page.evaluate("new Promise((done) => requestAnimationFrame(done))");
    }
    await page.evaluate("document.querySelector('.table-body').scrollTo(0, 0)");
  }
};

/** Scrolls one step in each frame, and returns the time of each frame in milliseconds. */
const SCROLL = `new Promise((done) => {
  const body = document.querySelector(".table-body");
  const frames = [];
  let last;
  const draw = (now) => {
    if (last !== undefined) frames.push(now - last);
    last = now;
    if (frames.length >= ${STEPS}) return done(frames);
    body.scrollBy(0, ${STEP_PX});
    requestAnimationFrame(draw);
  };
  requestAnimationFrame(draw);
})`;

export default benchmarks;
