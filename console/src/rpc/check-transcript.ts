import { type TranscriptVerdict, verifySteps } from "@depute/asp";
import type { Transcript, TranscriptKeys } from "@depute/contracts/asp/v0/transcript_pb";
import { portableEngine } from "@depute/dct";

/** The result of checking a transcript, as texts for the page. */
export interface TranscriptCheck {
  readonly isValid: boolean;
  readonly messages: number;
  /** `sealed`, `unsealed` or `unchecked`; empty for a transcript that is not valid. */
  readonly seal: string;
  /** The fault of the transcript; empty for a valid transcript. */
  readonly fault: string;
}

/** After this number of messages, the check pauses, so that the browser can handle the user's input. */
const STEPS = 10;

/** Verifies a transcript with the keys that the platform publishes. Without keys, the seal stays unchecked. */
export async function checkTranscript(
  transcript: Transcript,
  keys: TranscriptKeys | undefined,
): Promise<TranscriptCheck> {
  const platform = keys && { sealKeys: keys.sealKeys, logKeys: keys.logKeys };
  const steps = verifySteps(transcript, { engine: portableEngine, ...(platform && { platform }) });
  for (let count = 1; ; count++) {
    const step = steps.next();
    if (step.done === true) return checked(transcript, step.value);
    if (count % STEPS === 0) await new Promise((resolve) => setTimeout(resolve));
  }
}

function checked({ messages }: Transcript, verdict: TranscriptVerdict): TranscriptCheck {
  const common = { isValid: verdict.ok, messages: messages.length };
  if (verdict.ok) return { ...common, seal: verdict.seal, fault: "" };
  return { ...common, seal: "", fault: `${verdict.code}: ${verdict.detail} (message ${verdict.ordinal})` };
}
