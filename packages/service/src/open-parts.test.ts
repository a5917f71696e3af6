import { expect, test } from "vitest";
import { OpenParts } from "./open-parts.ts";

const open = () => {
  const closed: string[] = [];
  const errors: unknown[] = [];
  const parts = new OpenParts((error) => errors.push(error));
  for (const name of ["store", "work", "loop"]) parts.add(async () => closed.push(name));
  return { parts, closed, errors };
};

test("the last part is closed first, each once", async () => {
  const { parts, closed } = open();
  await parts.close();
  await parts.close();
  expect(closed).toEqual(["loop", "work", "store"]);
});

test("a failed start closes all parts, also those after one whose close fails", async () => {
  const { parts, closed, errors } = open();
  const fault = new Error("cannot be closed");
  const start = async () => {
    parts.add(() => Promise.reject(fault));
    throw new Error("cannot be started");
  };
  await expect(parts.orClose(start)).rejects.toThrow("cannot be started");
  expect([closed, errors]).toEqual([["loop", "work", "store"], [fault]]);
});

test("a start that succeeds closes nothing", async () => {
  const { parts, closed } = open();
  expect(await parts.orClose(async () => "started")).toBe("started");
  expect(closed).toEqual([]);
});
