"""An agent that scores the sentiment of texts. Usage: python worker.py [URL]"""

import asyncio
import re
import sys

import depute

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"
SCORES = {"wonderful": 4, "excellent": 3, "useful": 2, "bad": -3, "broken": -1, "terrible": -3}
TEXTS = {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2000}
COUNTS = {name: {"type": "integer", "minimum": 0} for name in ("count", "positive", "negative")}
SENTIMENT = {
    "id": "sentiment",
    "cat": "nlp",
    "desc": "Sentiment of texts by a small lexicon.",
    "input": {"type": "object", "properties": {"texts": TEXTS}, "required": ["texts"]},
    "output": {"type": "object", "properties": COUNTS, "required": list(COUNTS)},
}


async def handle(work: depute.Work) -> depute.Output:
    texts, scores = work.input["texts"], []
    for text in texts:
        scores.append(sum(SCORES.get(word, 0) for word in re.findall(r"\w+", text.lower())))
        if len(scores) % 50 == 0:
            await work.progress(len(scores), len(texts))
    positive, negative = sum(score > 0 for score in scores), sum(score < 0 for score in scores)
    output = {"count": len(texts), "positive": positive, "negative": negative}
    return depute.Output(output, cost_microcents=100 * len(texts))


async def main() -> None:
    async with depute.connect(URL, keypair=depute.Keypair.load_or_create("worker.key")) as client:
        await client.register("sentiment-python", capabilities=[SENTIMENT], description="Scores texts.")
        print("ready", flush=True)
        await depute.Worker(client, "sentiment-python", handle, capacity=4).run()


asyncio.run(main())
