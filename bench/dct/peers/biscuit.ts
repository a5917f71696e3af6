import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { onDemand } from "../../../tools/on-demand.ts";
import { attenuationOf, authorityOf, NOW, pathOf, REVOCATIONS, revocationIds, TOKENS } from "../tokens.ts";
import type { Operations } from "./operations.ts";

/** What this file uses of @biscuit-auth/biscuit-wasm. Objects live in the memory of WebAssembly until `free`. */
interface Freed {
  free(): void;
}
interface Block extends Freed {
  addCode(source: string): void;
}
interface Biscuit extends Freed {
  appendBlock(block: Block): Biscuit;
  toBase64(): string;
  getRevocationIdentifiers(): string[];
}
interface AuthorizerBuilder extends Freed {
  addFact(fact: Freed): void;
  addPolicy(policy: Freed): void;
  buildAuthenticated(token: Biscuit): Freed & { authorizeWithLimits(limits: object): number };
}
interface Library {
  Biscuit: {
    builder(): Block & { build(key: Freed): Biscuit };
    block_builder(): Block;
    fromBase64(text: string, root: Freed): Biscuit;
  };
  KeyPair: new (algorithm: number) => { getPublicKey(): Freed; getPrivateKey(): Freed };
  AuthorizerBuilder: new () => AuthorizerBuilder;
  Fact: { fromString(source: string): Freed };
  Policy: { fromString(source: string): Freed };
  SignatureAlgorithm: { Ed25519: number };
}

/** The time limit is generous, because the default of 1 ms fails on a machine that is shared. */
const LIMITS = { max_facts: 1000, max_iterations: 100, max_time_micro: 1_000_000 };

/**
 * Makes tokens of Biscuit that allow the same as Depute's tokens of the same number. Facts of the authority state
 * capabilities, and checks of each further block attenuate them. The policy is parsed once. The operation `warm` keeps
 * the token as an object, so that its signatures are not checked again.
 */
export async function biscuit(): Promise<Operations> {
  const file = join(onDemand("peers"), "@biscuit-auth/biscuit-wasm/module/biscuit.js");
  const { Biscuit, KeyPair, AuthorizerBuilder, Fact, Policy, SignatureAlgorithm } = (await import(
    pathToFileURL(file).href
  )) as Library;
  const keys = new KeyPair(SignatureAlgorithm.Ed25519);
  const [publicKey, privateKey] = [keys.getPublicKey(), keys.getPrivateKey()];
  const revoked = new Set(revocationIds(REVOCATIONS));
  const policy = Policy.fromString(
    "allow if operation($n, $a), resource($r), cap($n, $a, $p), $r.starts_with($p)",
  );
  const time = (ms: number) => new Date(ms).toISOString().replace(/\.\d+Z/, "Z");
  /** Returns the facts of one call. They are parsed for each call, because a call brings its own facts. */
  const factsOf = (resource: string) => [
    Fact.fromString('operation("docs", "read")'),
    Fact.fromString(`resource(${JSON.stringify(resource)})`),
    Fact.fromString(`time(${time(NOW + 1000)})`),
    Fact.fromString("spent(10)"),
  ];

  const mint = (n: number): Biscuit => {
    const { capabilities, maxBudgetMicrocents } = authorityOf(n);
    const builder = Biscuit.builder();
    const caps = capabilities.map(
      ({ namespace, action, resource }) =>
        `cap(${JSON.stringify(namespace)}, ${JSON.stringify(action)}, ${prefix(resource)});`,
    );
    builder.addCode(
      `${caps.join(" ")} check if time($t), $t < ${time(NOW + 3_600_000)};` +
        ` check if spent($s), $s < ${maxBudgetMicrocents}`,
    );
    return builder.build(privateKey);
  };
  const attenuate = (token: Biscuit, n: number, i: number): Biscuit => {
    const { allowedCapabilities = [], maxBudgetMicrocents } = attenuationOf(n, i);
    const block = Biscuit.block_builder();
    const allowed = allowedCapabilities.map(
      ({ namespace, action, resource }) =>
        `operation(${JSON.stringify(namespace)}, ${JSON.stringify(action)}), resource($r),` +
        ` $r.starts_with(${prefix(resource)})`,
    );
    block.addCode(`check if ${allowed.join(" or ")}; check if spent($s), $s < ${maxBudgetMicrocents}`);
    const longer = token.appendBlock(block);
    block.free();
    return longer;
  };
  const made = (links: number) =>
    Array.from({ length: TOKENS }, (_, n) => {
      let token = mint(n);
      for (let i = 0; i < links; i++) token = attenuate(token, n, i);
      return { token, text: token.toBase64(), resource: `${pathOf(n, links)}/report.txt` };
    });
  const authorize = (token: Biscuit, resource: string) => {
    for (const id of token.getRevocationIdentifiers()) if (revoked.has(id)) throw new Error("revoked");
    const builder = new AuthorizerBuilder();
    for (const fact of factsOf(resource)) {
      builder.addFact(fact);
      fact.free();
    }
    builder.addPolicy(policy);
    const authorizer = builder.buildAuthenticated(token);
    authorizer.authorizeWithLimits(LIMITS);
    authorizer.free();
  };
  let turn = 0;
  const written = (token: Biscuit) => {
    const text = token.toBase64();
    token.free();
    return text;
  };
  return {
    mint: () => () => written(mint(turn++ % TOKENS)),
    attenuate(links) {
      const held = made(links);
      return () => {
        const n = turn++ % TOKENS;
        return written(attenuate((held[n] as (typeof held)[number]).token, n, links));
      };
    },
    cold(links) {
      const held = made(links);
      return () => {
        const { text, resource } = held[turn++ % TOKENS] as (typeof held)[number];
        const token = Biscuit.fromBase64(text, publicKey);
        authorize(token, resource);
        token.free();
      };
    },
    warm(links) {
      const held = made(links);
      return () => {
        const { token, resource } = held[turn++ % TOKENS] as (typeof held)[number];
        authorize(token, resource);
      };
    },
  };
}

/** Returns the part of a resource before its wildcard, as a string of Datalog. */
function prefix(resource: string): string {
  return JSON.stringify(resource.replace(/\*+$/, ""));
}
