import type * as own from "../../../packages/dct/src/fast/memo.ts";

/** Remembers nothing. */
export class Memo<V> implements Pick<own.Memo<V>, "get" | "set"> {
  get(): V | undefined {
    return undefined;
  }
  set(): void {}
}
export const detached: typeof own.detached = (text) => text;
