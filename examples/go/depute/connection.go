package depute

import (
	"context"
	"crypto/tls"
	"math/rand/v2"
	"net/url"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

const (
	// attemptTimeout is the deadline of an attempt of a call whose context has none.
	attemptTimeout = 10 * time.Second
	// retryFor is the time in which a call is repeated while the platform is unreachable.
	retryFor     = 30 * time.Second
	firstBackoff = 100 * time.Millisecond
	mostBackoff  = 2 * time.Second
)

func dial(publicURL string, options ...grpc.DialOption) (*grpc.ClientConn, error) {
	address, err := url.Parse(publicURL)
	if err != nil {
		return nil, err
	}
	transport, port := insecure.NewCredentials(), "80"
	if address.Scheme == "https" {
		transport, port = credentials.NewTLS(&tls.Config{}), "443"
	}
	host := address.Host
	if address.Port() == "" {
		host += ":" + port
	}
	reconnect := backoff.Config{BaseDelay: firstBackoff, Multiplier: 2, Jitter: 0.2, MaxDelay: mostBackoff}
	return grpc.NewClient("dns:///"+host, append(options,
		grpc.WithTransportCredentials(transport),
		grpc.WithUnaryInterceptor(retry),
		// A retry policy of a service config would come on top of this package's.
		grpc.WithDisableRetry(),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: reconnect, MinConnectTimeout: 5 * time.Second}),
		// A ping finds a dead connection below a silent stream.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 10 * time.Second}),
	)...)
}

// retry repeats a unary call while the platform is unreachable. The request keeps its request id, so it counts once.
func retry(ctx context.Context, method string, request, answer any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker,
	options ...grpc.CallOption) error {
	until := time.Now().Add(retryFor)
	for wait := firstBackoff; ; wait = min(2*wait, mostBackoff) {
		err := invokeOnce(ctx, method, request, answer, conn, invoke, options)
		if status.Code(err) != codes.Unavailable || time.Now().After(until) || !sleep(ctx, wait) {
			return err
		}
	}
}

func invokeOnce(ctx context.Context, method string, request, answer any, conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, options []grpc.CallOption) error {
	if _, hasDeadline := ctx.Deadline(); !hasDeadline {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, attemptTimeout)
		defer cancel()
	}
	return invoke(ctx, method, request, answer, conn, options...)
}

// sleep waits for a random duration up to the given one, so that many clients do not return at once. It returns
// false when the context ends first.
func sleep(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(time.Duration((0.5 + rand.Float64()/2) * float64(wait)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
