package dev.depute.examples;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Addresses in proofs: {@code target} and {@code same-target} of vectors/holder-proofs.md. */
final class Targets {
  private static final Pattern ADDRESS =
      Pattern.compile("(?i)(https?)://(\\[[0-9a-f:.]+\\]|[^:@/?#\\[\\]]+)(?::([0-9]{0,5}))?([/][^?#]*)?([?#].*)?");
  private static final Pattern PRINTABLE = Pattern.compile("[!-\\[\\]-~]+");
  private static final Pattern ESCAPE = Pattern.compile("%[0-9A-Fa-f]{2}");

  private Targets() {}

  /** The claim {@code htu}: the public address of the platform and the path of the call. */
  static String of(String publicUrl, String path) {
    return publicUrl.replaceAll("/+$", "") + path.split("[?#]", 2)[0];
  }

  /** Whether two addresses are the same target, even if they are spelled differently. */
  static boolean isSame(String one, String other) {
    if (one.equals(other)) return true;
    String form = normal(one);
    return form != null && form.equals(normal(other));
  }

  private static String normal(String address) {
    Matcher match = ADDRESS.matcher(address);
    if (!PRINTABLE.matcher(address).matches() || !match.matches()) return null;
    String scheme = match.group(1).toLowerCase(Locale.ROOT);
    String port = match.group(3) == null || match.group(3).isEmpty() ? "" : ":" + Integer.parseInt(match.group(3));
    if (port.length() > 1 && Integer.parseInt(port.substring(1)) > 65_535) return null;
    if (port.equals(scheme.equals("http") ? ":80" : ":443")) port = "";
    String path = match.group(4) == null ? "" : match.group(4);
    String unescaped = ESCAPE.matcher(path).replaceAll(escape -> Matcher.quoteReplacement(unescape(escape.group())));
    return scheme + "://" + match.group(2).toLowerCase(Locale.ROOT) + port + withoutDots(unescaped);
  }

  private static String unescape(String escape) {
    String character = String.valueOf((char) Integer.parseInt(escape.substring(1), 16));
    return character.matches("[A-Za-z0-9._~-]") ? character : escape.toUpperCase(Locale.ROOT);
  }

  /** RFC 3986 section 5.2.4. */
  private static String withoutDots(String path) {
    List<String> kept = new ArrayList<>();
    String[] parts = path.split("/", -1);
    for (int i = 1; i < parts.length; i++) {
      boolean isDots = parts[i].equals(".") || parts[i].equals("..");
      if (parts[i].equals("..") && !kept.isEmpty()) kept.remove(kept.size() - 1);
      if (!isDots) kept.add(parts[i]);
      else if (i == parts.length - 1) kept.add("");
    }
    return "/" + String.join("/", kept);
  }
}
