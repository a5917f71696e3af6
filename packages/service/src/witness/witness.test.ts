import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { ManualClock, systemTimers } from "@depute/core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { createLogger } from "../log.ts";
import { SettingsError } from "../settings.ts";
import { type WitnessSettings, witnessPlace } from "./place.ts";
import { type Verdict, Witness } from "./witness.ts";
import { HeadMovedError, type WitnessPlace } from "./witness-place.ts";

const log = createLogger({ level: "silent", name: "test" });
let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "depute-witness-"));
  mkdirSync(join(folder, "data/inside"), { recursive: true });
  mkdirSync(join(folder, "heads"));
  symlinkSync(join(folder, "data/inside"), join(folder, "link"));
});
afterAll(() => rmSync(folder, { recursive: true }));

const NO_CREDENTIALS = { witnessToken: "", witnessKeyFile: "", witnessCaFile: "" };
const settingsOf = (witness: string) => ({ ...NO_CREDENTIALS, witness, dataDir: join(folder, "data") });
const witnessed = { holderProof: () => "a proof" };
const placeOf = (witness: string, more: Partial<WitnessSettings> = {}) =>
  witnessPlace({ ...settingsOf(witness), ...more }, "revocations", witnessed, systemTimers);

describe("the place", () => {
  test("is absent without the setting", () => expect(placeOf("")).toBeUndefined());

  test.each([
    ["a missing folder", "missing", "does not exist"],
    ["the data folder", "data", "within the data folder"],
    ["a folder of it", "data/inside", "within the data folder"],
    ["a link to a folder of it", "link", "within the data folder"],
  ])("is refused as %s", (_, name, reason) => {
    expect(() => placeOf(join(folder, name))).toThrow(SettingsError);
    expect(() => placeOf(join(folder, name))).toThrow(reason);
  });

  test("in a folder has the newest head", async () => {
    const place = placeOf(join(folder, "heads")) as WitnessPlace;
    expect(await place.read()).toBeUndefined();
    await place.write("first");
    await place.write("second");
    expect(await place.read()).toBe("second");
    expect(readFileSync(join(folder, "heads/revocations.head"), "utf8")).toBe("second");
  });
});

test.each<[string, string, Partial<WitnessSettings>, string]>([
  [
    "a key",
    "heads",
    { witnessKeyFile: "w.key" },
    "DEPUTE_WITNESS_KEY_FILE: it is used only with a witness like depute+https",
  ],
  ["authorities", "heads", { witnessCaFile: "ca.pem" }, "DEPUTE_WITNESS_CA_FILE: it is used only with"],
])("another kind of witness than a Depute refuses %s", (_, name, more, reason) => {
  expect(() => placeOf(join(folder, name), more)).toThrow(reason);
});

test.each<[string, string, Partial<WitnessSettings>, string]>([
  ["no host", "depute+https://", {}, "write another platform's address like depute+https://host:port"],
  ["a user", "depute+https://a:b@host", {}, "write another platform's address"],
  ["a query", "depute+https://host/?a=1", {}, "write another platform's address"],
  [
    "two credentials",
    "depute+https://host",
    { witnessToken: "t", witnessKeyFile: "w.key" },
    "set only one of the two",
  ],
  ["a missing key", "depute+https://host", { witnessKeyFile: "/missing.key" }, "/missing.key cannot be used"],
  [
    "missing authorities",
    "depute+https://host",
    { witnessCaFile: "/missing.pem" },
    "DEPUTE_WITNESS_CA_FILE: /missing.pem cannot be read",
  ],
])("a Depute as witness is refused with %s", (_, witness, more, reason) => {
  expect(() => placeOf(witness, more)).toThrow(SettingsError);
  expect(() => placeOf(witness, more)).toThrow(reason);
});

