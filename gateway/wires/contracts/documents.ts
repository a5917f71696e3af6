import { createHash } from "node:crypto";
import { createFileRegistry, type DescService, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { bytesOfFile, fileNames } from "@depute/service";
import type { Validated } from "../../edge/validated.ts";
import { openApiDocument } from "./openapi.ts";

/**
 * Name of the file with the descriptors of all contracts and of the files that they import. The descriptors include
 * comments.
 */
const IMAGE = "depute.binpb";

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  ".tgz": "application/gzip",
  ".binpb": "application/x-protobuf",
};

/** Documents change only with a release, so caches may keep them for an hour without revalidation. */
const CACHE_CONTROL = "public, max-age=3600";

/** A file in the bundle of contracts, which `npm run bundle` writes. */
export interface BundleFile extends Validated {
  readonly name: string;
  readonly sha256: string;
}

/**
 * Reads the files of a bundle.
 *
 * @returns the files; empty if the folder contains no bundle
 */
export function readBundle(folder: string | URL): BundleFile[] {
  return fileNames(folder)
    .filter((name) => mediaTypeOf(name) !== undefined)
    .map((name) => {
      const bytes = bytesOfFile(new URL(name, folder));
      const sha256 = createHash("sha256").update(bytes).digest("hex");
      return { name, sha256, ...document(bytes, mediaTypeOf(name) ?? "") };
    });
}

function mediaTypeOf(name: string): string | undefined {
  return MEDIA_TYPES[name.slice(name.lastIndexOf("."))];
}

/** Returns the OpenAPI document of services. If a bundle exists, comments in its contracts become descriptions. */
export function openApi(
  services: readonly DescService[],
  bundle: readonly BundleFile[],
  publicUrl: string,
): Validated {
  const image = bundle.find(({ name }) => name === IMAGE);
  const registry = image && createFileRegistry(fromBinary(FileDescriptorSetSchema, image.bytes));
  const described = services.map((service) => registry?.getService(service.typeName) ?? service);
  const text = JSON.stringify(openApiDocument({ services: described, version: "1.0.0", publicUrl }));
  return document(Buffer.from(text), "application/json");
}

function document(bytes: Uint8Array, contentType: string): Validated {
  const etag = `"${createHash("sha256").update(bytes).digest("base64url")}"`;
  return { bytes, contentType, cacheControl: CACHE_CONTROL, etag };
}
