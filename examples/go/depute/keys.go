// Package depute contains the parts that a Go client of Depute needs beside the generated code: keys, tokens,
// proofs, retries and work.
package depute

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

var base64URL = base64.RawURLEncoding.Strict()

// Key is an Ed25519 key. Its principal is the public half in base64url.
type Key struct {
	private   ed25519.PrivateKey
	Principal string
}

// NewKey makes a key of a seed of 32 bytes.
func NewKey(seed []byte) (*Key, error) {
	if len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("a seed has %d bytes, not %d", ed25519.SeedSize, len(seed))
	}
	private := ed25519.NewKeyFromSeed(seed)
	return &Key{private, base64URL.EncodeToString(private.Public().(ed25519.PublicKey))}, nil
}

// LoadKey reads the seed from a file. If the file does not exist, LoadKey creates the file, readable only by
// the user.
func LoadKey(path string) (*Key, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		seed := make([]byte, ed25519.SeedSize)
		rand.Read(seed)
		_, err = fmt.Fprintln(file, base64URL.EncodeToString(seed))
		err = errors.Join(err, file.Close())
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	seed, err := DecodeBase64URL(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("%s is not a key: %w", path, err)
	}
	return NewKey(seed)
}

// Sign returns the 64 bytes of a signature in base64url.
func (k *Key) Sign(message []byte) string {
	return base64URL.EncodeToString(ed25519.Sign(k.private, message))
}

// DecodeBase64URL decodes base64url without padding. A byte sequence has one spelling only.
func DecodeBase64URL(text string) ([]byte, error) {
	// The decoder of the standard library passes over line breaks.
	if strings.ContainsAny(text, "\r\n") {
		return nil, Denial{"malformed_token", "base64url has no line breaks"}
	}
	data, err := base64URL.DecodeString(text)
	if err != nil {
		return nil, Denial{"malformed_token", err.Error()}
	}
	return data, nil
}

// ParsePrincipal returns the public key of a principal.
func ParsePrincipal(principal string) (ed25519.PublicKey, error) {
	key, err := DecodeBase64URL(principal)
	if err != nil {
		return nil, err
	}
	if !isAcceptableKey(key) {
		return nil, Denial{"malformed_token", "not a principal"}
	}
	return key, nil
}

// Thumbprint is the RFC 7638 thumbprint of a principal's key.
func Thumbprint(principal string) string {
	digest := sha256.Sum256(mustCanonical(jwkOf(principal)))
	return base64URL.EncodeToString(digest[:])
}

// Verify tells whether a signature is valid by the rule of vectors/keys-and-principals.md. crypto/ed25519 computes the
// equation without the cofactor, and refuses S of L or more.
func Verify(key ed25519.PublicKey, message, signature []byte) bool {
	return isAcceptableKey(key) && len(signature) == ed25519.SignatureSize && !isSmallOrder(signature[:32]) &&
		ed25519.Verify(key, message, signature)
}

// isAcceptableKey tells whether a key has y below p = 2^255 - 19, and is not of small order.
func isAcceptableKey(key []byte) bool {
	return len(key) == ed25519.PublicKeySize && !isSmallOrder(key) && isBelowField(key)
}

func isBelowField(key []byte) bool {
	if key[31]&0x7f != 0x7f {
		return true
	}
	for _, digit := range key[1:31] {
		if digit != 0xff {
			return true
		}
	}
	return key[0] < 0xed
}

// isSmallOrder reports whether 32 bytes encode a point of small order, with any sign bit.
func isSmallOrder(point []byte) bool {
	text := hex.EncodeToString(point[:31])
	switch last := point[31] & 0x7f; text {
	case strings.Repeat("00", 31), "01" + strings.Repeat("00", 30):
		return last == 0
	case "ec" + strings.Repeat("ff", 30), "ed" + strings.Repeat("ff", 30), "ee" + strings.Repeat("ff", 30):
		return last == 0x7f
	case "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc":
		return last == 0x05
	case "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03":
		return last == 0x7a
	}
	return false
}
