export { type Bus, type Listener, LOOK_AT_EVERYTHING, type OnError } from "./bus.ts";
export { type BusOptions, createBus } from "./create.ts";
