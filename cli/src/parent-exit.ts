/**
 * Returns a promise that resolves when the parent process has ended, for any reason. Without an IPC channel to the
 * parent, the promise never resolves. Call this function before the first await, so that the function misses no event.
 */
export function parentGone(): Promise<void> {
  const { channel } = process;
  if (channel === undefined) return new Promise(() => {});
  const ended = new Promise<void>((resolve) => process.once("disconnect", resolve));
  // `unref` prevents the IPC channel from keeping the process alive.
  channel.unref();
  return ended;
}
