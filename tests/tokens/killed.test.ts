import { cp, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { connectTo } from "@depute/client";
import { RevocationScope } from "@depute/contracts/delegateos/v0/revocation_pb";
import { createProof, generateKeypair } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { startPlatformProcess } from "@depute/example-sentiment/processes";
import { refusal } from "@depute/service/testing";
import { freePorts } from "depute/ports";
import { afterEach, expect, test } from "vitest";
import { CleanUp, dataFolder } from "../faults/platform.ts";

const cleanUp = new CleanUp();
afterEach(() => cleanUp.run());

const holder = generateKeypair(engine);

test("a used proof stays used after a kill of the platform", { timeout: 60_000 }, async () => {
  const [port = 0] = await freePorts(1);
  const settings = {
    DEPUTE_DATA_DIR: await dataFolder(cleanUp),
    DEPUTE_LOG_LEVEL: "fatal",
    DEPUTE_GATEWAY_PORT: String(port),
  };
  const start = async () => {
    const started = await startPlatformProcess(["start"], settings);
    cleanUp.add(() => started.stop());
    return started;
  };
  const started = await start();
  const htu = `${started.about}/depute.tokens.v1.TokenService/GetIssuer`;
  const prove = () => createProof(engine, holder, { htm: "POST", htu });
  const call = (dpop: string) => connectTo(started.about).tokens.getIssuer({}, { headers: { dpop } });

  const used = prove();
  await call(used);
  const unused = prove();
  await started.stop("SIGKILL");
  await start();
  // A killed platform may not have stored every used proof. So after the restart it refuses all earlier proofs, used
  // or not.
  for (const dpop of [used, unused]) {
    const refused = await refusal(call(dpop));
    expect(refused).toMatchObject({ reason: "UNAUTHENTICATED", metadata: { claim: "jti" } });
  }
  // The start waits until a new proof can be told from earlier ones by its time. So the platform accepts the new
  // proof.
  await call(prove());
});

test("an older copy of the store is refused, however soon the platform is killed after a revocation", {
  timeout: 120_000,
}, async () => {
  const folder = await dataFolder(cleanUp);
  const settings = { DEPUTE_DATA_DIR: folder, DEPUTE_LOG_LEVEL: "fatal", DEPUTE_GATEWAY_PORT: "0" };
  const start = async () => {
    const started = await startPlatformProcess(["start"], settings);
    cleanUp.add(() => started.stop("SIGKILL"));
    return started;
  };
  let started = await start();
  const { revocationId } = await connectTo(started.about).tokens.mintToken({
    ...{ requestId: "one", delegatee: holder.principal.id, contractId: "ct_a1b2c3d4e5f6" },
    capabilities: [{ namespace: "docs", action: "read", resource: "/**" }],
  });
  await started.stop();
  const older = join(await dataFolder(cleanUp), "copy");
  await cp(folder, older, { recursive: true });
  started = await start();
  await connectTo(started.about).revocations.revokeMintedToken({
    revocationId,
    scope: RevocationScope.BLOCK,
  });
  await started.stop("SIGKILL");
  for (const name of await readdir(folder)) {
    if (name.startsWith("tokens.sqlite")) await rm(join(folder, name));
  }
  for (const name of await readdir(older)) {
    if (name.startsWith("tokens.sqlite")) await cp(join(older, name), join(folder, name));
  }
  await expect(start()).rejects.toThrow("ended before it was ready");
});
