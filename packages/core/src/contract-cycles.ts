import type { DescMessage } from "@bufbuild/protobuf";

const reachable = new WeakMap<DescMessage, ReadonlySet<DescMessage>>();

/** The message types below a type, itself among them when it holds itself. Free JSON has no rules and is left out. */
function reach(desc: DescMessage): ReadonlySet<DescMessage> {
  let seen = reachable.get(desc);
  if (seen === undefined) {
    const found = new Set<DescMessage>();
    const open = [desc];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      for (const { message } of next.fields) {
        if (message === undefined || message.file.proto.package === "google.protobuf" || found.has(message))
          continue;
        found.add(message);
        open.push(message);
      }
    }
    seen = found;
    reachable.set(desc, seen);
  }
  return seen;
}

/** Whether messages of a type can hold messages of the same type. */
export function isCyclic(desc: DescMessage): boolean {
  return reach(desc).has(desc);
}

const cycles = new WeakMap<DescMessage, boolean>();

/** Whether messages of a type can hold messages of a type that can hold itself. */
export function holdsCycle(desc: DescMessage): boolean {
  let holds = cycles.get(desc);
  if (holds === undefined) {
    holds = [...reach(desc)].some(isCyclic);
    cycles.set(desc, holds);
  }
  return holds;
}
