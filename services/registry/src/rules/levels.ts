import { create } from "@bufbuild/protobuf";
import {
  type CapabilityFull,
  type CapabilityRef,
  CapabilityRefSchema,
  type CapabilitySummary,
  CapabilitySummarySchema,
} from "@depute/contracts/nekte/v1/nekte_pb";
import { versionHash } from "./version-hash.ts";

/** Returns a capability at level 1, without schemas and examples. (NEKTE 1) */
export function toSummary(full: CapabilityFull): CapabilitySummary {
  const summary = create(CapabilitySummarySchema, { id: full.id, h: full.h, desc: full.desc ?? "" });
  if (full.cat !== undefined) summary.cat = full.cat;
  if (full.cost !== undefined) summary.cost = full.cost;
  if (full.agentHint !== undefined) summary.agentHint = full.agentHint;
  return summary;
}

/** Returns a capability at level 0, with only its id, category and version hash. (NEKTE 1) */
export function toRef(capability: { id: string; cat?: string | undefined; h: string }): CapabilityRef {
  return create(CapabilityRefSchema, { id: capability.id, cat: capability.cat ?? "", h: capability.h });
}

/** Returns a published capability with its version hash. */
export function withHash(full: CapabilityFull, digest: string, length: number): CapabilityFull {
  return { ...full, h: versionHash(digest, length) };
}
