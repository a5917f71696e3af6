/** Exports for benchmarks and for tests of the whole platform. */
export { toMessage } from "../documents.ts";
export { migrations } from "../store/migrations.ts";
export { TransparencyLog } from "../transparency-log.ts";
export { signedContract } from "./contracts.ts";
export { type FakeModel, fakeModel } from "./fake-model.ts";
