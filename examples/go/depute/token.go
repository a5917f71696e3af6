package depute

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf16"

	delegateosv0 "github.com/depute/depute/gen/go/delegateos/v0"
)

const (
	tokenFormat     = "delegateos-sjt-v1"
	rootParent      = "del_000000000000"
	maxTokenChars   = 16_000
	maxAttenuations = 32
	maxCapabilities = 64
	maxCount        = 1<<53 - 1
)

// Denial is the refusal of a token or a proof: a DenialType in lower case, and the fault in words.
type Denial struct{ Denial, Detail string }

func (d Denial) Error() string { return d.Denial + ": " + d.Detail }

// Capability is a right to an action on the resources of a pattern: `*` is one segment, `**` any number.
type Capability struct {
	Namespace string `json:"namespace"`
	Action    string `json:"action"`
	Resource  string `json:"resource"`
}

// Authority is the first block of a token.
type Authority struct {
	Issuer              string       `json:"issuer"`
	Delegatee           string       `json:"delegatee"`
	Capabilities        []Capability `json:"capabilities"`
	ContractID          string       `json:"contractId"`
	DelegationID        string       `json:"delegationId"`
	ParentDelegationID  string       `json:"parentDelegationId"`
	ChainDepth          int64        `json:"chainDepth"`
	MaxChainDepth       int64        `json:"maxChainDepth"`
	MaxBudgetMicrocents int64        `json:"maxBudgetMicrocents"`
	ExpiresAt           string       `json:"expiresAt"`
	IssuedAt            string       `json:"issuedAt"`
}

// Attenuation is a further block. Absent limits are not changed; an empty list of capabilities allows nothing.
type Attenuation struct {
	Attenuator          string       `json:"attenuator"`
	Delegatee           string       `json:"delegatee"`
	DelegationID        string       `json:"delegationId"`
	ContractID          string       `json:"contractId"`
	AllowedCapabilities []Capability `json:"allowedCapabilities,omitzero"`
	MaxBudgetMicrocents *int64       `json:"maxBudgetMicrocents,omitzero"`
	ExpiresAt           *string      `json:"expiresAt,omitzero"`
	MaxChainDepth       *int64       `json:"maxChainDepth,omitzero"`
}

type signature struct {
	Signer    string `json:"signer"`
	Signature string `json:"signature"`
	// Covers is "authority", or the index of an attenuation.
	Covers any `json:"covers"`
}

// Token is a chain of signed blocks. (vectors/tokens.md)
type Token struct {
	Format       string        `json:"format"`
	Authority    Authority     `json:"authority"`
	Attenuations []Attenuation `json:"attenuations"`
	Signatures   []signature   `json:"signatures"`
}

// ParseToken reads the text of a token. A token has one spelling: the canonical JSON of its blocks in base64url.
func ParseToken(text string) (*Token, error) {
	if len(utf16.Encode([]rune(text))) > maxTokenChars {
		return nil, Denial{"token_too_large", fmt.Sprintf("more than %d characters", maxTokenChars)}
	}
	content, err := DecodeBase64URL(text)
	if err != nil {
		return nil, err
	}
	token := &Token{}
	decoder := json.NewDecoder(bytes.NewReader(content))
	if err := decoder.Decode(token); err != nil {
		return nil, Denial{"malformed_token", err.Error()}
	}
	if err := token.check(); err != nil {
		return nil, err
	}
	// A missing, unknown, repeated or differently written member makes another text.
	if canonical, err := Canonical(token); err != nil || !bytes.Equal(canonical, content) {
		return nil, Denial{"malformed_token", "the text is not the canonical form of a token"}
	}
	return token, nil
}

// MintToken signs a first block.
func MintToken(issuer *Key, authority Authority) (*Token, error) {
	token := &Token{Format: tokenFormat, Authority: authority, Attenuations: []Attenuation{}}
	return token.sign(issuer, "authority")
}

// Attenuate adds a block that grants less, without a call to the platform. The key is that of the present holder. Empty
// ids are set.
func (t *Token) Attenuate(holder *Key, block Attenuation) (*Token, error) {
	block.Attenuator = holder.Principal
	if block.ContractID == "" {
		block.ContractID = t.last().ContractID
	}
	if block.DelegationID == "" {
		block.DelegationID = NewID("del")
	}
	longer := &Token{t.Format, t.Authority, append(slices.Clone(t.Attenuations), block), slices.Clone(t.Signatures)}
	if _, err := longer.levels(nil); err != nil {
		return nil, err
	}
	return longer.sign(holder, len(t.Attenuations))
}