describe("a place at an address", () => {
  const seen: { method: string; url: string; token: string | undefined; body: string }[] = [];
  let answer: { status: number; body: string } = { status: 200, body: "" };
  let server: Server;
  let place: WitnessPlace;
  beforeAll(async () => {
    server = createServer(async (request, response) => {
      const { method = "", url = "", headers } = request;
      seen.push({ method, url, token: headers.authorization, body: await text(request) });
      response.writeHead(answer.status, { location: "http://127.0.0.1:1/" }).end(answer.body);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    place = placeOf(`http://127.0.0.1:${port}/heads/`, { witnessToken: "secret" }) as WitnessPlace;
  });
  beforeEach(() => void seen.splice(0));
  afterAll(() => server.close());

  test("sends the token with GET and PUT", async () => {
    answer = { status: 200, body: "head" };
    expect(await place.read()).toBe("head");
    await place.write("next");
    expect(seen).toEqual([
      { method: "GET", url: "/heads/revocations.head", token: "Bearer secret", body: "" },
      { method: "PUT", url: "/heads/revocations.head", token: "Bearer secret", body: "next" },
    ]);
  });

  test("is empty if its address answers 404", async () => {
    answer = { status: 404, body: "none" };
    expect(await place.read()).toBeUndefined();
  });

  test.each([401, 500, 204, 302])("that answers GET with %i is not trusted", async (status) => {
    answer = { status, body: "" };
    await expect(place.read()).rejects.toThrow();
  });

  test.each([401, 404, 500, 302])("that answers PUT with %i has not confirmed", async (status) => {
    answer = { status, body: "" };
    await expect(place.write("x")).rejects.toThrow();
  });

  test("with a long answer is read up to the limit", async () => {
    answer = { status: 200, body: "x".repeat(100_000) };
    await expect(place.read()).rejects.toThrow("exceeds 65536 bytes");
  });
});

describe("a witness", () => {
  const clock = new ManualClock();
  let kept: string | undefined;
  let isAway = false;
  let current = 0;
  const place: WitnessPlace = {
    address: "the place",
    read: async () => {
      if (isAway) throw new Error("it is away");
      return kept;
    },
    write: async (head) => {
      if (isAway) throw new Error("it is away");
      kept = head;
    },
  };
  const judge = async (published: string): Promise<Verdict> =>
    published === "keys"
      ? "older root keys"
      : Number.isNaN(Number(published))
        ? "foreign"
        : Number(published) > current
          ? "older"
          : "continued";
  const make = (at = place) =>
    new Witness({
      place: at,
      subject: "log of the test",
      timers: clock,
      log,
      head: async () => `${current}`,
      judge,
    });
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  beforeEach(() => {
    kept = undefined;
    isAway = false;
    current = 1;
  });
  afterEach(() => vi.restoreAllMocks());

  test("publishes the head at the start, and a quarter of a second after each change", async () => {
    const witness = make();
    await witness.check();
    expect(kept).toBe("1");
    current = 2;
    witness.note();
    clock.advance(249);
    await settled();
    expect(kept).toBe("1");
    clock.advance(1);
    await settled();
    expect(kept).toBe("2");
    await witness.close();
  });

  test("repeats a failed publication", async () => {
    const witness = make();
    await witness.check();
    isAway = true;
    current = 2;
    witness.note();
    clock.advance(250);
    await settled();
    isAway = false;
    clock.advance(5_000);
    await settled();
    expect(kept).toBe("2");
    await witness.close();
  });

  test("publishes the last change when it closes", async () => {
    const witness = make();
    await witness.check();
    current = 3;
    witness.note();
    await witness.close();
    expect(kept).toBe("3");
    expect(clock.pending).toBe(0);
  });

  test("publishes nothing before its check has succeeded", async () => {
    kept = "the head of another platform";
    const witness = make();
    witness.note();
    await expect(witness.check()).rejects.toThrow();
    clock.advance(10_000);
    await settled();
    await witness.close();
    expect(kept).toBe("the head of another platform");
  });

  test("publishes the newest head even if another replica was faster", async () => {
    let writes = 0;
    const raced: WitnessPlace = {
      ...place,
      write: async (head) => {
        writes += 1;
        current += 1;
        if (writes < 3) throw new HeadMovedError("a newer head is there");
        kept = head;
      },
    };
    await make(raced).check();
    expect([kept, writes]).toEqual(["3", 3]);
    writes = -1;
    await expect(make(raced).check()).rejects.toThrow("cannot be written: a newer head is there");
  });

  test.each([
    [
      "an old copy",
      { kept: "2", isAway: false },
      "the data is an old copy: the log of the test does not continue from the head at the place",
    ],
    [
      "an old copy of the root keys",
      { kept: "keys", isAway: false },
      "the data is an old copy: its root keys are older than the head at the place states",
    ],
    [
      "a head of another platform",
      { kept: "other", isAway: false },
      "is not a head of this platform's log of the test",
    ],
    [
      "a place that does not answer",
      { kept: undefined, isAway: true },
      "the place cannot be read: it is away",
    ],
  ])("refuses %s, and leaves the place unchanged", async (_, state, reason) => {
    ({ kept, isAway } = state);
    const before = kept;
    await expect(make().check()).rejects.toThrow(SettingsError);
    await expect(make().check()).rejects.toThrow(reason);
    expect(kept).toBe(before);
  });

  test("accepts a log that extends the head", async () => {
    kept = "1";
    current = 5;
    await make().check();
    expect(kept).toBe("5");
  });
});
