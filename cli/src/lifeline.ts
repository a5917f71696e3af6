/**
 * Resolves when the process that started this one, with a channel to it, is gone, however it ended; never where there is
 * no such channel. To be called before anything is awaited, so that nothing is missed.
 */
export function parentGone(): Promise<void> {
  const { channel } = process;
  if (channel === undefined) return new Promise(() => {});
  const gone = new Promise<void>((resolve) => process.once("disconnect", resolve));
  // Nobody lives on for the sake of the channel.
  channel.unref();
  return gone;
}
