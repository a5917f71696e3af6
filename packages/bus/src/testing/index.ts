export { PostgresBus } from "../postgres.ts";
export { RedisMemory } from "../redis-memory.ts";
export { busSuite, subscribeAndProbe } from "./bus-suite.ts";
export { redisForTests, startRedis, type TestRedis } from "./redis-server.ts";
export { type TcpProxy, tcpProxy } from "./tcp-proxy.ts";
