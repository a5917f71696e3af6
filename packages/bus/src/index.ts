export { ALL_KEYS, type Bus, type Listener, type OnError } from "./bus.ts";
export { type BusOptions, createBus, openSharedMemory } from "./create.ts";
export { InProcessBus } from "./in-process.ts";
export {
  LIMIT_NAMES,
  type LimitName,
  type ListedEntry,
  MemoryAwayError,
  type MemoryEntry,
  type MemoryLimits,
  type SharedMemory,
} from "./memory.ts";
