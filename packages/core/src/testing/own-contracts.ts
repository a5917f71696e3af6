import { readdirSync } from "node:fs";
import { createRegistry, type DescFile, type DescMessage } from "@bufbuild/protobuf";

const GEN = new URL("../../../contracts/gen/", import.meta.url);

/** Returns every message type of the contracts, except protobuf's own types. */
export async function ownContracts(): Promise<DescMessage[]> {
  const paths = readdirSync(GEN, { recursive: true, encoding: "utf8" });
  const modules = await Promise.all(
    paths.filter((path) => path.endsWith("_pb.ts")).map((path) => import(new URL(path, GEN).href)),
  );
  const files = modules.flatMap((module) =>
    Object.values<DescFile>(module).filter((each) => each?.kind === "file"),
  );
  return [...createRegistry(...files)]
    .filter((desc) => desc.kind === "message")
    .filter(({ file }) => !file.proto.package.startsWith("google."));
}
