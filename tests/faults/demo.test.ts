import { Code, ConnectError } from "@connectrpc/connect";
import { runMainJob } from "@depute/example-sentiment/main-job";
import { startWorkerProcess } from "@depute/example-sentiment/processes";
import { hasPostgres, ownPostgresForTests } from "@depute/store/testing";
import { afterEach, expect, test } from "vitest";
import { startCluster } from "./harness/running-cluster.ts";
import { CleanUp, dataFolder } from "./platform.ts";

const cleanUp = new CleanUp();
afterEach(() => cleanUp.run());

/** Number of times that the demonstration may meet an outage after one kill. */
const MAX_OUTAGES = 3;

/** Whether a connection broke or a process was unreachable. Every other error is an answer of the platform. */
function isOutage(error: unknown): boolean {
  const text = String(error instanceof Error && error.cause !== undefined ? error.cause : error);
  const isBroken = /ECONNRESET|ECONNREFUSED|other side closed|terminated|fetch failed|503|unavailable/i;
  return ConnectError.from(error).code === Code.Unavailable || isBroken.test(`${error} ${text}`);
}

const silent = { say: () => {}, show: () => {} };

test.runIf(hasPostgres() || process.env.CI === "true")(
  "the demonstration succeeds at three replicas after each process is killed",
  { timeout: 400_000 },
  async () => {
    const postgres = await ownPostgresForTests();
    cleanUp.add(async () => postgres?.stop());
    const cluster = await startCluster({
      ...{ replicas: 3, folder: await dataFolder(cleanUp) },
      env: { DEPUTE_POSTGRES_URL: postgres?.url ?? "", DEPUTE_REDIS_URL: "" },
    });
    cleanUp.add(() => cluster.stop());
    const worker = await startWorkerProcess(cluster.url);
    cleanUp.add(() => worker.stop());

    const names = cluster.state().services.map(({ name }) => name);
    expect(names).toHaveLength(15);
    for (const name of names) {
      cluster.signal(name, "SIGKILL");
      for (let outages = 0; ; outages++) {
        try {
          const outcome = await runMainJob(cluster.url, worker.about, silent);
          expect(outcome, name).toMatchObject({ verified: true, attested: true });
          expect(outcome.refusal, name).toContain("revoked");
          expect(outcome.nekte, name).toMatchObject({ status: "completed" });
          expect(outcome.a2a, name).toEqual(outcome.output);
          break;
        } catch (error) {
          if (!isOutage(error) || outages === MAX_OUTAGES)
            throw new Error(`after the kill of ${name}`, { cause: error });
        }
      }
    }
    const running = () =>
      cluster.state().services.filter(({ pid, restarts }) => pid !== null && restarts > 0);
    await expect.poll(running, { timeout: 30_000 }).toHaveLength(names.length);
  },
);
