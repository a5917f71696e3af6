import { describe, expect, test } from "vitest";
import { nekteHosts, readAgentPorts } from "./reach.ts";
import { agentOfHost } from "./rpc.ts";

describe("virtual hosts", () => {
  test.each([
    ["http://127.0.0.1:8080", ["localhost"]],
    ["http://[::1]:8080", ["localhost"]],
    ["https://depute.example", ["agents.example", "localhost", "depute.example"]],
  ])("below %s", (publicUrl, expected) => {
    const configured = expected.includes("agents.example") ? ["Agents.Example"] : [];
    expect(nekteHosts(configured, publicUrl)).toEqual(expected);
  });

  test.each([
    ["http://worker.localhost/x", "worker"],
    ["http://worker.localhost:50051/x", "worker"],
    ["http://a.b.depute.example/x", "a.b"],
    ["http://localhost/x", ""],
    ["http://notlocalhost/x", ""],
    ["http://worker.elsewhere.example/x", ""],
    ["no url", ""],
  ])("%s is the agent %j", (url, agent) => {
    expect(agentOfHost(url, ["localhost", "depute.example"])).toBe(agent);
  });
});

describe("ports of agents", () => {
  test("are pairs", () => {
    expect(readAgentPorts(["worker=8090", "a.b=0"])).toEqual([
      { agentId: "worker", port: 8090 },
      { agentId: "a.b", port: 0 },
    ]);
  });

  test.each(["worker", "worker=", "=8090", "worker=99999", "worker=x"])("%s is refused", (entry) => {
    expect(() => readAgentPorts([entry])).toThrow("must have the form agent=port");
  });
});
