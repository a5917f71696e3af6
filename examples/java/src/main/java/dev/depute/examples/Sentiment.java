package dev.depute.examples;

import com.google.protobuf.ByteString;
import dev.depute.nekte.v1.CapabilityFull;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** Sums of texts by their sentiment: the work of the example, its state and its result. */
record Sentiment(int count, int positive, int negative) {
  private static final Map<String, Integer> SCORES =
      Map.of("wonderful", 4, "excellent", 3, "useful", 2, "bad", -3, "broken", -1, "terrible", -3);
  private static final Map<String, Object> TEXTS = Map.of("type", "array", "items", Map.of("type", "string"));
  private static final Map<String, Object> INPUT =
      Map.of("type", "object", "properties", Map.of("texts", TEXTS), "required", List.of("texts"));
  private static final Map<String, Object> OUTPUT =
      Map.of(
          "type", "object",
          "required", List.of("count", "positive", "negative"),
          "additionalProperties", Map.of("type", "integer"));

  /** The capability as the registry publishes it. */
  static final CapabilityFull CAPABILITY =
      CapabilityFull.newBuilder()
          .setId("sentiment")
          .setCat("nlp")
          .setDesc("Scores texts.")
          .setInputSchema(ByteString.copyFromUtf8(Json.write(INPUT)))
          .setOutputSchema(ByteString.copyFromUtf8(Json.write(OUTPUT)))
          .build();

  /** The texts of an input that fits the capability's schema. */
  static List<String> texts(Object input) {
    return ((List<?>) TokenForm.map(input).get("texts")).stream().map(String.class::cast).toList();
  }

  /** The state of a checkpoint; zero for null. */
  static Sentiment from(Object checkpoint) {
    if (checkpoint == null) return new Sentiment(0, 0, 0);
    Map<String, Object> counts = TokenForm.map(checkpoint);
    return new Sentiment(number(counts, "count"), number(counts, "positive"), number(counts, "negative"));
  }

  private static int number(Map<String, Object> counts, String name) {
    return (int) TokenForm.number(counts, name);
  }

  Sentiment plus(List<String> texts) {
    int up = (int) texts.stream().filter(text -> score(text) > 0).count();
    int down = (int) texts.stream().filter(text -> score(text) < 0).count();
    return new Sentiment(count + texts.size(), positive + up, negative + down);
  }

  private static int score(String text) {
    int sum = 0;
    for (String word : text.toLowerCase(Locale.ROOT).split("[^a-z]+")) sum += SCORES.getOrDefault(word, 0);
    return sum;
  }

  Map<String, Object> document() {
    return Map.of("count", count, "positive", positive, "negative", negative);
  }
}
