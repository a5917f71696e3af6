package depute

import (
	"crypto/sha256"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
)

const (
	maxProofChars = 4096
	proofWindow   = time.Minute
	maxSkew       = 30 * time.Second
	maxSeconds    = 1e12
)

var proofID = regexp.MustCompile(`^[!-~]{8,128}$`)

// Call is a call as its verifier received it.
type Call struct {
	Method, Target string
	Now            time.Time
	// Principal is the expected signer; empty for any.
	Principal string
	// Token is the presented token, and ArgumentsDigest that of the call; empty for none.
	Token, ArgumentsDigest string
}

// VerifiedProof is a valid proof.
type VerifiedProof struct {
	ID, Principal, Thumbprint string
	IssuedAt, ExpiresAt       time.Time
}

func invalidProof(fault string) error { return Denial{"invalid_proof", fault} }

// VerifyProof checks a proof. The Detail of a Denial `invalid_proof` is the fault. (vectors/holder-proofs.md, `check`)
func VerifyProof(proof string, call Call) (VerifiedProof, error) {
	if proof == "" {
		return VerifiedProof{}, Denial{"proof_required", "the call has no proof"}
	}
	if len(utf16.Encode([]rune(proof))) > maxProofChars {
		return VerifiedProof{}, invalidProof("size")
	}
	parts := strings.Split(proof, ".")
	if len(parts) != 3 {
		return VerifiedProof{}, invalidProof("form")
	}
	header, isHeader := readPart(parts[0])
	claims, isClaims := readPart(parts[1])
	if !isHeader || !isClaims {
		return VerifiedProof{}, invalidProof("form")
	}
	principal, key, ok := signerOf(header)
	if !ok {
		return VerifiedProof{}, invalidProof("header")
	}
	if call.Principal != "" && call.Principal != principal {
		return VerifiedProof{}, invalidProof("jwk")
	}
	verified, err := call.checkClaims(claims)
	if err != nil {
		return VerifiedProof{}, err
	}
	signature, err := DecodeBase64URL(parts[2])
	if err != nil || !Verify(key, []byte(parts[0]+"."+parts[1]), signature) {
		return VerifiedProof{}, invalidProof("signature")
	}
	verified.Principal, verified.Thumbprint = principal, Thumbprint(principal)
	return verified, nil
}

func (call Call) checkClaims(claims map[string]any) (VerifiedProof, error) {
	target, isText := claims["htu"].(string)
	id, _ := claims["jti"].(string)
	issued, isNumber := claims["iat"].(float64)
	isWhole := isNumber && issued == math.Trunc(issued) && math.Abs(issued) < maxSeconds
	issuedAt := time.Unix(int64(issued), 0)
	age := call.Now.Sub(issuedAt)
	tokenDigest := ""
	if call.Token != "" {
		digest := sha256.Sum256([]byte(call.Token))
		tokenDigest = base64URL.EncodeToString(digest[:])
	}
	_, opensSession := claims["epk"]
	for _, one := range []struct {
		claim  string
		isGood bool
	}{
		{"htm", claims["htm"] == call.Method},
		{"htu", isText && isSameTarget(target, call.Target)},
		{"jti", proofID.MatchString(id)},
		{"iat", isWhole && -maxSkew <= age && age <= proofWindow},
		{"ath", isClaim(claims, "ath", tokenDigest)},
		{"ard", isClaim(claims, "ard", call.ArgumentsDigest)},
		{"epk", !opensSession},
	} {
		if !one.isGood {
			return VerifiedProof{}, invalidProof(one.claim)
		}
	}
	return VerifiedProof{ID: id, IssuedAt: issuedAt, ExpiresAt: issuedAt.Add(proofWindow)}, nil
}

// isClaim tells whether a claim has the expected text. Without one, the claim is absent.
func isClaim(claims map[string]any, name, expected string) bool {
	value, isPresent := claims[name]
	return isPresent == (expected != "") && (!isPresent || value == expected)
}

func readPart(part string) (object map[string]any, ok bool) {
	text, err := DecodeBase64URL(part)
	if err != nil {
		return nil, false
	}
	value, err := parseStrict(text, maxDepth)
	if err != nil {
		return nil, false
	}
	object, ok = value.(map[string]any)
	return object, ok
}

// signerOf reads a header, which has exactly `typ`, `alg` and a public key.
func signerOf(header map[string]any) (principal string, key []byte, ok bool) {
	jwk, ok := header["jwk"].(map[string]any)
	if !ok || len(header) != 3 || header["typ"] != "dpop+jwt" || !isAlgorithm(header["alg"]) {
		return "", nil, false
	}
	if jwk["kty"] != "OKP" || jwk["crv"] != "Ed25519" {
		return "", nil, false
	}
	for name, value := range jwk {
		if !isKeyMember(name, value) {
			return "", nil, false
		}
	}
	principal, ok = jwk["x"].(string)
	key, err := ParsePrincipal(principal)
	return principal, key, ok && err == nil
}

func isAlgorithm(value any) bool { return value == "EdDSA" || value == "Ed25519" }

func isKeyMember(name string, value any) bool {
	switch name {
	case "kty", "crv", "x":
		return true
	case "kid":
		_, isText := value.(string)
		return isText
	case "use":
		return value == "sig"
	case "alg":
		return isAlgorithm(value)
	case "key_ops":
		operations, isArray := value.([]any)
		return isArray && !slices.ContainsFunc(operations, func(one any) bool { return one != "verify" })
	case "ext":
		_, isBoolean := value.(bool)
		return isBoolean
	}
	return false
}

// ProofMemory holds the accepted proofs of a verifier, because each counts once. (`check-in-order`)
type ProofMemory struct{ expiry map[[2]string]time.Time }

// Accept refuses a proof that was accepted before and has not expired.
func (m *ProofMemory) Accept(proof VerifiedProof, now time.Time) error {
	for key, expiresAt := range m.expiry {
		if now.After(expiresAt) {
			delete(m.expiry, key)
		}
	}
	key := [2]string{proof.Principal, proof.ID}
	if _, isUsed := m.expiry[key]; isUsed {
		return Denial{"replayed_proof", fmt.Sprintf("the proof %s was accepted before", proof.ID)}
	}
	if m.expiry == nil {
		m.expiry = map[[2]string]time.Time{}
	}
	m.expiry[key] = proof.ExpiresAt
	return nil
}
