import { createClient, createRouterTransport } from "@connectrpc/connect";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { checkProof, portableEngine as engine, generateKeypair } from "@depute/dct";
import { describe, expect, test } from "vitest";
import { holderHeaders, holderInterceptor } from "./holder.ts";

const keypair = generateKeypair(engine);
const publicUrl = "http://127.0.0.1:8080";
const principal = keypair.principal.id;

describe("holder headers", () => {
  test("without a token prove the caller's key, for one method and address", () => {
    const headers = holderHeaders({ engine, keypair, publicUrl }, "/nekte", "GET");
    const expected = { htm: "GET", htu: `${publicUrl}/nekte`, now: Date.now() };
    expect(Object.keys(headers)).toEqual(["dpop"]);
    expect(checkProof(engine, headers.dpop, expected)).toMatchObject({ ok: true, proof: { principal } });
    expect(checkProof(engine, headers.dpop, { ...expected, htm: "POST" }).ok).toBe(false);
    expect(checkProof(engine, headers.dpop, { ...expected, htu: `${publicUrl}/other` }).ok).toBe(false);
  });

  test("with a token are bound to it", () => {
    const headers = holderHeaders({ engine, keypair, publicUrl, token: "abc" }, "/nekte");
    const expected = { htm: "POST", htu: `${publicUrl}/nekte`, now: Date.now() };
    expect(headers.authorization).toBe("DPoP abc");
    expect(checkProof(engine, headers.dpop, { ...expected, token: "abc" }).ok).toBe(true);
    expect(checkProof(engine, headers.dpop, { ...expected, token: "abd" }).ok).toBe(false);
  });
});

test("the interceptor creates a new proof for each call, with its path", async () => {
  const proofs: (string | null)[] = [];
  const transport = createRouterTransport(
    ({ service }) =>
      service(TaskService, {
        getTask(_, context) {
          proofs.push(context.requestHeader.get("dpop"));
          return {};
        },
      }),
    { transport: { interceptors: [holderInterceptor({ engine, keypair, publicUrl })] } },
  );
  const client = createClient(TaskService, transport);
  const request = { taskId: "t" } as const;
  await client.getTask(request);
  await client.getTask(request);
  const expected = {
    htm: "POST",
    htu: `${publicUrl}/depute.tasks.v1.TaskService/GetTask`,
    now: Date.now(),
  };
  const checked = proofs.map((proof) => checkProof(engine, proof, expected));
  expect(checked).toMatchObject([{ ok: true }, { ok: true }]);
  expect(proofs[0]).not.toBe(proofs[1]);
});
