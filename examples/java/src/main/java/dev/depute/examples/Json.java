package dev.depute.examples;

import com.google.gson.Strictness;
import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonToken;
import java.io.IOException;
import java.io.StringReader;
import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Strict JSON and its canonical form (RFC 8785, vectors/canonical-json.md). A value is null, a Boolean, a Number, a
 * String, a List or a Map. Numbers are doubles.
 */
final class Json {
  private static final String NO_FORM = "no_canonical_form";
  private static final int MAX_NESTING = 64;

  private final JsonReader reader;

  private Json(String text) {
    reader = new JsonReader(new StringReader(text));
    reader.setStrictness(Strictness.STRICT);
  }

  /** Reads a text. Throws Refusal for invalid JSON and for values without a canonical form. */
  static Object parse(String text) {
    Json json = new Json(text);
    try {
      // The reader skips a byte order mark, which JSON does not have.
      if (text.startsWith("\ufeff")) throw new Refusal(NO_FORM);
      Object value = json.read(0);
      if (json.reader.peek() != JsonToken.END_DOCUMENT) throw new Refusal(NO_FORM);
      return value;
    } catch (IOException | IllegalStateException | NumberFormatException error) {
      throw new Refusal(NO_FORM);
    }
  }

  private Object read(int nesting) throws IOException {
    JsonToken next = reader.peek();
    boolean nests = next == JsonToken.BEGIN_ARRAY || next == JsonToken.BEGIN_OBJECT;
    if (nests && nesting == MAX_NESTING) throw new Refusal(NO_FORM);
    switch (next) {
      case NULL:
        reader.nextNull();
        return null;
      case BOOLEAN:
        return reader.nextBoolean();
      case NUMBER:
        double number = Double.parseDouble(reader.nextString());
        if (!Double.isFinite(number)) throw new Refusal(NO_FORM);
        return number;
      case STRING:
        return wellFormed(reader.nextString());
      case BEGIN_ARRAY:
        List<Object> items = new ArrayList<>();
        reader.beginArray();
        while (reader.hasNext()) items.add(read(nesting + 1));
        reader.endArray();
        return items;
      default:
        Map<String, Object> members = new TreeMap<>();
        reader.beginObject();
        while (reader.hasNext()) {
          String name = wellFormed(reader.nextName());
          if (members.containsKey(name)) throw new Refusal(NO_FORM);
          members.put(name, read(nesting + 1));
        }
        reader.endObject();
        return members;
    }
  }

  /** The canonical text of a value. */
  static String write(Object value) {
    StringBuilder out = new StringBuilder();
    write(value, out);
    return out.toString();
  }

  private static void write(Object value, StringBuilder out) {
    if (value instanceof Map<?, ?> members) {
      // Strings compare by UTF-16 code units, as the canonical order does.
      String comma = "{";
      for (var member : new TreeMap<>(members).entrySet()) {
        quote((String) member.getKey(), out.append(comma));
        write(member.getValue(), out.append(':'));
        comma = ",";
      }
      out.append(members.isEmpty() ? "{}" : "}");
    } else if (value instanceof List<?> items) {
      String comma = "[";
      for (Object item : items) {
        write(item, out.append(comma));
        comma = ",";
      }
      out.append(items.isEmpty() ? "[]" : "]");
    } else if (value instanceof String text) {
      quote(wellFormed(text), out);
    } else if (value instanceof Number number) {
      out.append(digits(number.doubleValue()));
    } else {
      out.append(value);
    }
  }

  private static void quote(String text, StringBuilder out) {
    out.append('"');
    for (char one : text.toCharArray()) {
      int escape = "\b\f\n\r\t\"\\".indexOf(one);
      if (escape >= 0) out.append('\\').append("bfnrt\"\\".charAt(escape));
      else if (one < ' ') out.append(String.format("\\u%04x", (int) one));
      else out.append(one);
    }
    out.append('"');
  }

  private static String wellFormed(String text) {
    if (text.codePoints().anyMatch(point -> point >= 0xd800 && point <= 0xdfff)) throw new Refusal(NO_FORM);
    return text;
  }

  /** ECMAScript's Number.prototype.toString. */
  private static String digits(double number) {
    if (number == 0) return "0";
    if (number < 0) return "-" + digits(-number);
    BigDecimal shortest = shortest(number);
    String digits = shortest.unscaledValue().toString();
    int n = digits.length();
    int e = n - shortest.scale();
    if (n <= e && e <= 21) return digits + "0".repeat(e - n);
    if (0 < e && e <= 21) return digits.substring(0, e) + "." + digits.substring(e);
    if (-6 < e && e <= 0) return "0." + "0".repeat(-e) + digits;
    String rest = n == 1 ? "" : "." + digits.substring(1);
    return digits.charAt(0) + rest + (e > 0 ? "e+" : "e-") + Math.abs(e - 1);
  }

  /** The fewest decimal digits that give the same double. Double.toString before Java 19 may return more. */
  private static BigDecimal shortest(double number) {
    BigDecimal exact = new BigDecimal(number);
    for (int precision = 1; ; precision++) {
      // The nearest decimal first. At a power of two only the other one may give the same double.
      for (RoundingMode mode : List.of(RoundingMode.HALF_EVEN, RoundingMode.DOWN, RoundingMode.UP)) {
        BigDecimal rounded = exact.round(new MathContext(precision, mode));
        if (rounded.doubleValue() == number) return rounded.stripTrailingZeros();
      }
    }
  }
}
