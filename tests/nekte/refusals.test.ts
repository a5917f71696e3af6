import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { holderHeaders } from "@depute/client";
import { ErrorInfoSchema } from "@depute/contracts/google/rpc/error_details_pb";
import { Nekte } from "@depute/contracts/nekte/v1/nekte_pb";
import { beforeAll, describe, expect, test } from "vitest";
import { bytes, error, result } from "../gateway/platform.ts";
import { CONTEXT, frames, lasting, Scene, work } from "./scene.ts";

const scene = new Scene();
const { countTasks, holder, nekte, postAs, refused } = scene;
const rpc = () => createClient(Nekte, scene.platform.transport);
const NLP = { "nekte-agent": "nlp-worker" };

/** Returns the gRPC status and NEKTE's code of a refusal. */
async function refusal(answer: Promise<unknown>) {
  const refused = ConnectError.from(await answer.catch((thrown: unknown) => thrown));
  return [refused.code, Number(refused.findDetails(ErrorInfoSchema)[0]?.metadata.nekte_code)];
}

/** A delegation that both JSON-RPC and gRPC can express. */
interface Delegation {
  task: { id: string; desc: string; timeout_ms: number };
  context: {
    id?: string;
    data: unknown;
    permissions: object;
    ttl_s: number;
    compression?: string;
    scope?: string[];
  };
}

function toMessage({ task, context }: Delegation) {
  const { id, desc, timeout_ms: timeoutMs } = task;
  const { data, permissions, ttl_s: ttlS, scope, ...more } = context;
  return {
    task: { id, desc, timeoutMs },
    context: {
      ...more,
      data: bytes(data as never),
      permissions,
      ttlS,
      ...(scope === undefined ? {} : { scope: { capabilities: scope } }),
    },
  };
}

const takenId = lasting(work());
const reference = (id: string): Delegation => ({
  ...work(),
  context: { ...CONTEXT, id, data: null, compression: "reference" },
});

beforeAll(async () => {
  await frames(await nekte("nekte.delegate", takenId, "/nekte/nlp-worker"));
  await result(nekte("nekte.context", { envelope: { id: "gone", data: 1, ...CONTEXT } }));
  await result(nekte("nekte.context", { action: "revoke", envelope: { id: "gone" } }));
});

describe("JSON-RPC, server-sent events and gRPC refuse a delegation equally", () => {
  test.each<[string, () => Delegation, string, number, Code]>([
    [
      "an id of another task",
      () => ({ ...takenId, task: { ...takenId.task, desc: "other" } }),
      "nlp-worker",
      -32602,
      Code.AlreadyExists,
    ],
    ["a revoked context", () => reference("gone"), "nlp-worker", -32004, Code.FailedPrecondition],
    ["an unknown context", () => reference("never"), "nlp-worker", -32053, Code.NotFound],
    [
      "a context for another capability",
      () => ({ ...work(), context: { data: 1, ...CONTEXT, scope: ["sentiment"] } }),
      "nlp-worker",
      -32005,
      Code.PermissionDenied,
    ],
    ["an unknown agent", () => work(), "nobody", -32053, Code.NotFound],
    [
      "a description beyond the limit",
      () => work("x".repeat(4097)),
      "nlp-worker",
      -32602,
      Code.InvalidArgument,
    ],
    [
      "a context that is too large",
      () => ({ ...work(), context: { data: "x".repeat(1_048_600), ...CONTEXT } }),
      "nlp-worker",
      -32602,
      Code.InvalidArgument,
    ],
    ["a timeout of zero", () => work("x", { timeout_ms: 0 }), "nlp-worker", -32602, Code.InvalidArgument],
  ])("%s", async (_, delegation, agent, code, status) => {
    const before = await countTasks();
    const params = delegation();
    const path = `/nekte/${agent}`;
    expect((await refused(params, path)).code).toBe(code);
    const [frame, ...more] = await frames(await nekte("nekte.delegate", params, path));
    expect(more).toEqual([]);
    expect(JSON.parse(frame?.replace(/^event: error\ndata: /, "") ?? "")).toMatchObject({
      task_id: params.task.id,
      code,
    });
    const stream = rpc().delegate(toMessage(params), { headers: { "nekte-agent": agent } });
    const [answered, namedRefusal] = await refusal(stream[Symbol.asyncIterator]().next());
    expect(answered).toBe(status);
    // The platform checks the contract before NEKTE's handlers, so such a refusal has no NEKTE code.
    if (status !== Code.InvalidArgument) expect(namedRefusal).toBe(code);
    expect(await countTasks()).toBe(before);
  });
});

describe("another caller's task is not found", () => {
  const calls = [
    ["nekte.task.status", "taskStatus", "TaskStatus"],
    ["nekte.task.cancel", "taskCancel", "TaskCancel"],
    ["nekte.task.resume", "taskResume", "TaskResume"],
  ] as const;

  test.each(calls)("to %s", async (method, name, rpcName) => {
    const [alice, eve] = [holder(), holder()];
    const params = lasting(work());
    const { id } = params.task;
    await frames(await postAs(alice, "nekte.delegate", params));
    const foreign = await error(postAs(eve, method, { task_id: id }));
    const none = await error(postAs(eve, method, { task_id: "never" }));
    expect(foreign).toEqual(JSON.parse(JSON.stringify(none).replaceAll("never", id)));
    const headers = holderHeaders(eve, `/nekte.v1.Nekte/${rpcName}`);
    expect(await refusal(rpc()[name]({ taskId: id }, { headers }))).toEqual([Code.NotFound, -32009]);
  });
});

test("a message beyond the size limit is refused over gRPC, too, and its connection stays open", async () => {
  const input = new Uint8Array(4_194_304);
  const [status] = await refusal(rpc().invoke({ cap: "sentiment", input }, { headers: NLP }));
  expect(status).toBe(Code.ResourceExhausted);
  expect((await rpc().discover({ level: 0 }, { headers: NLP })).agent).toBe("nlp-worker");
});
