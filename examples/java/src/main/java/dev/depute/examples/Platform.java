package dev.depute.examples;

import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.ErrorInfo;
import io.grpc.CallCredentials;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ClientInterceptors;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.protobuf.StatusProto;
import java.net.URI;
import java.time.Duration;
import java.util.Iterator;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import java.util.function.Supplier;

/** The connection to a platform: a proof for each attempt, a deadline for each unary call, retries, reasons. */
final class Platform implements AutoCloseable {
  private static final String DOMAIN = "depute.dev";
  private static final Duration ATTEMPT = Duration.ofSeconds(10);
  private static final Duration RETRY_FOR = Duration.ofSeconds(30);

  /** Codes of a connection that broke, if the platform gave no reason itself. */
  private static final Set<Status.Code> BROKEN =
      Set.of(Status.Code.INTERNAL, Status.Code.UNKNOWN, Status.Code.CANCELLED, Status.Code.DEADLINE_EXCEEDED);

  private final String url;
  private final ManagedChannel connection;

  /** The channel that authenticates calls with the key. Credentials of a stub replace the key's credentials. */
  final Channel channel;

  /**
   * @param url public address of the platform; http is plaintext, https is TLS
   * @param key the key that names the caller
   */
  Platform(String url, Keys key) {
    this.url = url;
    URI address = URI.create(url);
    boolean isTls = address.getScheme().equals("https");
    int port = address.getPort() >= 0 ? address.getPort() : isTls ? 443 : 80;
    NettyChannelBuilder builder = NettyChannelBuilder.forAddress(address.getHost(), port);
    if (!isTls) builder.usePlaintext();
    // A proof counts once, so the transport must not send a call again.
    connection =
        builder
            .disableRetry()
            .keepAliveTime(20, TimeUnit.SECONDS)
            .keepAliveTimeout(10, TimeUnit.SECONDS)
            .build();
    channel = ClientInterceptors.intercept(connection, new Defaults(holder(key, null)));
  }

  /** The value of an environment variable; an empty one counts as absent. */
  static String setting(String name, String otherwise) {
    String value = System.getenv(name);
    return value == null || value.isEmpty() ? otherwise : value;
  }

  /** Credentials that make a new proof for each attempt. {@code token} is presented with it; null for none. */
  CallCredentials holder(Keys key, String token) {
    return new Headers(
        path -> {
          Metadata headers = new Metadata();
          headers.put(header("dpop"), Proof.create(key, "POST", Targets.of(url, path), token));
          if (token != null) headers.put(header("authorization"), "DPoP " + token);
          return headers;
        });
  }

  /** Credentials of a secret; without one the call has no credentials. */
  CallCredentials bearer(String secret) {
    return new Headers(
        path -> {
          Metadata headers = new Metadata();
          if (!secret.isEmpty()) headers.put(header("authorization"), "Bearer " + secret);
          return headers;
        });
  }

  private static Metadata.Key<String> header(String name) {
    return Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER);
  }

  /** Makes a unary call, and repeats it while the connection is broken. The request keeps its request id. */
  <T> T retry(Supplier<T> call) {
    long until = System.nanoTime() + RETRY_FOR.toNanos();
    for (Backoff backoff = new Backoff(); ; ) {
      try {
        return call.get();
      } catch (StatusRuntimeException error) {
        if (!isRetryable(error) || System.nanoTime() > until) throw error;
        backoff.pause();
        connection.resetConnectBackoff();
      }
    }
  }

  /**
   * Reads a stream, and opens the stream again when it ends or breaks.
   *
   * @param open opens the stream after the last message that was read
   * @param each reads one message, and returns whether to continue
   */
  <T> void follow(Supplier<Iterator<T>> open, Predicate<T> each) {
    Backoff backoff = new Backoff();
    while (true) {
      try {
        for (Iterator<T> stream = open.get(); stream.hasNext(); backoff = new Backoff()) {
          if (!each.test(stream.next())) return;
        }
      } catch (StatusRuntimeException error) {
        if (!isRetryable(error)) throw error;
      }
      backoff.pause();
      connection.resetConnectBackoff();
    }
  }

  /** The reason for which the platform refuses a call; empty for a call that it accepts. */
  String refusalOf(Supplier<?> call) {
    try {
      retry(call);
      return "";
    } catch (StatusRuntimeException error) {
      return reasonOf(error);
    }
  }

  /** Whether a new attempt may succeed: the platform is unavailable, or did not answer at all. */
  static boolean isRetryable(StatusRuntimeException error) {
    Status.Code code = error.getStatus().getCode();
    return code == Status.Code.UNAVAILABLE || (BROKEN.contains(code) && reasonOf(error).isEmpty());
  }

  /** The platform's reason of an error; empty for any other error. */
  static String reasonOf(Throwable error) {
    com.google.rpc.Status status = StatusProto.fromThrowable(error);
    if (status == null) return "";
    for (com.google.protobuf.Any detail : status.getDetailsList()) {
      try {
        ErrorInfo info = detail.is(ErrorInfo.class) ? detail.unpack(ErrorInfo.class) : ErrorInfo.getDefaultInstance();
        if (info.getDomain().equals(DOMAIN)) return info.getReason();
      } catch (InvalidProtocolBufferException invalid) {
        return "";
      }
    }
    return "";
  }

  @Override
  public void close() {
    connection.shutdownNow();
  }

  /** Growing waits, from 100 milliseconds to 2 seconds. */
  private static final class Backoff {
    private long millis = 100;

    void pause() {
      try {
        Thread.sleep(millis);
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
        throw Status.CANCELLED.withCause(interrupted).asRuntimeException();
      }
      millis = Math.min(2 * millis, 2_000);
    }
  }

  private interface HeadersOf {
    Metadata path(String path);
  }

  /** gRPC applies credentials to each attempt, with the method that it is for. */
  private static final class Headers extends CallCredentials {
    private final HeadersOf headers;

    Headers(HeadersOf headers) {
      this.headers = headers;
    }

    @Override
    public void applyRequestMetadata(RequestInfo request, Executor executor, MetadataApplier applier) {
      executor.execute(
          () -> {
            try {
              applier.apply(headers.path("/" + request.getMethodDescriptor().getFullMethodName()));
            } catch (RuntimeException error) {
              applier.fail(Status.UNAUTHENTICATED.withDescription("no proof was made").withCause(error));
            }
          });
    }
  }

  /** The credentials and the deadline of calls that set none. */
  private record Defaults(CallCredentials credentials) implements ClientInterceptor {
    @Override
    public <Q, A> ClientCall<Q, A> interceptCall(MethodDescriptor<Q, A> method, CallOptions options, Channel next) {
      CallOptions full = options.getCredentials() == null ? options.withCallCredentials(credentials) : options;
      boolean isUnary = method.getType() == MethodDescriptor.MethodType.UNARY;
      if (isUnary && full.getDeadline() == null) full = full.withDeadlineAfter(ATTEMPT);
      return next.newCall(method, full);
    }
  }
}
