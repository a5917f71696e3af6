// An agent that scores the sentiment of texts, until it is stopped. README.md lists its settings.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/depute/depute/examples/go/depute"
	registryv1 "github.com/depute/depute/gen/go/depute/registry/v1"
	nektev1 "github.com/depute/depute/gen/go/nekte/v1"
)

var (
	agentID = cmp.Or(os.Getenv("DEPUTE_AGENT"), "sentiment")
	pause   = depute.Must(time.ParseDuration(cmp.Or(os.Getenv("DEPUTE_PAUSE_MS"), "0") + "ms"))
	scores  = map[string]int{"wonderful": 4, "excellent": 3, "useful": 2, "bad": -3, "broken": -1, "terrible": -3}
	word    = regexp.MustCompile("[a-z]+")
)

const (
	batch = 50
	texts = `{"type":"object","properties":{"texts":{"type":"array","items":{"type":"string"}}},"required":["texts"]}`
	sums  = `{"type":"object","required":["count","positive","negative"],"additionalProperties":{"type":"integer"}}`
)

// handle scores the texts in batches. Its checkpoint is the output so far.
func handle(ctx context.Context, work *depute.Work) (depute.Result, error) {
	var input struct{ Texts []string }
	output := map[string]int{"count": 0, "positive": 0, "negative": 0}
	if err := errors.Join(work.Input(&input), work.Saved(&output)); err != nil {
		return depute.Result{}, err
	}
	for total := len(input.Texts); output["count"] < total; time.Sleep(pause) {
		for _, text := range input.Texts[output["count"]:min(output["count"]+batch, total)] {
			score := 0
			for _, each := range word.FindAllString(strings.ToLower(text), -1) {
				score += scores[each]
			}
			output["count"]++
			if score > 0 {
				output["positive"]++
			} else if score < 0 {
				output["negative"]++
			}
		}
		if err := work.Checkpoint(ctx, output); err != nil {
			return depute.Result{}, err
		}
		if err := work.Progress(ctx, output["count"], total); err != nil {
			return depute.Result{}, err
		}
	}
	return depute.Result{Output: output, CostMicrocents: int64(100 * len(input.Texts))}, nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	key := depute.Must(depute.LoadKey(cmp.Or(os.Getenv("DEPUTE_KEY"), "worker.key")))
	client := depute.Must(depute.Connect(cmp.Or(os.Getenv("DEPUTE_URL"), depute.LocalURL), key))
	defer client.Close()
	sentiment := &nektev1.CapabilityFull{Id: "sentiment", Cat: new("nlp"), Desc: new("Scores texts."),
		InputSchema: []byte(texts), OutputSchema: []byte(sums)}
	about := "Scores the sentiment of texts."
	agent := &registryv1.Agent{Id: agentID, DisplayName: "Sentiment", Description: about, Version: "1.0.0"}
	depute.Must(0, client.Register(ctx, agent, sentiment))
	end := map[bool]string{true: "completed", false: "stopped"}
	onEnd := func(taskID string, err error) { fmt.Println(end[err == nil], taskID) }
	fmt.Println("ready")
	(&depute.Worker{Client: client, AgentID: agentID, Capacity: 4, Handle: handle, OnEnd: onEnd}).Run(ctx)
}
