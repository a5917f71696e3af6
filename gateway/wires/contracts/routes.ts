import type { DescService } from "@bufbuild/protobuf";
import { ErrorReason } from "@depute/core";
import { HttpRefusal } from "@depute/service";
import { type Answer, JSON_TYPES, json, type Route, type Wire } from "../../edge/route.ts";
import type { Validated } from "../../edge/validated.ts";
import { type BundleFile, openApi, readBundle } from "./documents.ts";

/** The options of {@link contractsWire}. */
export interface ContractsWireOptions {
  /** The services that the OpenAPI document describes. */
  readonly services: readonly DescService[];
  /** The folder of the bundle, with a trailing slash. */
  readonly folder: URL;
  readonly publicUrl: () => string;
}

/**
 * Serves the contracts for programs in other languages: the bundle of protos at `/protos`, and the unary calls as
 * OpenAPI at `/openapi.json`. Both are public. The gateway reads the bundle once, and keeps it in memory.
 */
export function contractsWire({ services, folder, publicUrl }: ContractsWireOptions): Wire {
  let bundle: readonly BundleFile[] = [];
  const files = () => {
    // If no bundle existed at the last read, reads the folder again, because the bundle may be written after the start.
    if (bundle.length === 0) bundle = readBundle(folder);
    return bundle;
  };
  let described: Validated | undefined;
  const routes: Route[] = [
    {
      method: "GET",
      path: "/protos",
      answer: async () => json({ files: requireFiles(files()).map(listed) }),
    },
    {
      method: "GET",
      path: "/protos/{file}",
      gives: [...JSON_TYPES, "application/gzip", "application/x-protobuf"],
      answer: async ({ parameters }) => sent(requireFiles(files()), parameters.file ?? ""),
    },
    {
      method: "GET",
      path: "/openapi.json",
      answer: async () => {
        described ??= openApi(services, files(), publicUrl());
        return { kind: "document", document: described };
      },
    },
  ];
  return { name: "contracts", claims: ["/protos"], routes };
}

function listed({ name, sha256, bytes, contentType }: BundleFile) {
  return { name, path: `/protos/${name}`, sha256, bytes: bytes.length, content_type: contentType };
}

function sent(files: readonly BundleFile[], name: string): Answer {
  const document = files.find((file) => file.name === name);
  if (document !== undefined) return { kind: "document", document };
  const names = files.map((file) => file.name).join(", ");
  throw missing("/protos/{file}", `the file does not exist in the bundle: use ${names}`);
}

function requireFiles(files: readonly BundleFile[]): readonly BundleFile[] {
  if (files.length > 0) return files;
  throw missing("/protos", "the bundle of contracts does not exist; run `npm run bundle`");
}

function missing(method: string, message: string): HttpRefusal {
  return new HttpRefusal(404, ErrorReason.UNKNOWN_METHOD, message, { metadata: { method } });
}
