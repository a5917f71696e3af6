package depute

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"strings"
	"time"

	"google.golang.org/grpc/credentials"
)

func jwkOf(principal string) map[string]string {
	return map[string]string{"crv": "Ed25519", "kty": "OKP", "x": principal}
}

// Target is the claim `htu`: the public URL of the platform, and the path without query and fragment.
func Target(publicURL, path string) string {
	path, _, _ = strings.Cut(path, "?")
	path, _, _ = strings.Cut(path, "#")
	return strings.TrimRight(publicURL, "/") + path
}

// ArgumentsDigest is the claim `ard`, for a proof of one tool call.
func ArgumentsDigest(arguments any) (string, error) {
	text, err := Canonical(arguments)
	digest := sha256.Sum256(text)
	return base64URL.EncodeToString(digest[:]), err
}

// Proof holds the claims of a holder proof.
type Proof struct {
	Method, Target string
	// Token goes with the request; empty for a proof that names the caller alone.
	Token string
	// ArgumentsDigest binds the proof to one tool call; empty for none.
	ArgumentsDigest string
	Now             time.Time
	// ID is new for each proof, because a proof counts once.
	ID string
}

// Sign returns the proof as a JWS in compact form.
func (p Proof) Sign(key *Key) string {
	header := map[string]any{"alg": "EdDSA", "jwk": jwkOf(key.Principal), "typ": "dpop+jwt"}
	claims := map[string]any{"htm": p.Method, "htu": p.Target, "iat": p.Now.Unix(), "jti": p.ID}
	if p.Token != "" {
		digest := sha256.Sum256([]byte(p.Token))
		claims["ath"] = base64URL.EncodeToString(digest[:])
	}
	if p.ArgumentsDigest != "" {
		claims["ard"] = p.ArgumentsDigest
	}
	text := base64URL.EncodeToString(mustCanonical(header)) + "." + base64URL.EncodeToString(mustCanonical(claims))
	return text + "." + key.Sign([]byte(text))
}

type tokenOfCall struct{}

// WithToken makes the calls under a context present a token.
func WithToken(ctx context.Context, token *Token) context.Context {
	return context.WithValue(ctx, tokenOfCall{}, token.String())
}

// proofs are gRPC call credentials. gRPC requests them for each attempt of a call, so each attempt has a new
// proof.
type proofs struct {
	key       *Key
	publicURL string
}

func (p proofs) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	call, ok := credentials.RequestInfoFromContext(ctx)
	if !ok {
		return nil, errors.New("gRPC has not named the method")
	}
	token, _ := ctx.Value(tokenOfCall{}).(string)
	proof := Proof{Method: "POST", Target: Target(p.publicURL, call.Method), Token: token, Now: time.Now(),
		ID: rand.Text()}
	headers := map[string]string{"dpop": proof.Sign(p.key)}
	if token != "" {
		headers["authorization"] = "DPoP " + token
	}
	return headers, nil
}

// RequireTransportSecurity allows plaintext, which a platform on the loopback speaks.
func (proofs) RequireTransportSecurity() bool { return false }

// secret is the credential of a caller without a key.
type secret string

func (s secret) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(s)}, nil
}

func (secret) RequireTransportSecurity() bool { return false }
