package depute

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const maxLifetime = 24 * time.Hour

// Revocation is a signed entry that revokes one block of a token. Scope is `block` or `chain`.
type Revocation struct {
	RevocationID string `json:"revocationId"`
	RevokedBy    string `json:"revokedBy"`
	RevokedAt    string `json:"revokedAt"`
	Scope        string `json:"scope"`
	Signature    string `json:"signature,omitzero"`
}

// Context contains the facts against which a verifier checks a token. Members with zero values are not
// compared.
type Context struct {
	TrustedRoots []string
	Now          time.Time
	// SpentMicrocents is the spend of each block, by revocation id.
	SpentMicrocents map[string]int64
	Revocations     []Revocation
	// Request is the requested capability; nil verifies the token alone.
	Request *Capability
	// ContractID is the contract of the task, and RequiredCapabilities its pairs `namespace:action`.
	ContractID           string
	RequiredCapabilities []string
	// SubContracts are pairs of a recorded part of a contract, and the contract.
	SubContracts [][2]string
	// MaxChainDepth is the verifier's own bound; nil for none.
	MaxChainDepth *int64
}

// Scope contains the rights and limits that a verified token grants to its holder.
type Scope struct {
	Capabilities              []Capability
	RemainingBudgetMicrocents int64
	ChainDepth, MaxChainDepth int64
	ContractID, DelegationID  string
	Issuer, Holder            string
	ExpiresAt                 time.Time
}

// VerifyToken verifies a token that comes without a holder proof. (vectors/tokens.md, `verify`)
func VerifyToken(text string, context Context) (Scope, error) {
	token, err := ParseToken(text)
	if err != nil {
		return Scope{}, err
	}
	ids := token.RevocationIDs()
	if err := token.checkRevocations(ids, context.Revocations); err != nil {
		return Scope{}, err
	}
	if err := token.checkSignatures(context.TrustedRoots); err != nil {
		return Scope{}, err
	}
	levels, err := token.levels(context.SubContracts)
	if err != nil {
		return Scope{}, err
	}
	last := levels[len(levels)-1]
	if most := context.MaxChainDepth; most != nil && last.depth > *most {
		return Scope{}, Denial{"chain_depth_exceeded", "the verifier's bound"}
	}
	if err := token.checkTimes(context.Now, levels); err != nil {
		return Scope{}, err
	}
	rest := int64(maxCount)
	for index, one := range levels {
		rest = min(rest, one.budget-context.SpentMicrocents[ids[index]])
	}
	if rest <= 0 {
		return Scope{}, Denial{"budget_exceeded", "the budget of a block is spent"}
	}
	if err := last.checkContract(context); err != nil {
		return Scope{}, err
	}
	if context.Request != nil {
		if err := last.checkRequest(*context.Request); err != nil {
			return Scope{}, err
		}
	}
	return Scope{last.capabilities, rest, last.depth, last.depth + last.remaining, last.ContractID, last.DelegationID,
		token.Authority.Issuer, last.Delegatee, last.expiresAt}, nil
}

// signers are the principals that sign the blocks.
func (t *Token) signers() []string {
	signers := []string{t.Authority.Issuer}
	for _, block := range t.Attenuations {
		signers = append(signers, block.Attenuator)
	}
	return signers
}

// checkRevocations is step 2 of `verify`. A revocation counts if its signer signed the block or a block above, or is
// the block's delegatee.
func (t *Token) checkRevocations(ids []string, entries []Revocation) error {
	signers := t.signers()
	for index, id := range ids {
		holder := t.Authority.Delegatee
		if index > 0 {
			holder = t.Attenuations[index-1].Delegatee
		}
		for _, entry := range entries {
			isEntitled := entry.RevokedBy == holder || slices.Contains(signers[:index+1], entry.RevokedBy)
			if entry.RevocationID == id && isEntitled && entry.isSigned() {
				return Denial{"revoked", "block " + id}
			}
		}
	}
	return nil
}

func (r Revocation) isSigned() bool {
	text := r.Signature
	r.Signature = ""
	return isSignedBy(r.RevokedBy, r, text)
}

// isSignedBy tells whether a principal signed the digest of a value.
func isSignedBy(principal string, value any, text string) bool {
	key, errKey := ParsePrincipal(principal)
	signature, errText := DecodeBase64URL(text)
	digest, errDigest := Digest(value)
	return errKey == nil && errText == nil && errDigest == nil && Verify(key, digest, signature)
}

// checkSignatures is step 3 of `verify`: each block is signed by the principal that it names, and the first by a
// trusted root.
func (t *Token) checkSignatures(trustedRoots []string) error {
	signers := t.signers()
	if len(t.Signatures) != len(signers) || !slices.Contains(trustedRoots, t.Authority.Issuer) {
		return Denial{"invalid_signature", "a signature is missing, or the issuer is not trusted"}
	}
	for index, signer := range signers {
		entry := t.Signatures[index]
		var covers any = "authority"
		if index > 0 {
			covers = float64(index - 1)
		}
		signed := &Token{Authority: t.Authority, Attenuations: t.Attenuations[:index]}
		if entry.Signer != signer || entry.Covers != covers || !isSignedBy(signer, signed.signedValue(), entry.Signature) {
			return Denial{"invalid_signature", fmt.Sprintf("signatures[%d]", index)}
		}
	}
	return nil
}

// checkTimes is step 6 of `verify`: the token is not from the future, lives at most 24 hours, and has not expired.
func (t *Token) checkTimes(now time.Time, levels []level) error {
	issuedAt, err := parseTime(t.Authority.IssuedAt)
	if err != nil {
		return err
	}
	if issuedAt.Sub(now) > maxSkew || levels[0].expiresAt.Sub(issuedAt) > maxLifetime {
		return Denial{"malformed_token", "the token is from the future, or its lifetime exceeds 24 hours"}
	}
	if expiresAt := levels[len(levels)-1].expiresAt; now.After(expiresAt) {
		return Denial{"expired", "the token expired at " + expiresAt.Format(timeLayout)}
	}
	return nil
}

// checkContract is step 8 of `verify`: the token is for the contract, and covers the capabilities that the contract
// requires.
func (last level) checkContract(context Context) error {
	if context.ContractID != "" && context.ContractID != last.ContractID {
		return Denial{"contract_mismatch", last.ContractID}
	}
	for _, pair := range context.RequiredCapabilities {
		cut := max(0, strings.LastIndex(pair, ":"))
		isPair := func(one Capability) bool { return one.Namespace == pair[:cut] && ":"+one.Action == pair[cut:] }
		if !slices.ContainsFunc(last.capabilities, isPair) {
			return Denial{"contract_mismatch", pair + " is not granted"}
		}
	}
	return nil
}

// checkRequest is step 9 of `verify`: a capability of the last block allows the request.
func (last level) checkRequest(request Capability) error {
	if _, err := parseResource(request.Resource, request.Namespace); err != nil {
		return err
	}
	for _, one := range last.capabilities {
		if one.Namespace != request.Namespace || one.Action != request.Action {
			continue
		}
		if isMatch, err := matches(one.Resource, request.Resource, request.Namespace); err == nil && isMatch {
			return nil
		}
	}
	return Denial{"capability_not_granted", request.Resource}
}
