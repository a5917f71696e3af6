import { once } from "node:events";
import { chmodSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createKey, seedOf } from "@depute/client";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { parse } from "yaml";
import { introduce, startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { type User, userOf } from "./depute.ts";

// The limit is high, because each test runs several commands and each command is a process.
vi.setConfig({ testTimeout: 120_000 });

let platform: TestPlatform;
let user: User;
beforeAll(async () => {
  platform = await startPlatform();
  user = userOf(platform.url);
  await introduce(platform, "echo", [["echo"]]);
  await introduce(platform, "idle");
  await introduce(platform, "helper");
  platform.work("echo", async (input) => ({ output: input }));
});
afterAll(async () => {
  user.remove();
  await platform.stop();
});

const ok = async (...words: string[]) => {
  const { code, out, err } = await user.run(words);
  expect(code, err).toBe(0);
  return out;
};
const created = async (...words: string[]) =>
  (await ok("delegate", "--agent", "idle", "--input", "{}", "-o", "id", ...words)).trim();

test("a task runs from its delegation to its output in the terminal alone", async () => {
  const out = await ok("delegate", "--agent", "echo", "--input", '{"text":"hi"}', "--watch");
  expect(JSON.parse(out)).toEqual({ text: "hi" });
});

test("the status of the cluster has a line for each service of the one process", async () => {
  const services = ["gateway", "registry", "tasks", "tokens", "verifier"];
  const lines = (await ok("cluster", "status")).trim().split("\n").slice(1);
  expect(lines.map((line) => line.split(/ +/)[0]).toSorted()).toEqual(services);
  const { replicas } = JSON.parse(await ok("cluster", "status", "-o", "json"));
  expect(replicas).toHaveLength(services.length);
});

test("input comes from a file, from standard input, and from the command line", async () => {
  writeFileSync(join(user.folder, "in.json"), '"from a file"');
  const watched = ["delegate", "--agent", "echo", "--watch", "--input"];
  expect(JSON.parse((await user.run([...watched, "@in.json"])).out)).toBe("from a file");
  expect(JSON.parse((await user.run([...watched, "-"], '"from a pipe"')).out)).toBe("from a pipe");
  expect(JSON.parse((await user.run([...watched, '"from a word"'])).out)).toBe("from a word");
});

test("the output formats agree", async () => {
  const id = await created("--description", "compare");
  const json = JSON.parse(await ok("tasks", "describe", id, "-o", "json"));
  expect(json).toMatchObject({ id, agentId: "idle", status: "TASK_STATUS_PENDING" });
  expect(parse(await ok("tasks", "describe", id, "-o", "yaml"))).toEqual(json);
  const listed = JSON.parse(await ok("tasks", "list", "--agent", "idle", "-o", "json")).tasks;
  // A list leaves inputs and outputs out.
  const { input: _, ...withoutInput } = json;
  expect(listed).toContainEqual(withoutInput);
  const table = await ok("tasks", "list", "--agent", "idle", "--status", "pending");
  expect(table).toMatch(new RegExp(`^ID +STATUS +AGENT .*\\n(.*\\n)*${id} +pending +idle`));
  expect(await ok("tasks", "list", "-o", "wide")).toContain("DELEGATOR");
});

test("a task is cancelled, and a wait for it ends with the exit code for no result", async () => {
  const id = await created();
  expect(await ok("tasks", "cancel", id, "--reason", "not needed")).toContain("cancelled");
  const { code, err } = await user.run(["tasks", "wait", id]);
  expect([code, err]).toEqual([
    7,
    expect.stringMatching(/^depute: the task .* is cancelled.*; see depute explain /),
  ]);
  expect((await platform.clients.tasks.getTask({ taskId: id })).task?.failure?.message).toBe("not needed");
});

test("a tree shows the tasks below a task, and explain names its delegator", async () => {
  const top = await created();
  const below = await created("--parent", top, "--agent", "helper");
  const lines = (await ok("tasks", "tree", top)).split("\n");
  expect(lines[0]).toContain(`${top} pending idle`);
  expect(lines[1]).toContain(`└─ ${below} pending helper`);
  const explanation = await ok("explain", below);
  expect(explanation).toContain("Delegator: local");
  expect(explanation).toContain(`Ancestor: task ${top} for idle`);
});

test("a review is decided with its reason", async () => {
  const id = (
    await ok("reviews", "create", "--subject", "s-1", "--title", "One", "--reviewer", "local", "-o", "id")
  ).trim();
  expect(await ok("reviews", "list", "--state", "pending")).toContain(id);
  await ok("reviews", "decide", id, "rejected", "--reason", "incomplete", "--reviewer", "local");
  expect(JSON.parse(await ok("reviews", "describe", id, "-o", "json"))).toMatchObject({
    state: "REVIEW_STATE_REJECTED",
    reason: "incomplete",
  });
});

test("a token is created, shown block by block, revoked, and shown with its denial", async () => {
  const principal = (await ok("keys", "new", "me.key")).trim();
  expect(statSync(join(user.folder, "me.key")).mode & 0o777).toBe(0o600);
  const grant = ["--delegatee", principal, "--capability", "web:search:**", "--budget", "150000000"];
  writeFileSync(join(user.folder, "token"), await ok("tokens", "create", ...grant));
  const drawn = await ok("tokens", "inspect", "@token");
  for (const part of ["block 0", principal, "web:search:**", "$1.50", "The platform accepts it"]) {
    expect(drawn).toContain(part);
  }
  const holder = ["--key-file", "me.key"];
  expect(await ok("tokens", "revoke", "@token", ...holder)).toContain(principal);
  expect(await ok("tokens", "inspect", "@token")).toContain("The platform denies it: revoked");
  expect(await ok("tokens", "revocations")).toContain(principal);
});

test("--watch prints new agents, one JSON document a line, until Ctrl-C", async () => {
  const child = user.start(["agents", "list", "--watch", "-o", "json"]);
  const ended = once(child, "exit");
  let text = "";
  for await (const chunk of child.stdout ?? []) {
    if (text === "") void introduce(platform, "late");
    text += chunk;
    if (text.includes('"late"')) break;
  }
  child.kill("SIGINT");
  expect(await ended).toEqual([130, null]);
  for (const line of text.trim().split("\n")) expect(JSON.parse(line)).toHaveProperty("id");
});

test("--watch prints the changes of a list of tasks, one line each, until Ctrl-C", async () => {
  const earlier = await created();
  const child = user.start(["tasks", "list", "--watch", "--agent", "idle", "-o", "json"]);
  const ended = once(child, "exit");
  /** Returns the states of the task in the complete lines so far. */
  const states = () =>
    text
      .slice(0, text.lastIndexOf("\n") + 1)
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Record<string, string>)
      .filter(({ id }) => id === earlier)
      .map(({ status }) => status);
  let text = "";
  let isCancelled = false;
  for await (const chunk of child.stdout ?? []) {
    text += chunk;
    if (!isCancelled && states().length > 0) {
      isCancelled = true;
      void ok("tasks", "cancel", earlier, "--reason", "rain");
    }
    if (states().at(-1) === "TASK_STATUS_CANCELLED") break;
  }
  child.kill("SIGINT");
  expect(await ended).toEqual([130, null]);
  expect(states()).toEqual(["TASK_STATUS_PENDING", "TASK_STATUS_CANCELLED"]);
});

