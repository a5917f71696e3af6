package dev.depute.examples;

import dev.depute.tasks.v1.TaskEvent;
import dev.depute.tasks.v1.TaskServiceGrpc;
import dev.depute.tasks.v1.TaskStatus;
import dev.depute.tasks.v1.WatchTaskRequest;
import java.util.Locale;

/** The events of a task. A broken stream continues after the last event that was read. */
final class Events {
  private static final int ENOUGH = 250;

  private Events() {}

  /** Prints each event until the task ends. {@code once} runs at the first progress of at least 250 texts. */
  static void follow(Platform platform, String taskId, Runnable once) {
    var tasks = TaskServiceGrpc.newBlockingStub(platform.channel);
    WatchTaskRequest.Builder request = WatchTaskRequest.newBuilder().setTaskId(taskId);
    boolean[] isDue = {true};
    platform.follow(
        () -> tasks.watchTask(request.build()),
        answer -> {
          if (!answer.hasTaskEvent()) return true;
          TaskEvent event = answer.getTaskEvent();
          request.setAfterSequence(event.getSequence());
          System.out.println("event " + event.getSequence() + " " + describe(event));
          if (isDue[0] && event.getProgress().getProcessed() >= ENOUGH) {
            isDue[0] = false;
            once.run();
          }
          // The statuses from COMPLETED on are terminal.
          return event.getStatus().getNumber() < TaskStatus.TASK_STATUS_COMPLETED_VALUE;
        });
  }

  private static String describe(TaskEvent event) {
    String type = event.getPayloadCase().name().toLowerCase(Locale.ROOT);
    if (!event.hasProgress()) return type;
    return type + " " + event.getProgress().getProcessed() + "/" + event.getProgress().getTotal();
  }
}
