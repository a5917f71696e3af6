import { RevocationSet, VerifiedPrefixes, type VerifyOptions, verifyToken } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { amount } from "../amount.ts";
import type { Benchmark, Contender } from "../bench.ts";
import { contextOf, revocationIds, revoked, tokens } from "./tokens.ts";

const MANY = amount(1_000_000);

function verifyWith(revocations: RevocationSet, links: number, options: VerifyOptions): () => void {
  const source = tokens(links);
  const context = contextOf(revocations);
  return () => {
    const { text, resource } = source.next();
    const request = { namespace: "docs", action: "read", resource };
    const result = verifyToken(engine, text, { ...context, request }, options);
    if (!result.ok) throw new Error(result.denial.type);
  };
}

function bytesAnId(count: number): number {
  const before = bytesInUse();
  const set = new RevocationSet();
  for (const id of revocationIds(count)) set.add(id);
  const used = bytesInUse() - before;
  return set.size === count ? used / count : Number.NaN;
}

function bytesInUse(): number {
  for (let i = 0; i < 4; i++) globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

export default function benchmarks(): Benchmark[] {
  const [none, many] = [new RevocationSet(), revoked(MANY)];
  const cases = [0, 2, 5].flatMap((links) =>
    ["prefix unknown", "prefix known"].map((filterName): Benchmark => {
      const options = () => (filterName === "prefix known" ? { verified: new VerifiedPrefixes() } : {});
      const contenders: Contender[] = [
        { name: "no revocations", run: verifyWith(none, links, options()) },
        { name: `${MANY}`, run: verifyWith(many, links, options()), goal: { within: 0.15 } },
      ];
      return { name: `verify, ${links} attenuations, ${filterName}, by revocations`, contenders };
    }),
  );
  const memory: Benchmark = {
    name: "memory of revocations",
    figures: [100_000, 300_000, MANY].map((count) => ({
      name: `${count}`,
      unit: "bytes each",
      measure: () => bytesAnId(count),
      atMost: 64,
    })),
  };
  return [...cases, memory];
}