describe("an error is one sentence, with its own exit code", () => {
  test.each<[string, string[], number]>([
    ["no such task", ["tasks", "describe", "nope"], 3],
    ["no such command", ["taks"], 2],
    ["a wrong flag", ["tasks", "list", "--status", "odd"], 2],
    ["a rule of the contract", ["delegate", "--agent", "x".repeat(200)], 2],
    ["no file", ["delegate", "--agent", "echo", "--input", "@missing.json"], 2],
    ["no platform", ["agents", "list", "--server", "http://127.0.0.1:9"], 5],
    ["no context", ["agents", "list", "--context", "missing"], 3],
    ["a token without a key", ["agents", "list", "--token-file", "missing"], 2],
  ])("%s", async (_, words, expected) => {
    const { code, out, err } = await user.run(words);
    expect([code, out], err).toEqual([expected, ""]);
    expect(err).toMatch(/^depute: [^\n]*(;|see|did you mean)[^\n]*\n$/);
  });

  test("a reader that closes the pipe causes no error", async () => {
    const child = user.start(["tasks", "list", "-o", "json"]);
    const ended = once(child, "exit");
    child.stdout?.destroy();
    expect(await ended).toEqual([0, null]);
  });
});

describe("a context", () => {
  test("is created, selected and deleted, in a file of mode 0600", async () => {
    const newUser = userOf("");
    const config = join(newUser.folder, "config.json");
    await newUser.run(["context", "create", "local", "--server", platform.url]);
    await newUser.run(["context", "create", "none", "--server", "http://127.0.0.1:9"]);
    expect(statSync(config).mode & 0o777).toBe(0o600);
    expect((await newUser.run(["agents", "list", "-o", "id"])).out).toContain("echo");
    await newUser.run(["context", "use", "none"]);
    expect((await newUser.run(["agents", "list"])).code).toBe(5);
    expect((await newUser.run(["agents", "list", "--context", "local"])).code).toBe(0);
    await newUser.run(["context", "delete", "none"]);
    expect(JSON.parse(readFileSync(config, "utf8"))).toEqual({
      contexts: { local: { server: platform.url } },
    });
    newUser.remove();
  });

  test("is refused where other users can read the file", async () => {
    const newUser = userOf("");
    await newUser.run(["context", "create", "local", "--server", platform.url]);
    chmodSync(join(newUser.folder, "config.json"), 0o644);
    const { code, err } = await newUser.run(["agents", "list"]);
    expect([code, err]).toEqual([2, expect.stringContaining("run chmod 600")]);
    newUser.remove();
  });
});