func (t *Token) sign(signer *Key, covers any) (*Token, error) {
	digest := mustDigest(t.signedValue())
	t.Signatures = append(t.Signatures, signature{signer.Principal, signer.Sign(digest), covers})
	if _, err := ParseToken(t.String()); err != nil {
		return nil, err
	}
	return t, nil
}

// signedValue returns the value that the signature of the last block covers: every block up to that block.
func (t *Token) signedValue() map[string]any {
	signed := map[string]any{"authority": t.Authority}
	if len(t.Attenuations) > 0 {
		signed["attenuations"] = t.Attenuations
	}
	return signed
}

// String is the text of the token, as `authorization: DPoP TEXT` carries it.
func (t *Token) String() string { return base64URL.EncodeToString(mustCanonical(t)) }

// Serialized is the token in requests.
func (t *Token) Serialized() *delegateosv0.SerializedDCT {
	return &delegateosv0.SerializedDCT{Token: t.String(), Format: t.Format}
}

// RevocationIDs are the ids of the blocks, by which each can be revoked.
func (t *Token) RevocationIDs() []string {
	blocks := []any{t.Authority}
	for _, block := range t.Attenuations {
		blocks = append(blocks, block)
	}
	ids := make([]string, len(blocks))
	for index, block := range blocks {
		ids[index] = base64URL.EncodeToString(mustDigest(block))
	}
	return ids
}

// NewID makes an id of a kind: ct, del or att.
func NewID(kind string) string {
	digits := make([]byte, 6)
	rand.Read(digits)
	return kind + "_" + hex.EncodeToString(digits)
}

// level holds the limits that one block of the chain grants.
type level struct {
	Delegatee, ContractID, DelegationID string
	capabilities                        []Capability
	// remaining is the number of further blocks.
	budget, depth, remaining int64
	expiresAt                time.Time
}

func (t *Token) last() level {
	last := level{Delegatee: t.Authority.Delegatee, ContractID: t.Authority.ContractID}
	for _, block := range t.Attenuations {
		last.Delegatee, last.ContractID = block.Delegatee, block.ContractID
	}
	return last
}

// levels returns the limits after each block, and refuses a block that grants more than the block above. (step
// 4 of `verify`)
func (t *Token) levels(subContracts [][2]string) ([]level, error) {
	root := t.Authority
	expiresAt, err := parseTime(root.ExpiresAt)
	if err != nil {
		return nil, err
	}
	above := level{root.Delegatee, root.ContractID, root.DelegationID, root.Capabilities, root.MaxBudgetMicrocents,
		root.ChainDepth, root.MaxChainDepth - root.ChainDepth, expiresAt}
	if above.remaining < 0 {
		return nil, Denial{"chain_depth_exceeded", "authority"}
	}
	levels := []level{above}
	left := maxContainmentWork
	for index, block := range t.Attenuations {
		if above, err = above.attenuate(block, &left); err != nil {
			return nil, fmt.Errorf("attenuations[%d]: %w", index, err)
		}
		contracts := [2]string{block.ContractID, levels[index].ContractID}
		if contracts[0] != contracts[1] && !slices.Contains(subContracts, contracts) {
			return nil, Denial{"contract_mismatch", block.ContractID}
		}
		levels = append(levels, above)
	}
	return levels, nil
}

func (above level) attenuate(block Attenuation, left *int) (level, error) {
	violation := func(detail string) (level, error) { return level{}, Denial{"attenuation_violation", detail} }
	below := above
	below.Delegatee, below.ContractID, below.DelegationID = block.Delegatee, block.ContractID, block.DelegationID
	below.depth, below.remaining = above.depth+1, above.remaining-1
	if block.Attenuator != above.Delegatee {
		return violation("the attenuator is not the delegatee above")
	}
	if block.AllowedCapabilities != nil {
		below.capabilities = block.AllowedCapabilities
	}
	for _, child := range block.AllowedCapabilities {
		isGranted := func(parent Capability) bool { return isSubset(child, parent, left) }
		if !slices.ContainsFunc(above.capabilities, isGranted) {
			return violation("a capability is not granted above")
		}
	}
	if block.MaxBudgetMicrocents != nil {
		if below.budget = *block.MaxBudgetMicrocents; below.budget > above.budget {
			return violation("the budget is larger")
		}
	}
	if block.ExpiresAt != nil {
		expiresAt, err := parseTime(*block.ExpiresAt)
		if err != nil {
			return level{}, err
		}
		if below.expiresAt = expiresAt; expiresAt.After(above.expiresAt) {
			return violation("the expiry is later")
		}
	}
	if above.remaining == 0 {
		return level{}, Denial{"chain_depth_exceeded", "no further delegation is allowed"}
	}
	if block.MaxChainDepth != nil {
		if below.remaining = *block.MaxChainDepth; below.remaining >= above.remaining {
			return violation("the remaining depth is not smaller")
		}
	}
	return below, nil
}

