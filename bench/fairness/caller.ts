import { constants, setPriority } from "node:os";
import { promisify } from "node:util";
import { create, toBinary } from "@bufbuild/protobuf";
import { CreateTaskRequestSchema } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { Client, credentials, Metadata } from "@grpc/grpc-js";

/**
 * One caller in a separate process: it creates tasks by gRPC, always with the same number of calls in flight. The
 * arguments are the address, the caller's secret, its agent and the number of calls. Each message of the parent asks
 * for one round: `{ calls }` ends after that many calls, `{ forMs }` after that time. The process reports the
 * milliseconds of each successful call, and the number of refused calls.
 */

export type Round = { readonly calls: number } | { readonly forMs: number };
export interface Report {
  readonly ms: readonly number[];
  readonly refused: number;
}

const [address = "", secret = "", agentId = "", atOnce = "1"] = process.argv.slice(2);
// In practice, a greedy caller has machines of its own. So here its process yields the processor to the others.
if (Number(atOnce) > 1) setPriority(constants.priority.PRIORITY_LOW);
const client = new Client(address, credentials.createInsecure());
const metadata = new Metadata();
metadata.set("authorization", `Bearer ${secret}`);
const path = "/depute.tasks.v1.TaskService/CreateTask";
const unary = promisify(
  (request: Buffer, done: (error: unknown) => void) =>
    void client.makeUnaryRequest(
      path,
      (bytes: Buffer) => bytes,
      () => undefined,
      request,
      metadata,
      done,
    ),
);

let created = 0;
const createTask = () => {
  const requestId = `${process.pid} ${++created}`;
  const draft = { agentId, description: "count words" };
  return unary(
    Buffer.from(toBinary(CreateTaskRequestSchema, create(CreateTaskRequestSchema, { requestId, draft }))),
  );
};

process.on("disconnect", () => process.exit());
process.on("message", async (round: Round) => {
  const ms: number[] = [];
  let refused = 0;
  const endMs = "forMs" in round ? performance.now() + round.forMs : Number.POSITIVE_INFINITY;
  let left = "calls" in round ? round.calls : Number.POSITIVE_INFINITY;
  const lane = async () => {
    while (left-- > 0 && performance.now() < endMs) {
      const startMs = performance.now();
      await createTask().then(
        () => ms.push(performance.now() - startMs),
        () => refused++,
      );
    }
  };
  await Promise.all(Array.from({ length: Number(atOnce) }, lane));
  process.send?.({ ms, refused } satisfies Report);
});
process.send?.("ready");