describe("credentials", () => {
  let guarded: TestPlatform;
  const key = createKey();
  beforeAll(async () => {
    guarded = await startPlatform(["--auth", "required"]);
  });
  afterAll(() => guarded.stop());

  test("are required: a call without them is denied, and names the missing ones", async () => {
    const newUser = userOf(guarded.url);
    const { code, err } = await newUser.run(["tasks", "list"]);
    expect([code, err]).toEqual([4, expect.stringMatching(/^depute: .*; /)]);
    newUser.remove();
  });

  test("can be a key that proves its principal", async () => {
    const newUser = userOf(guarded.url);
    writeFileSync(join(newUser.folder, "key"), seedOf(key));
    const agent = JSON.stringify({ id: "mine", version: "1.0.0", principal: key.principal.id });
    const { code, err } = await newUser.run(["agents", "create", "--file", agent, "--key-file", "key"]);
    expect(code, err).toBe(0);
    expect((await newUser.run(["agents", "list", "-o", "id", "--key-file", "key"])).out).toBe("mine\n");
    newUser.remove();
  });
});

test("are shown as text, also with hostile names and outputs", async () => {
  const hostile = "\u001b[2J\u202e\u009b31m\u0007";
  const id = await created("--description", hostile);
  await platform.clients.agents.registerAgent({
    requestId: crypto.randomUUID(),
    agent: { id: "hostile", version: "1.0.0", displayName: "\u202eevil" },
  });
  for (const words of [
    ["tasks", "list", "--limit", "1000"],
    ["tasks", "describe", id],
    ["tasks", "describe", id, "-o", "json"],
    ["tasks", "describe", id, "-o", "yaml"],
    ["agents", "list"],
    ["agents", "describe", "hostile", "-o", "yaml"],
    ["delegate", "--agent", "echo", "--input", JSON.stringify(hostile), "--watch"],
  ]) {
    const out = await ok(...words);
    for (const character of hostile.match(/[^\x20-\x7e]/gu) ?? [])
      expect(out, words.join(" ")).not.toContain(character);
  }
});
