/**
 * Resolves when the parent process has ended, for any reason. It never resolves in a process without an IPC
 * channel to its parent. Call it before the first await, so that no event is missed.
 */
export function parentGone(): Promise<void> {
  const { channel } = process;
  if (channel === undefined) return new Promise(() => {});
  const ended = new Promise<void>((resolve) => process.once("disconnect", resolve));
  // `unref` prevents the IPC channel from keeping the process alive.
  channel.unref();
  return ended;
}
