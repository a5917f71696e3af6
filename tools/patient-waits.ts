import { vi } from "vitest";

/** Milliseconds. `vi.waitFor` gives up after one second, which a busy machine exceeds, and vitest has no setting for it. */
const timeout = 10_000;

const { waitFor } = vi;
// Files that share a process share `vi`.
if (waitFor.name !== patientWaitFor.name) vi.waitFor = patientWaitFor;

function patientWaitFor<T>(...[callback, options]: Parameters<typeof waitFor<T>>): Promise<T> {
  return waitFor(callback, typeof options === "number" ? options : { timeout, ...options });
}
