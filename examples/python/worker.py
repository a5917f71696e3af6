"""Runs an agent that scores the sentiment of texts until the process stops. examples/README.md lists the settings."""

import asyncio
import os
import re

import depute

URL = os.environ.get("DEPUTE_URL", "http://127.0.0.1:8080")
AGENT = os.environ.get("DEPUTE_AGENT", "sentiment")
PAUSE = int(os.environ.get("DEPUTE_PAUSE_MS", "0")) / 1000
BATCH = 50
SCORES = {"wonderful": 4, "excellent": 3, "useful": 2, "bad": -3, "broken": -1, "terrible": -3}
TEXTS = {"type": "array", "items": {"type": "string"}}
SENTIMENT = {
    "id": "sentiment",
    "cat": "nlp",
    "desc": "Scores texts.",
    "input": {"type": "object", "properties": {"texts": TEXTS}, "required": ["texts"]},
    "output": {
        "type": "object",
        "required": ["count", "positive", "negative"],
        "additionalProperties": {"type": "integer"},
    },
}


async def score(work: depute.Work) -> dict[str, int]:
    """Scores the texts in batches. The checkpoint is the output so far."""
    texts = work.input["texts"]
    sums = work.saved or {"count": 0, "positive": 0, "negative": 0}
    while sums["count"] < len(texts):
        for text in texts[sums["count"] :][:BATCH]:
            total = sum(SCORES.get(word, 0) for word in re.findall("[a-z]+", text.lower()))
            sums["count"] += 1
            sums["positive"] += total > 0
            sums["negative"] += total < 0
        await work.checkpoint(sums)
        await work.progress(sums["count"], len(texts))
        await asyncio.sleep(PAUSE)
    return sums


async def handle(work: depute.Work) -> depute.Output:
    end = "stopped"
    try:
        output = await score(work)
        end = "completed"
    finally:
        print(end, work.task_id, flush=True)
    return depute.Output(output, cost_microcents=100 * output["count"])


async def main() -> None:
    keypair = depute.Keypair.load_or_create(os.environ.get("DEPUTE_KEY", "worker.key"))
    async with depute.connect(URL, keypair=keypair) as client:
        await client.register(
            AGENT,
            capabilities=[SENTIMENT],
            display_name="Sentiment",
            description="Scores the sentiment of texts.",
            version="1.0.0",
            lease_duration=0,
        )
        print("ready", flush=True)
        await depute.Worker(client, AGENT, handle, capacity=4).run()


asyncio.run(main())
