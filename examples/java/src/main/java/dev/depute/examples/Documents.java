package dev.depute.examples;

import com.google.protobuf.ListValue;
import com.google.protobuf.NullValue;
import com.google.protobuf.Struct;
import com.google.protobuf.Value;
import dev.depute.delegateos.v0.Attestation;
import dev.depute.delegateos.v0.AttestationResult;
import dev.depute.delegateos.v0.AttestationType;
import dev.depute.delegateos.v0.RevocationEntry;
import dev.depute.delegateos.v0.RevocationScope;
import dev.depute.delegateos.v0.TaskConstraints;
import dev.depute.delegateos.v0.TaskContract;
import dev.depute.delegateos.v0.TaskSpec;
import dev.depute.delegateos.v0.VerificationMethod;
import dev.depute.delegateos.v0.VerificationSpec;
import dev.depute.tasks.v1.Task;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Signed documents, each as the canonical JSON that is signed and as the message that is sent. */
final class Documents {
  private Documents() {}

  /** A contract whose result has to match a schema, for one hour. */
  static TaskContract contract(Keys issuer, String title, Map<String, Object> schema, long maxBudgetMicrocents) {
    String deadline = now().plus(1, ChronoUnit.HOURS).toString();
    Map<String, Object> document = new TreeMap<>();
    document.put("id", newId("ct"));
    document.put("version", "0.1");
    document.put("issuer", issuer.principal);
    document.put("createdAt", now().toString());
    document.put("task", Map.of("title", title, "description", "", "inputs", Map.of(), "outputSchema", true));
    document.put("verification", Map.of("method", "schema_match", "schema", schema));
    document.put(
        "constraints",
        Map.of(
            "maxBudgetMicrocents", maxBudgetMicrocents,
            "deadline", deadline,
            "maxChainDepth", 2,
            "requiredCapabilities", List.of()));
    return TaskContract.newBuilder()
        .setId((String) document.get("id"))
        .setVersion("0.1")
        .setIssuer(issuer.principal)
        .setCreatedAt((String) document.get("createdAt"))
        .setTask(TaskSpec.newBuilder().setTitle(title).setInputs(Struct.getDefaultInstance()).setOutputSchema(value(true)))
        .setVerification(
            VerificationSpec.newBuilder()
                .setMethod(VerificationMethod.VERIFICATION_METHOD_SCHEMA_MATCH)
                .setSchema(value(schema)))
        .setConstraints(
            TaskConstraints.newBuilder()
                .setMaxBudgetMicrocents(maxBudgetMicrocents)
                .setDeadline(deadline)
                .setMaxChainDepth(2))
        .setSignature(issuer.signDigestOf(document))
        .build();
  }

  /** The worker's statement of an output and its cost: vectors/attestations.md. */
  static Attestation attestation(Keys worker, Task task, Object output, long costMicrocents, long durationMs) {
    Map<String, Object> document = new TreeMap<>();
    document.put("id", newId("att"));
    document.put("version", "0.1");
    document.put("contractId", task.getContractId());
    document.put("delegationId", task.getDelegationId());
    document.put("principal", worker.principal);
    document.put("createdAt", now().toString());
    document.put("type", "completion");
    document.put("childAttestations", List.of());
    document.put(
        "result",
        Map.of("success", true, "output", output, "costMicrocents", costMicrocents, "durationMs", durationMs));
    return Attestation.newBuilder()
        .setId((String) document.get("id"))
        .setVersion("0.1")
        .setContractId(task.getContractId())
        .setDelegationId(task.getDelegationId())
        .setPrincipal(worker.principal)
        .setCreatedAt((String) document.get("createdAt"))
        .setType(AttestationType.ATTESTATION_TYPE_COMPLETION)
        .setResult(
            AttestationResult.newBuilder()
                .setSuccess(true)
                .setOutput(value(output))
                .setCostMicrocents(costMicrocents)
                .setDurationMs(durationMs))
        .setSignature(worker.signDigestOf(document))
        .build();
  }

  /** The revocation of a block, and of all delegations below it. */
  static RevocationEntry revocation(Keys revoker, String revocationId) {
    String revokedAt = now().toString();
    Map<String, Object> document =
        Map.of(
            "revocationId", revocationId,
            "revokedBy", revoker.principal,
            "revokedAt", revokedAt,
            "scope", "chain");
    return RevocationEntry.newBuilder()
        .setRevocationId(revocationId)
        .setRevokedBy(revoker.principal)
        .setRevokedAt(revokedAt)
        .setScope(RevocationScope.REVOCATION_SCOPE_CHAIN)
        .setSignature(revoker.signDigestOf(document))
        .build();
  }

  /** A new id of a kind: {@code ct}, {@code del} or {@code att}. */
  static String newId(String kind) {
    return kind + "_" + HexFormat.of().formatHex(Keys.random(6));
  }

  private static Instant now() {
    return Instant.now().truncatedTo(ChronoUnit.MILLIS);
  }

  /** The message of a JSON value. */
  static Value value(Object value) {
    Value.Builder message = Value.newBuilder();
    if (value instanceof Map<?, ?> members) {
      Struct.Builder struct = Struct.newBuilder();
      members.forEach((name, member) -> struct.putFields((String) name, value(member)));
      message.setStructValue(struct);
    } else if (value instanceof List<?> items) {
      ListValue.Builder list = ListValue.newBuilder();
      items.forEach(item -> list.addValues(value(item)));
      message.setListValue(list);
    } else if (value instanceof String text) {
      message.setStringValue(text);
    } else if (value instanceof Number number) {
      message.setNumberValue(number.doubleValue());
    } else if (value instanceof Boolean flag) {
      message.setBoolValue(flag);
    } else {
      message.setNullValue(NullValue.NULL_VALUE);
    }
    return message.build();
  }

  /** The JSON value of a message. */
  static Object plain(Value message) {
    return switch (message.getKindCase()) {
      case STRUCT_VALUE -> {
        Map<String, Object> members = new TreeMap<>();
        message.getStructValue().getFieldsMap().forEach((name, member) -> members.put(name, plain(member)));
        yield members;
      }
      case LIST_VALUE -> {
        List<Object> items = new ArrayList<>();
        message.getListValue().getValuesList().forEach(item -> items.add(plain(item)));
        yield items;
      }
      case STRING_VALUE -> message.getStringValue();
      case NUMBER_VALUE -> message.getNumberValue();
      case BOOL_VALUE -> message.getBoolValue();
      default -> null;
    };
  }
}
