import { globSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { DescFile, DescMethod } from "@bufbuild/protobuf";
import { PLATFORM_SERVICES } from "@depute/core/services";

/** All services of the platform. */
export const allServices = Object.values(PLATFORM_SERVICES).flatMap((services) => Object.values(services));

/** All methods of the platform. */
export const methods: readonly DescMethod[] = allServices.flatMap((service) => service.methods);

const GENERATED = fileURLToPath(new URL("../../packages/contracts/gen/", import.meta.url));

const paths = globSync("**/*_pb.ts", { cwd: GENERATED }).map((path) => join(GENERATED, path));
const modules: Record<string, unknown>[] = await Promise.all(
  paths.map((path) => import(/* @vite-ignore */ path)),
);

/** Returns the contracts in proto/, without those of third parties. */
export function contractFiles(): DescFile[] {
  const files = modules.flatMap((module) => Object.values(module).filter(isFile));
  return files.filter(({ proto }) => !/^(google|buf|grpc)\./.test(proto.package));
}

function isFile(value: unknown): value is DescFile {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "file";
}

/** Returns a method as clients call it: `package.Service/Method`. */
export function nameOf(method: DescMethod): string {
  return `${method.parent.typeName}/${method.name}`;
}
