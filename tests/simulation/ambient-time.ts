import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const OWN = ["packages", "services", "gateway", "cli"].map((folder) => `${ROOT}${folder}/`);

/** Returns the file and line that called a stub, which is the first frame outside this file. */
function callerIn(stack: string | undefined): string {
  const frames = (stack ?? "").split("\n").slice(1);
  return frames.find((frame) => !frame.includes("ambient-time.ts")) ?? "";
}

function isOwn(frame: string): boolean {
  return OWN.some((folder) => frame.includes(folder)) && !frame.includes("node_modules");
}

/**
 * Makes the machine's clocks and timers throw for callers in the project's own folders. Node.js and third-party
 * libraries may still use them. `uses` lists the refused callers, because a caller may catch the error and hide
 * it.
 */
export function refuseAmbientTime(): { readonly uses: readonly string[]; restore(): void } {
  const uses: string[] = [];
  const restores: (() => void)[] = [];
  const guard = <Name extends string>(owner: Record<Name, unknown>, name: Name) => {
    const original = owner[name] as (...args: unknown[]) => unknown;
    const guarded = function (this: unknown, ...args: unknown[]) {
      const caller = callerIn(new Error("ambient time").stack);
      if (isOwn(caller)) {
        uses.push(`${name}${caller}`);
        throw new Error(`${name} is not the simulated clock: ${caller}`);
      }
      return Reflect.apply(original, this, args);
    };
    owner[name] = Object.assign(guarded, original);
    restores.push(() => {
      owner[name] = original;
    });
  };
  guard(globalThis as unknown as Record<"setTimeout", unknown>, "setTimeout");
  guard(globalThis as unknown as Record<"setInterval", unknown>, "setInterval");
  guard(Date as unknown as Record<"now", unknown>, "now");
  guard(performance as unknown as Record<"now", unknown>, "now");
  guard(AbortSignal as unknown as Record<"timeout", unknown>, "timeout");
  return {
    uses,
    restore: () => {
      for (const restore of restores) restore();
    },
  };
}
