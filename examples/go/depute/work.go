package depute

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log"
	"sync"
	"sync/atomic"
	"time"

	tasksv1 "github.com/depute/depute/gen/go/depute/tasks/v1"
	verifierv1 "github.com/depute/depute/gen/go/depute/verifier/v1"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
)

// The causes by which the context of running work ends.
var (
	ErrStopped   = errors.New("the task has ended or was given to another worker")
	ErrCancelled = errors.New("the delegator cancels the task")
	ErrClosed    = errors.New("the worker stops")
	// ErrSuspended is the error of Checkpoint when the worker must interrupt the work.
	ErrSuspended = errors.New("the delegator suspends the task")
)

// Result is the output of completed work.
type Result struct {
	Output         any
	CostMicrocents int64
}

// Worker takes assignments of one agent. The client's key is the agent's key and signs the attestations of
// results.
type Worker struct {
	Client   *Client
	AgentID  string
	Capacity int32
	// Handle does the work. Its context ends when the work has to stop.
	Handle func(ctx context.Context, work *Work) (Result, error)
	// OnEnd receives the task's id, and the error of work without a result.
	OnEnd func(taskID string, err error)

	runs sync.WaitGroup
}

// Run takes assignments until the context ends. It then returns running work to the queue.
func (w *Worker) Run(ctx context.Context) {
	defer w.runs.Wait()
	for wait := firstBackoff; ctx.Err() == nil; wait = min(2*wait, mostBackoff) {
		began := time.Now()
		err := w.take(ctx)
		if time.Since(began) > mostBackoff {
			wait = firstBackoff
		}
		log.Printf("the stream of assignments ended: %v", err)
		sleep(ctx, wait)
	}
}

// take reads one stream of assignments. EndAssignments ends the stream in an orderly way, so that no assignment
// is lost in transit.
func (w *Worker) take(ctx context.Context) error {
	streamCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	id := rand.Text()
	defer context.AfterFunc(ctx, func() {
		w.Client.Workers.EndAssignments(streamCtx, &tasksv1.EndAssignmentsRequest{AgentId: w.AgentID, StreamId: id})
		time.AfterFunc(mostBackoff, cancel)
	})()
	stream, err := w.Client.Workers.WatchAssignments(streamCtx, &tasksv1.WatchAssignmentsRequest{
		AgentId: w.AgentID, Worker: "go", Capacity: w.Capacity, Begin: true, StreamId: id,
	})
	for err == nil {
		var answer *tasksv1.WatchAssignmentsResponse
		if answer, err = stream.Recv(); err == nil && answer.Assignment != nil {
			w.runs.Go(func() { w.run(ctx, answer.Assignment) })
		}
	}
	return err
}

// Work is one assignment.
type Work struct {
	Task *tasksv1.Task

	checkpoint   *structpb.Value
	calls        tasksv1.WorkerServiceClient
	lease        *tasksv1.Lease
	stop         context.CancelCauseFunc
	isSuspending atomic.Bool
}

func (w *Worker) run(ctx context.Context, assignment *tasksv1.Assignment) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	work := &Work{Task: assignment.Task, checkpoint: assignment.Checkpoint, calls: w.Client.Workers,
		lease: assignment.Lease, stop: stop}
	beating := make(chan struct{})
	go func() {
		defer close(beating)
		work.extendLease(ctx, assignment.HeartbeatInterval.AsDuration())
	}()
	err := w.attempt(ctx, work)
	if err != nil {
		work.end(ctx, err)
	}
	w.OnEnd(work.Task.Id, err)
	// The platform answers an open heartbeat when the task ends, so the heartbeat normally returns by itself.
	select {
	case <-beating:
	case <-time.After(time.Second):
	}
}

// attempt does the work and reports its result.
func (w *Worker) attempt(ctx context.Context, work *Work) error {
	if work.Task.Status != tasksv1.TaskStatus_TASK_STATUS_RUNNING {
		_, err := work.calls.StartAssignment(ctx, &tasksv1.StartAssignmentRequest{Lease: work.lease})
		if err := work.note(err); err != nil {
			return err
		}
	}
	began := time.Now()
	result, err := w.Handle(ctx, work)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	output, err := ValueOf(result.Output)
	if err != nil {
		return err
	}
	complete := &tasksv1.CompleteAssignmentRequest{
		Lease:  work.lease,
		Output: &tasksv1.TaskOutput{Full: output},
		Usage:  &tasksv1.TaskUsage{CostMicrocents: result.CostMicrocents},
	}
	if work.Task.ContractId != "" {
		if complete.AttestationId, err = w.attest(ctx, work.Task, result, time.Since(began)); err != nil {
			return err
		}
	}
	_, err = work.calls.CompleteAssignment(ctx, complete)
	return work.note(err)
}