var (
	idForm   = regexp.MustCompile(`^(ct|del|att)_[0-9a-f]{12}$`)
	nameForm = regexp.MustCompile(`^[a-z0-9_.:-]{1,64}$`)
)

// check is the form of a token. (`parse`)
func (t *Token) check() error {
	form := &formCheck{}
	form.require(t.Format == tokenFormat && t.Attenuations != nil && t.Signatures != nil, "format")
	form.limit(len(t.Attenuations), maxAttenuations)
	form.limit(len(t.Signatures), maxAttenuations+1)
	form.authority(t.Authority)
	seen := map[string]bool{t.Authority.ParentDelegationID: true, rootParent: true}
	form.delegation(t.Authority.DelegationID, seen)
	for _, block := range t.Attenuations {
		form.principals(block.Attenuator, block.Delegatee)
		form.id("ct", block.ContractID)
		form.delegation(block.DelegationID, seen)
		form.capabilities(block.AllowedCapabilities)
		for _, limit := range []*int64{block.MaxBudgetMicrocents, block.MaxChainDepth} {
			form.require(limit == nil || isCount(*limit), "attenuations: a number is out of range")
		}
		if block.ExpiresAt != nil {
			form.time(*block.ExpiresAt)
		}
	}
	for _, one := range t.Signatures {
		form.principals(one.Signer)
		bytes, err := DecodeBase64URL(one.Signature)
		form.require(err == nil && len(bytes) == 64, "signatures: signature")
		index, isNumber := one.Covers.(float64)
		form.require(one.Covers == "authority" || isNumber && index == float64(int64(index)) && isCount(int64(index)),
			"signatures: covers")
	}
	return form.err
}

// formCheck keeps the first fault.
type formCheck struct{ err error }

func (f *formCheck) note(err error) {
	if f.err == nil {
		f.err = err
	}
}

func (f *formCheck) require(holds bool, detail string) {
	if !holds {
		f.note(Denial{"malformed_token", detail})
	}
}

func (f *formCheck) limit(count, most int) {
	if count > most {
		f.note(Denial{"token_too_large", fmt.Sprintf("%d members, at most %d", count, most)})
	}
}

func (f *formCheck) authority(block Authority) {
	f.principals(block.Issuer, block.Delegatee)
	f.id("ct", block.ContractID)
	f.id("del", block.ParentDelegationID)
	f.capabilities(block.Capabilities)
	f.require(block.Capabilities != nil, "authority.capabilities")
	for _, number := range []int64{block.ChainDepth, block.MaxChainDepth, block.MaxBudgetMicrocents} {
		f.require(isCount(number), "authority: a number is out of range")
	}
	f.require((block.ParentDelegationID == rootParent) == (block.ChainDepth == 0), "authority.chainDepth")
	f.require(f.time(block.ExpiresAt).After(f.time(block.IssuedAt)), "authority.expiresAt is not after issuedAt")
}

func (f *formCheck) principals(principals ...string) {
	for _, principal := range principals {
		if _, err := ParsePrincipal(principal); err != nil {
			f.note(err)
		}
	}
}

func (f *formCheck) id(kind, id string) {
	f.require(idForm.MatchString(id) && strings.HasPrefix(id, kind+"_"), id+" is not an id of kind "+kind)
}

// delegation checks an id that the chain does not have yet.
func (f *formCheck) delegation(id string, seen map[string]bool) {
	f.id("del", id)
	f.require(!seen[id], id+" is reserved or repeated")
	seen[id] = true
}

func (f *formCheck) capabilities(capabilities []Capability) {
	f.limit(len(capabilities), maxCapabilities)
	for _, one := range capabilities {
		f.require(nameForm.MatchString(one.Namespace) && nameForm.MatchString(one.Action), "capability")
		f.limit(len(utf16.Encode([]rune(one.Resource))), maxResourceUnits)
		if _, err := parsePattern(one.Resource, one.Namespace); err != nil {
			f.note(err)
		}
	}
}

func (f *formCheck) time(text string) time.Time {
	moment, err := parseTime(text)
	if err != nil {
		f.note(err)
	}
	return moment
}

func isCount(number int64) bool { return 0 <= number && number <= maxCount }

func parseTime(text string) (time.Time, error) {
	layout := "2006-01-02T15:04:05Z"
	if len(text) > len(layout) {
		layout = timeLayout
	}
	moment, err := time.Parse(layout, text)
	if err != nil || moment.Format(layout) != text {
		return time.Time{}, Denial{"malformed_token", text + " is not a time"}
	}
	return moment, nil
}

// timeLayout writes times with milliseconds, in UTC.
const timeLayout = "2006-01-02T15:04:05.000Z"
