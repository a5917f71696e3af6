package dev.depute.examples;

/** A token, proof or text that the pages under vectors/ refuse. */
final class Refusal extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** The denial in lower case, such as {@code malformed_token}. */
  final String denial;

  /** The member at fault; empty where the page names none. */
  final String fault;

  Refusal(String denial, String fault) {
    super(fault.isEmpty() ? denial : denial + ": " + fault);
    this.denial = denial;
    this.fault = fault;
  }

  Refusal(String denial) {
    this(denial, "");
  }
}
