package dev.depute.examples;

import java.math.BigInteger;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Resources and patterns of resources: {@code match} and {@code subset} of vectors/tokens.md. */
record Patterns(boolean leading, boolean trailing, List<String> segments, boolean isUniversal) {
  /** The steps that all comparisons of one token may take. */
  static final int MAX_STEPS = 50_000;

  private static final int MAX_LENGTH = 1024;
  private static final Pattern FORBIDDEN =
      Pattern.compile("[\\x00-\\x1f\\x7f\\\\]|%2[eEfF]|%5[cC]|^ | $|^$", Pattern.DOTALL);
  private static final Pattern ORIGIN = Pattern.compile("^[A-Za-z][A-Za-z0-9+.-]*://[^/]*");

  /** Reads a pattern: {@code *} is one segment, {@code **} any number. Throws Refusal. */
  static Patterns pattern(String text, String namespace) {
    Patterns parsed = parse(text, namespace);
    boolean isPartial = parsed.segments.stream().anyMatch(one -> one.contains("*") && !isWildcard(one));
    if (isPartial) throw new Refusal("invalid_resource", "partial wildcard");
    return parsed;
  }

  /** Reads a requested resource: it has no wildcard, or is {@code *} alone. Throws Refusal. */
  static Patterns resource(String text, String namespace) {
    if (text.contains("*") && !text.equals("*")) throw new Refusal("invalid_resource", "wildcard");
    return parse(text, namespace);
  }

  private static Patterns parse(String text, String namespace) {
    boolean hasSurrogate = text.codePoints().anyMatch(point -> point >= 0xd800 && point <= 0xdfff);
    if (text.length() > MAX_LENGTH || hasSurrogate || FORBIDDEN.matcher(text).find()) {
      throw new Refusal("invalid_resource");
    }
    List<String> parts = new ArrayList<>();
    Matcher origin = ORIGIN.matcher(text);
    boolean hasOrigin = (namespace.equals("web") || namespace.contains(":")) && origin.find();
    if (hasOrigin && origin.group().endsWith("://")) throw new Refusal("invalid_resource", "no authority");
    parts.addAll(List.of(text.substring(hasOrigin ? origin.end() : 0).split("/", -1)));
    boolean leading = !hasOrigin && parts.get(0).isEmpty();
    if (hasOrigin) parts.set(0, origin.group());
    else if (leading) parts.remove(0);
    boolean trailing = parts.size() > 1 && parts.get(parts.size() - 1).isEmpty();
    if (trailing || text.equals("/")) parts.remove(parts.size() - 1);
    if (parts.contains("") || parts.contains(".") || parts.contains("..")) {
      throw new Refusal("invalid_resource", "segment");
    }
    return new Patterns(leading, trailing, List.copyOf(parts), text.equals("*") || text.equals("**"));
  }

  private static boolean isWildcard(String segment) {
    return segment.equals("*") || segment.equals("**");
  }

  /** Whether this pattern matches a resource. */
  boolean matches(Patterns resource) {
    if (isUniversal) return true;
    if (resource.segments.equals(List.of("*"))) return false;
    if (leading != resource.leading || trailing != resource.trailing) return false;
    States states = new States(segments);
    BigInteger reached = states.close(BigInteger.ONE);
    for (String segment : resource.segments) reached = states.step(reached, segment);
    return states.isEnd(reached);
  }

  /**
   * Whether this pattern matches every resource that a child pattern matches. The walk visits each position in
   * the child, together with the set of positions that this pattern can have there. {@code steps[0]} is the
   * number of remaining steps. The result is false when no steps remain.
   */
  boolean contains(Patterns child, int[] steps) {
    if (isUniversal) return true;
    if (child.isUniversal || leading != child.leading || trailing != child.trailing) return false;
    States states = new States(segments);
    record Place(int at, BigInteger reached, boolean hasSegment) {}
    Set<Place> seen = new HashSet<>();
    ArrayDeque<Place> todo = new ArrayDeque<>(List.of(new Place(0, states.close(BigInteger.ONE), false)));
    while (!todo.isEmpty()) {
      Place place = todo.pop();
      if (!seen.add(place)) continue;
      if ((steps[0] -= 1 + segments.size() / 32) < 0) return false;
      if (place.at == child.segments.size()) {
        // Only "/" has no segment.
        boolean exists = place.hasSegment || (child.leading && !child.trailing);
        if (exists && !states.isEnd(place.reached)) return false;
        continue;
      }
      String segment = child.segments.get(place.at);
      if (segment.equals("**")) {
        todo.push(new Place(place.at + 1, place.reached, place.hasSegment));
        todo.push(new Place(place.at, states.step(place.reached, ""), true));
      } else {
        // No literal equals the segment that a wildcard stands for.
        String taken = segment.equals("*") ? "" : segment;
        todo.push(new Place(place.at + 1, states.step(place.reached, taken), true));
      }
    }
    return true;
  }

  /** Whether a capability is a subset of another one. Steps as in {@link #contains}. */
  static boolean isSubset(Map<String, Object> child, Map<String, Object> parent, int[] steps) {
    String namespace = (String) child.get("namespace");
    if (!namespace.equals(parent.get("namespace")) || !child.get("action").equals(parent.get("action"))) return false;
    try {
      Patterns inner = pattern((String) child.get("resource"), namespace);
      return pattern((String) parent.get("resource"), namespace).contains(inner, steps);
    } catch (Refusal refusal) {
      return false;
    }
  }

  /** The places that a pattern may have reached, as bits. */
  private record States(List<String> segments) {
    /** {@code **} may take no segment. */
    BigInteger close(BigInteger places) {
      BigInteger closed = places;
      for (int at = 0; at < segments.size(); at++) {
        if (closed.testBit(at) && segments.get(at).equals("**")) closed = closed.setBit(at + 1);
      }
      return closed;
    }

    BigInteger step(BigInteger places, String segment) {
      BigInteger next = BigInteger.ZERO;
      for (int at = 0; at < segments.size(); at++) {
        if (!places.testBit(at)) continue;
        String own = segments.get(at);
        if (own.equals("**")) next = next.setBit(at);
        else if (own.equals("*") || own.equals(segment)) next = next.setBit(at + 1);
      }
      return close(next);
    }

    boolean isEnd(BigInteger places) {
      return places.testBit(segments.size());
    }
  }
}
