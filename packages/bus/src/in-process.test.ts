import { InProcessBus } from "./in-process.ts";
import { busSuite } from "./testing/bus-suite.ts";

busSuite((onError) => {
  const bus = new InProcessBus({ onError });
  return { local: bus, remote: bus };
});