// attest records the signed statement that the platform requires of a result under a contract.
func (w *Worker) attest(ctx context.Context, task *tasksv1.Task, result Result, took time.Duration) (string, error) {
	attestation, err := SignAttestation(w.Client.Key, task, result, took)
	if err != nil {
		return "", err
	}
	_, err = w.Client.Attestations.RecordAttestation(ctx, &verifierv1.RecordAttestationRequest{Attestation: attestation})
	return attestation.Id, err
}

// extendLease sends heartbeats until the work is over. The platform answers a heartbeat after the wait, or at once when
// it has a directive.
func (w *Work) extendLease(ctx context.Context, interval time.Duration) {
	lease := 30 * time.Second
	if limit := w.Task.Limits.GetHeartbeat(); limit != nil {
		lease = limit.AsDuration()
	}
	for ctx.Err() == nil {
		began := time.Now()
		// Without an answer for as long as the lease lasts, another worker may have the task.
		attempt, cancel := context.WithTimeout(ctx, lease)
		answer, err := w.calls.HeartbeatAssignment(attempt, &tasksv1.HeartbeatAssignmentRequest{
			Lease: w.lease, Wait: durationpb.New(interval),
		})
		isLost := attempt.Err() != nil
		cancel()
		if isLost {
			w.stop(ErrStopped)
		}
		w.note(err)
		switch answer.GetDirective() {
		case tasksv1.WorkerDirective_WORKER_DIRECTIVE_STOP:
			w.stop(ErrStopped)
		case tasksv1.WorkerDirective_WORKER_DIRECTIVE_CANCEL:
			w.stop(ErrCancelled)
		case tasksv1.WorkerDirective_WORKER_DIRECTIVE_SUSPEND:
			w.isSuspending.Store(true)
		}
		sleep(ctx, interval-time.Since(began))
	}
}

// note stops the work by an error that ends the lease.
func (w *Work) note(err error) error {
	if endsLease(err) {
		w.stop(ErrStopped)
	}
	return err
}

// end reports that the work has ended without a result. ErrStopped needs no report: the lease is over.
func (w *Work) end(ctx context.Context, err error) {
	why, release := context.Cause(ctx), context.WithoutCancel(ctx)
	switch {
	case errors.Is(why, ErrStopped):
	case why != nil:
		w.calls.ReleaseAssignment(release, &tasksv1.ReleaseAssignmentRequest{Lease: w.lease})
	case errors.Is(err, ErrSuspended):
		w.calls.SuspendAssignment(ctx, &tasksv1.SuspendAssignmentRequest{Lease: w.lease})
	default:
		failure := &tasksv1.TaskFailure{Reason: "WORKER_ERROR", Message: err.Error(), Retryable: true}
		w.calls.FailAssignment(ctx, &tasksv1.FailAssignmentRequest{Lease: w.lease, Failure: failure})
	}
}

// Input reads the input of the task, as encoding/json does.
func (w *Work) Input(into any) error { return readValue(w.Task.Input, into) }

// Saved reads the checkpoint of an attempt before this one. Without one nothing changes.
func (w *Work) Saved(into any) error { return readValue(w.checkpoint, into) }

func readValue(value *structpb.Value, into any) error {
	if value == nil {
		return nil
	}
	text, err := value.MarshalJSON()
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// ValueOf is the JSON of a value, in a message.
func ValueOf(value any) (*structpb.Value, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	message := &structpb.Value{}
	return message, message.UnmarshalJSON(text)
}

// Progress reports how much is done.
func (w *Work) Progress(ctx context.Context, processed, total int) error {
	_, err := w.calls.ReportProgress(ctx, &tasksv1.ReportProgressRequest{
		Lease: w.lease, RequestId: rand.Text(),
		Progress: &tasksv1.TaskProgress{Processed: int32(processed), Total: int32(total)},
	})
	return w.note(err)
}

// Checkpoint saves the state from which the next attempt continues. It returns ErrSuspended when the worker
// must interrupt the work.
func (w *Work) Checkpoint(ctx context.Context, state any) error {
	value, err := ValueOf(state)
	if err != nil {
		return err
	}
	_, err = w.calls.SaveCheckpoint(ctx, &tasksv1.SaveCheckpointRequest{Lease: w.lease, Checkpoint: value})
	if err == nil && w.isSuspending.Load() {
		return ErrSuspended
	}
	return w.note(err)
}
