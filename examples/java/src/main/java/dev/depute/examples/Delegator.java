package dev.depute.examples;

import com.google.protobuf.Duration;
import dev.depute.registry.v1.AgentServiceGrpc;
import dev.depute.registry.v1.GetAgentRequest;
import dev.depute.tasks.v1.*;
import dev.depute.verifier.v1.*;
import java.nio.file.Path;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.UUID;

/** Delegates the scoring of 500 texts under a narrowed token. README.md lists its modes and settings. */
public final class Delegator {
  private static final String AGENT = Platform.setting("DEPUTE_AGENT", "sentiment");
  private static final List<String> FOUR = List.of("A wonderful, useful tool.", "This is terrible.", "It takes two arguments.", "Broken.");
  private static final List<String> TEXTS = Collections.nCopies(125, FOUR).stream().flatMap(List::stream).toList();
  private static final Map<String, Object> COUNTS = Map.of("count", Map.of("const", 500));
  private static final Map<String, Object> SCHEMA = Map.of("type", "object", "properties", COUNTS, "required", List.of("count"));
  private static final long BUDGET = 1_000_000;

  public static void main(String[] args) throws Exception {
    String mode = args.length == 0 ? "complete" : args[0];
    Keys key = Keys.of(Path.of(Platform.setting("DEPUTE_KEY", "delegator.key")));
    Platform platform = new Platform(Platform.setting("DEPUTE_URL", "http://127.0.0.1:8080"), key);
    Authority authority = new Authority(platform, key);
    var terms = CreateContractRequest.newBuilder().setContract(Documents.contract(key, "500 texts", SCHEMA, BUDGET)).build();
    var contracts = ContractServiceGrpc.newBlockingStub(platform.channel);
    String contractId = platform.retry(() -> contracts.createContract(terms)).getContract().getId();
    var rights = List.of(Authority.capability("depute:tasks", "delegate", AGENT + "/*"), Authority.capability("llm", "classify", "**"));
    Token token = authority.mint(Platform.setting("DEPUTE_SECRET", ""), contractId, BUDGET, rights);
    var lookup = GetAgentRequest.newBuilder().setAgentId(AGENT).build();
    var agents = AgentServiceGrpc.newBlockingStub(platform.channel);
    String worker = platform.retry(() -> agents.getAgent(lookup)).getAgent().getPrincipal();
    Token narrowed = authority.narrow(token, worker, BUDGET / 2, "texts/readme/**");

    var draft = TaskDraft.newBuilder().setAgentId(AGENT).setCapabilityId("sentiment").setInput(Documents.value(Map.of("texts", TEXTS)));
    draft.setContractId(contractId).setWorkerToken(narrowed.text());
    draft.setLimits(TaskLimits.newBuilder().setHeartbeat(Duration.newBuilder().setSeconds(5)));
    draft.setRetry(RetryPolicy.newBuilder().setMaxAttempts(3).setInitialBackoff(Duration.newBuilder().setNanos(100_000_000)));
    var tasks = TaskServiceGrpc.newBlockingStub(platform.channel);
    var delegation = tasks.withCallCredentials(platform.holder(key, token.text()));
    var creation = CreateTaskRequest.newBuilder().setRequestId(UUID.randomUUID().toString()).setDraft(draft).build();
    String taskId = platform.retry(() -> delegation.createTask(creation)).getTask().getId();

    System.out.println("task " + taskId);
    Events.follow(platform, taskId, () -> {
      if (mode.equals("cancel")) platform.retry(() -> tasks.cancelTask(CancelTaskRequest.newBuilder().setTaskId(taskId).build()));
      if (mode.equals("revoke")) authority.revoke(token);
    });
    var query = GetTaskRequest.newBuilder().setTaskId(taskId).build();
    Task task = platform.retry(() -> tasks.getTask(query)).getTask();
    String status = task.getStatus().name().replace("TASK_STATUS_", "").toLowerCase(Locale.ROOT);
    System.out.println("ended " + status);
    if (status.equals("completed")) {
      System.out.println("result " + Json.write(Documents.plain(task.getOutput().getFull())));
      System.out.println("checked " + (task.getVerification().getPassed() ? "passed" : "failed"));
      var attestation = VerifyAttestationRequest.newBuilder().setAttestationId(task.getAttestationId()).build();
      var attestations = AttestationServiceGrpc.newBlockingStub(platform.channel);
      boolean isValid = platform.retry(() -> attestations.verifyAttestation(attestation)).getValid();
      System.out.println("attestation " + (isValid ? "valid" : "invalid"));
      System.out.println("revoked " + authority.revoke(token));
    }
    if (!mode.equals("cancel")) {
      var again = creation.toBuilder().setRequestId(UUID.randomUUID().toString()).build();
      System.out.println("refused " + platform.refusalOf(() -> delegation.createTask(again)));
    }
    platform.close();
  }
}
