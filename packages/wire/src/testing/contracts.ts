import { readdirSync } from "node:fs";
import { createRegistry, type DescFile, type DescMessage } from "@bufbuild/protobuf";

const GEN = new URL("../../../contracts/gen/", import.meta.url);

/** The packages of messages whose JSON form is defined by a protocol. */
const PACKAGES = ["agenta/", "asp/", "cap/", "delegateos/", "nekte/", "depute/wire/"];

/** All messages whose JSON form a protocol defines, by full name. */
export const contracts: ReadonlyMap<string, DescMessage> = await loadContracts();

async function loadContracts(): Promise<Map<string, DescMessage>> {
  const paths = readdirSync(GEN, { recursive: true, encoding: "utf8" }).filter(
    (path) => path.endsWith("_pb.ts") && PACKAGES.some((start) => path.startsWith(start)),
  );
  const modules = await Promise.all(paths.map((path) => import(new URL(path, GEN).href)));
  const files = modules.flatMap((module) =>
    Object.values<DescFile>(module).filter((each) => each?.kind === "file"),
  );
  return new Map(
    [...createRegistry(...files)]
      .filter((desc) => desc.kind === "message")
      .map((desc) => [desc.typeName, desc]),
  );
}

/** Returns the contract with this full name. Throws if there is none, so that a misspelt name fails the test. */
export function contract(typeName: string): DescMessage {
  const desc = contracts.get(typeName);
  if (desc === undefined) throw new Error(`no contract has the name ${typeName}; check its spelling`);
  return desc;
}
