export { ALL_KEYS, type Bus, type Listener, type OnError } from "./bus.ts";
export { type BusOptions, createBus } from "./create.ts";
