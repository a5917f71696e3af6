export { type Bus, type BusOptions, type Listener, LOOK_AT_EVERYTHING } from "./bus.ts";
