package dev.depute.examples;

import com.google.protobuf.Value;
import dev.depute.tasks.v1.Assignment;
import dev.depute.tasks.v1.CompleteAssignmentRequest;
import dev.depute.tasks.v1.HeartbeatAssignmentRequest;
import dev.depute.tasks.v1.Lease;
import dev.depute.tasks.v1.ReleaseAssignmentRequest;
import dev.depute.tasks.v1.ReportProgressRequest;
import dev.depute.tasks.v1.SaveCheckpointRequest;
import dev.depute.tasks.v1.StartAssignmentRequest;
import dev.depute.tasks.v1.SuspendAssignmentRequest;
import dev.depute.tasks.v1.Task;
import dev.depute.tasks.v1.TaskOutput;
import dev.depute.tasks.v1.TaskProgress;
import dev.depute.tasks.v1.TaskStatus;
import dev.depute.tasks.v1.TaskUsage;
import dev.depute.tasks.v1.WorkerDirective;
import dev.depute.tasks.v1.WorkerServiceGrpc;
import dev.depute.tasks.v1.WorkerServiceGrpc.WorkerServiceBlockingStub;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/** The calls of one assignment. Heartbeats run beside the work; the thread of the work is interrupted at its end. */
final class Work implements AutoCloseable {
  /** The codes of LEASE_LOST, of an unknown task, and of TOKEN_DENIED. */
  private static final Set<Status.Code> OVER =
      Set.of(Status.Code.ABORTED, Status.Code.NOT_FOUND, Status.Code.PERMISSION_DENIED);

  /** The work has to end: the task was cancelled, suspended or revoked, or another worker has it. */
  static final class Stopped extends RuntimeException {
    private static final long serialVersionUID = 1;
  }

  final Task task;

  private final Platform platform;
  private final WorkerServiceBlockingStub workers;
  private final Assignment assignment;
  private final Lease lease;
  private final Thread thread = Thread.currentThread();
  private final ScheduledFuture<?> heartbeats;
  private volatile WorkerDirective directive = WorkerDirective.WORKER_DIRECTIVE_CONTINUE;
  private boolean isOpen = true;

  /** Starts the work of an assignment. Throws Stopped where the platform refuses the start. */
  Work(Platform platform, ScheduledExecutorService timer, Assignment assignment) {
    this.platform = platform;
    workers = WorkerServiceGrpc.newBlockingStub(platform.channel);
    this.assignment = assignment;
    lease = assignment.getLease();
    task = assignment.getTask();
    if (task.getStatus() != TaskStatus.TASK_STATUS_RUNNING) {
      StartAssignmentRequest request = StartAssignmentRequest.newBuilder().setLease(lease).build();
      call(() -> workers.startAssignment(request));
    }
    long seconds = assignment.getHeartbeatInterval().getSeconds();
    long millis = Math.max(100, (seconds * 1000 + assignment.getHeartbeatInterval().getNanos() / 1_000_000) / 2);
    heartbeats = timer.scheduleWithFixedDelay(this::heartbeat, millis, millis, TimeUnit.MILLISECONDS);
  }

  Object input() {
    return Documents.plain(task.getInput());
  }

  /** The checkpoint of an earlier attempt, or null. */
  Object checkpoint() {
    return assignment.hasCheckpoint() ? Documents.plain(assignment.getCheckpoint()) : null;
  }

  /** Saves the state from which another attempt continues, then reports the progress. Throws Stopped. */
  void save(Object checkpoint, int processed, int total) {
    Value state = Documents.value(checkpoint);
    var save = SaveCheckpointRequest.newBuilder().setLease(lease).setCheckpoint(state).build();
    obey(call(() -> workers.saveCheckpoint(save)).getDirective());
    var report =
        ReportProgressRequest.newBuilder()
            .setLease(lease)
            .setProgress(TaskProgress.newBuilder().setProcessed(processed).setTotal(total))
            .setRequestId(UUID.randomUUID().toString())
            .build();
    obey(call(() -> workers.reportProgress(report)).getDirective());
  }

  /** Completes the task with its output. Heartbeats continue, but do not interrupt the call. Throws Stopped. */
  void complete(Object output, long costMicrocents, String attestationId) {
    synchronized (this) {
      isOpen = false;
    }
    var request =
        CompleteAssignmentRequest.newBuilder()
            .setLease(lease)
            .setOutput(TaskOutput.newBuilder().setFull(Documents.value(output)))
            .setUsage(TaskUsage.newBuilder().setCostMicrocents(costMicrocents))
            .setAttestationId(attestationId)
            .build();
    call(() -> workers.completeAssignment(request));
  }

  /** Waits. Throws Stopped when the work has to end meanwhile. */
  void pause(long millis) {
    try {
      Thread.sleep(millis);
    } catch (InterruptedException interrupted) {
      obey(directive);
      throw new Stopped();
    }
  }

  /** Makes a call of this work, with retries. Throws Stopped where the work has to end. */
  <T> T call(Supplier<T> attempt) {
    try {
      return platform.retry(attempt);
    } catch (StatusRuntimeException error) {
      if (OVER.contains(error.getStatus().getCode())) throw new Stopped();
      if (directive != WorkerDirective.WORKER_DIRECTIVE_CONTINUE) obey(directive);
      throw error;
    }
  }

  private void heartbeat() {
    try {
      var request = HeartbeatAssignmentRequest.newBuilder().setLease(lease).build();
      WorkerDirective answer = workers.heartbeatAssignment(request).getDirective();
      if (answer != WorkerDirective.WORKER_DIRECTIVE_DEADLINE_MOVED) directive = answer;
    } catch (StatusRuntimeException error) {
      // A missed heartbeat is made up by the next one.
      if (OVER.contains(error.getStatus().getCode())) directive = WorkerDirective.WORKER_DIRECTIVE_STOP;
    }
    if (directive != WorkerDirective.WORKER_DIRECTIVE_CONTINUE) interrupt();
  }

  /** Interrupts the thread once, and not after the work has ended. */
  private synchronized void interrupt() {
    if (isOpen) thread.interrupt();
    isOpen = false;
  }

  /** Follows an instruction of the platform. The checkpoint of the last batch is saved already. */
  private void obey(WorkerDirective answer) {
    switch (answer) {
      case WORKER_DIRECTIVE_STOP:
        throw new Stopped();
      case WORKER_DIRECTIVE_SUSPEND:
        close();
        var suspension = SuspendAssignmentRequest.newBuilder().setLease(lease).build();
        platform.retry(() -> workers.suspendAssignment(suspension));
        throw new Stopped();
      case WORKER_DIRECTIVE_CANCEL:
        close();
        var release = ReleaseAssignmentRequest.newBuilder().setLease(lease).build();
        platform.retry(() -> workers.releaseAssignment(release));
        throw new Stopped();
      default:
    }
  }

  /** Ends the heartbeats. */
  @Override
  public synchronized void close() {
    isOpen = false;
    heartbeats.cancel(false);
    Thread.interrupted();
  }
}
