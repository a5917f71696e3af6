import { once } from "node:events";
import { createServer } from "node:net";

/**
 * Ports that nothing listens on, below those that the system gives to whoever asks for any: nobody takes them in between.
 */
export async function freePorts(count: number): Promise<number[]> {
  const free = new Set<number>();
  while (free.size < count) {
    const port = 10_000 + Math.floor(Math.random() * 20_000);
    if (await isFree(port)) free.add(port);
  }
  return [...free];
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  const listening = once(server, "listening").then(
    () => true,
    () => false,
  );
  server.listen(port, "127.0.0.1");
  if (!(await listening)) return false;
  await once(server.close(), "close");
  return true;
}
