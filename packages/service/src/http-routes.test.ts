import { describe, expect, it } from "vitest";
import { createRouteTable, type HttpRoute } from "./http-routes.ts";

const route = (path: string, ...methods: string[]): HttpRoute => ({ path, methods, handle: async () => {} });
const table = [
  route("/nekte", "POST"),
  route("/nekte/{agent}", "POST"),
  route("/nekte/special", "GET"),
  route("/files/{rest...}", "GET"),
  route("/a.b/{x}/c/{y}", "GET", "PUT"),
  route("/nekte", "GET"),
];
const find = createRouteTable(table);

describe("createRouteTable", () => {
  it.each([
    ["POST", "/nekte", 0, {}],
    ["GET", "/nekte", 5, {}],
    ["HEAD", "/nekte", 5, {}],
    ["HEAD", "/files/a", 3, { rest: "a" }],
    ["POST", "/nekte/bob", 1, { agent: "bob" }],
    ["POST", "/nekte/special", 1, { agent: "special" }],
    ["GET", "/nekte/special", 2, {}],
    ["POST", "/nekte/a%2Fb%20%C3%A9", 1, { agent: "a/b é" }],
    ["POST", "/nekte/__proto__", 1, { agent: "__proto__" }],
    ["GET", "/files/a/b/c", 3, { rest: "a/b/c" }],
    ["PUT", "/a.b/1/c/2", 4, { x: "1", y: "2" }],
  ])("%s %s is route %i", (method, path, index, parameters) => {
    expect(find(method, path)).toEqual({ route: table[index], parameters });
  });

  it.each([
    ["DELETE", "/nekte", ["POST", "GET", "HEAD"]],
    ["PUT", "/nekte/special", ["GET", "HEAD", "POST"]],
    ["POST", "/a.b/1/c/2", ["GET", "HEAD", "PUT"]],
  ])("%s %s is not allowed", (method, path, allow) => {
    expect(find(method, path)).toEqual({ allow });
  });

  it.each(["/", "/nekte/", "/nekte/a/b", "/aXb/1/c/2", "/files/", "/nekte/%ff", "/NEKTE", "//nekte"])(
    "nothing is at %s",
    (path) => {
      expect(find("POST", path)).toBeUndefined();
    },
  );
});
