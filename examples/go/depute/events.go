package depute

import (
	"context"
	"iter"

	tasksv1 "github.com/depute/depute/gen/go/depute/tasks/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Events yields each event of a task once, until the task ends. After a dropped stream, it continues with the
// event after the last one read.
func (c *Client) Events(ctx context.Context, taskID string) iter.Seq2[*tasksv1.TaskEvent, error] {
	return func(yield func(*tasksv1.TaskEvent, error) bool) {
		watcher := &watcher{c.Tasks, taskID, 0, false}
		for wait := firstBackoff; !watcher.isOver; wait = min(2*wait, mostBackoff) {
			after := watcher.after
			err := watcher.follow(ctx, yield)
			if watcher.after > after {
				wait = firstBackoff
			}
			isLost := err == nil || status.Code(err) == codes.Unavailable
			if !watcher.isOver && (!isLost || !sleep(ctx, wait)) {
				yield(nil, err)
				return
			}
		}
	}
}

type watcher struct {
	tasks  tasksv1.TaskServiceClient
	taskID string
	// after is the sequence of the last event that was read.
	after  int64
	isOver bool
}

// follow reads one stream to its end.
func (w *watcher) follow(ctx context.Context, yield func(*tasksv1.TaskEvent, error) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := w.tasks.WatchTask(ctx, &tasksv1.WatchTaskRequest{TaskId: w.taskID, AfterSequence: w.after})
	for err == nil {
		var answer *tasksv1.WatchTaskResponse
		if answer, err = stream.Recv(); err != nil || answer.TaskEvent.GetSequence() <= w.after {
			continue
		}
		w.after = answer.TaskEvent.Sequence
		if !yield(answer.TaskEvent, nil) || isTerminal(answer.TaskEvent.Status) {
			w.isOver = true
			return nil
		}
	}
	return err
}

func isTerminal(status tasksv1.TaskStatus) bool {
	switch status {
	case tasksv1.TaskStatus_TASK_STATUS_COMPLETED, tasksv1.TaskStatus_TASK_STATUS_FAILED,
		tasksv1.TaskStatus_TASK_STATUS_CANCELLED, tasksv1.TaskStatus_TASK_STATUS_REJECTED,
		tasksv1.TaskStatus_TASK_STATUS_EXPIRED, tasksv1.TaskStatus_TASK_STATUS_REVOKED:
		return true
	}
	return false
}

// TypeOf is the name of an event's payload, such as `progress`.
func TypeOf(event *tasksv1.TaskEvent) string {
	message := event.ProtoReflect()
	if field := message.WhichOneof(message.Descriptor().Oneofs().ByName("payload")); field != nil {
		return string(field.Name())
	}
	return "unknown"
}
