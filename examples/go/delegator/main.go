// Delegates the scoring of 500 texts under an attenuated token. Argument: complete, cancel or revoke; see README.md.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/depute/depute/examples/go/depute"
	registryv1 "github.com/depute/depute/gen/go/depute/registry/v1"
	tasksv1 "github.com/depute/depute/gen/go/depute/tasks/v1"
	"google.golang.org/protobuf/types/known/durationpb"
)

type object = map[string]any

func main() {
	ctx, mode := context.Background(), append(os.Args, "complete")[1]
	agentID, url := cmp.Or(os.Getenv("DEPUTE_AGENT"), "sentiment"), cmp.Or(os.Getenv("DEPUTE_URL"), depute.LocalURL)
	key := depute.Must(depute.LoadKey(cmp.Or(os.Getenv("DEPUTE_KEY"), "delegator.key")))
	issuer := depute.Must(depute.ConnectWithSecret(url, os.Getenv("DEPUTE_SECRET")))
	client := depute.Must(depute.Connect(url, key))

	// A contract states the conditions that a result must satisfy.
	schema := object{"type": "object", "properties": object{"count": object{"const": 500}}, "required": []any{"count"}}
	contract := depute.Must(client.CreateContract(ctx, "500 texts", schema, 1_000_000))

	// The platform mints a token for the delegator, which attenuates the token for the worker without a call.
	delegate := depute.Capability{Namespace: "depute:tasks", Action: "delegate", Resource: agentID + "/*"}
	classify := depute.Capability{Namespace: "llm", Action: "classify", Resource: "**"}
	token := depute.Must(issuer.Mint(ctx, key.Principal, contract, 1_000_000, delegate, classify))
	agent := depute.Must(client.Agents.GetAgent(ctx, &registryv1.GetAgentRequest{AgentId: agentID})).Agent
	part, half := []depute.Capability{{Namespace: "llm", Action: "classify", Resource: "texts/readme/**"}}, int64(500_000)
	block := depute.Attenuation{Delegatee: agent.Principal, AllowedCapabilities: part, MaxBudgetMicrocents: &half}
	attenuated := depute.Must(token.Attenuate(key, block))

	texts := []string{"A wonderful, useful tool.", "This is terrible.", "It takes two arguments.", "Broken."}
	draft := &tasksv1.TaskDraft{
		AgentId: agentID, CapabilityId: "sentiment", ContractId: contract, WorkerToken: attenuated.String(),
		Input:  depute.Must(depute.ValueOf(object{"texts": slices.Repeat(texts, 125)})),
		Limits: &tasksv1.TaskLimits{Heartbeat: durationpb.New(5 * time.Second)},
		Retry:  &tasksv1.RetryPolicy{MaxAttempts: 3, InitialBackoff: durationpb.New(100 * time.Millisecond)}}
	create := func() (*tasksv1.CreateTaskResponse, error) {
		request := &tasksv1.CreateTaskRequest{RequestId: rand.Text(), Draft: draft}
		return client.Tasks.CreateTask(depute.WithToken(ctx, token), request)
	}
	id := depute.Must(create()).Task.Id
	fmt.Println("task", id)
	for event, err := range client.Events(ctx, id) {
		if progress := depute.Must(event, err).GetProgress(); progress != nil {
			fmt.Printf("event %d progress %d/%d\n", event.Sequence, progress.Processed, progress.Total)
		} else {
			fmt.Println("event", event.Sequence, depute.TypeOf(event))
		}
		if isHalf := event.GetProgress().GetProcessed() == 250; isHalf && mode == "cancel" {
			depute.Must(client.Tasks.CancelTask(ctx, &tasksv1.CancelTaskRequest{TaskId: id}))
		} else if isHalf && mode == "revoke" {
			depute.Must(client.Revoke(ctx, token))
		}
	}
	task := depute.Must(client.Tasks.GetTask(ctx, &tasksv1.GetTaskRequest{TaskId: id})).Task
	fmt.Println("ended", strings.ToLower(strings.TrimPrefix(task.Status.String(), "TASK_STATUS_")))
	if task.Status == tasksv1.TaskStatus_TASK_STATUS_COMPLETED {
		isAttested := depute.Must(client.IsAttested(ctx, task.AttestationId))
		fmt.Printf("result %s\n", depute.Must(depute.Canonical(task.Output.Full)))
		fmt.Println("checked", map[bool]string{true: "passed", false: "failed"}[task.Verification.GetPassed()])
		fmt.Println("attestation", map[bool]string{true: "valid", false: "invalid"}[isAttested])
		fmt.Println("revoked", depute.Must(client.Revoke(ctx, token)))
	}
	if mode != "cancel" {
		_, err := create()
		fmt.Println("refused", depute.ReasonOf(err))
	}
}
