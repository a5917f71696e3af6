import type { Envelope } from "@depute/contracts/asp/v0/envelope_pb";
import { Chain } from "../../asp/parties.ts";
import { startPlatform } from "../../asp/platform.ts";
import { calls, type Path, sizes, usEach } from "../path.ts";

const APPEND = "append a message";
const READ = "read the last 20 messages";
const CALLS = 20;
const PAGE = 20;
/** Messages that open the session, before the first size is reached. */
const OPENING = 4;

/**
 * Messages of one ASP session. The largest size leaves room for the measured messages below the session's limit of
 * 10,000.
 */
export const transcript: Path = {
  name: "messages of a session",
  unit: "us",
  sizes: sizes(100, 300, 1_000, 3_000, 9_800),
  lines: [APPEND, READ],
  flat: [APPEND, READ].map((line) => ({ line, from: 100, to: 9_800, atMost: 2 })),
  async open() {
    const platform = await startPlatform();
    const { sessions } = platform;
    const chain = new Chain(platform.score);
    const [invitation, ...rest] = chain.opening();
    await sessions.createSession({ invitation: invitation as Envelope });
    let length = OPENING;
    const append = async (envelope: Envelope) => {
      await sessions.appendMessage({ envelope });
      length++;
    };
    for (const envelope of rest) await sessions.appendMessage({ envelope });
    return {
      async grow(size) {
        while (length < size) for (const envelope of chain.talk(1)) await append(envelope);
      },
      measure(line) {
        // The messages are signed before the measurement.
        const messages = line === APPEND ? chain.talk(5 * calls(CALLS)) : [];
        const read = () =>
          sessions.listMessages({
            sessionId: chain.sessionId,
            afterSequence: BigInt(length - PAGE),
            pageSize: PAGE,
          });
        return usEach(CALLS, 1, line === APPEND ? (i) => append(messages[i] as Envelope) : read);
      },
      close: () => platform.close(),
    };
  },
};
