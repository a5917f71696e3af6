package dev.depute.examples;

import dev.depute.tasks.v1.Assignment;
import dev.depute.tasks.v1.WatchAssignmentsRequest;
import dev.depute.tasks.v1.WorkerServiceGrpc;
import dev.depute.verifier.v1.AttestationServiceGrpc;
import dev.depute.verifier.v1.RecordAttestationRequest;
import java.nio.file.Path;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/** An agent that scores the sentiment of texts. README.md lists its settings. */
public final class Worker {
  private static final int BATCH = 50, CAPACITY = 4, MICROCENTS_PER_TEXT = 100;
  private static final long PAUSE_MS = Long.parseLong(Platform.setting("DEPUTE_PAUSE_MS", "0"));
  private static final String AGENT = Platform.setting("DEPUTE_AGENT", "sentiment");
  private static final ScheduledExecutorService TIMER = Executors.newScheduledThreadPool(CAPACITY);

  public static void main(String[] args) throws Exception {
    Keys key = Keys.of(Path.of(Platform.setting("DEPUTE_KEY", "worker.key")));
    Platform platform = new Platform(Platform.setting("DEPUTE_URL", "http://127.0.0.1:8080"), key);
    Runtime.getRuntime().addShutdownHook(new Thread(() -> Runtime.getRuntime().halt(0)));
    Registration.register(platform, key, AGENT, Sentiment.CAPABILITY);
    var workers = WorkerServiceGrpc.newBlockingStub(platform.channel);
    var watch = WatchAssignmentsRequest.newBuilder().setAgentId(AGENT).setCapacity(CAPACITY).setBegin(true);
    var threads = Executors.newFixedThreadPool(CAPACITY);
    System.out.println("ready");
    platform.follow(
        () -> workers.watchAssignments(watch.setStreamId(UUID.randomUUID().toString()).build()),
        answer -> {
          if (answer.hasAssignment()) threads.execute(() -> perform(platform, key, answer.getAssignment()));
          return true;
        });
  }

  private static void perform(Platform platform, Keys key, Assignment assignment) {
    long began = System.nanoTime();
    String taskId = assignment.getTask().getId();
    try (Work work = new Work(platform, TIMER, assignment)) {
      List<String> texts = Sentiment.texts(work.input());
      Sentiment sums = Sentiment.from(work.checkpoint());
      while (sums.count() < texts.size()) {
        sums = sums.plus(texts.subList(sums.count(), Math.min(sums.count() + BATCH, texts.size())));
        work.save(sums.document(), sums.count(), texts.size());
        work.pause(PAUSE_MS);
      }
      long cost = (long) MICROCENTS_PER_TEXT * texts.size();
      work.complete(sums.document(), cost, attest(platform, key, work, sums, cost, began));
      System.out.println("completed " + taskId);
    } catch (Work.Stopped stopped) {
      System.out.println("stopped " + taskId);
    } catch (RuntimeException error) {
      System.err.println("task " + taskId + ": " + error);
    }
  }

  /** Records a signed attestation. Returns its id; empty for work without a contract. */
  private static String attest(Platform platform, Keys key, Work work, Sentiment sums, long cost, long began) {
    if (work.task.getContractId().isEmpty()) return "";
    long millis = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began);
    var attestation = Documents.attestation(key, work.task, sums.document(), cost, millis);
    var request = RecordAttestationRequest.newBuilder().setAttestation(attestation).build();
    var attestations = AttestationServiceGrpc.newBlockingStub(platform.channel);
    return work.call(() -> attestations.recordAttestation(request)).getAttestation().getId();
  }
}
