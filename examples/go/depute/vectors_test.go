package depute

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/blake2b"
)

// vector is one case of a file below vectors/.
type vector struct {
	Name, Operation, Refusal, Fault string
	Input, Expected                 json.RawMessage
}

// operation computes the result that a case expects, or the case's refusal.
type operation func(input json.RawMessage) (any, error)

// run makes an operation of a function with typed input.
func run[In any](compute func(In) (any, error)) operation {
	return func(text json.RawMessage) (any, error) {
		var input In
		if err := json.Unmarshal(text, &input); err != nil {
			return nil, err
		}
		return compute(input)
	}
}

type object = map[string]any

// checkVectors runs the cases of a file.
func checkVectors(t *testing.T, file string, operations map[string]operation) {
	text, err := os.ReadFile("../../../vectors/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct{ Cases []vector }
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	for _, one := range vectors.Cases {
		compute, isListed := operations[one.Operation]
		if !isListed {
			t.Errorf("%s: the operation %s is not listed", one.Name, one.Operation)
			continue
		}
		t.Run(one.Name, func(t *testing.T) { check(t, one, compute) })
	}
}

func check(t *testing.T, one vector, compute operation) {
	result, err := compute(one.Input)
	if one.Refusal != "" {
		refusal, fault := refusalOf(err)
		if refusal != one.Refusal || one.Fault != "" && fault != one.Fault {
			t.Errorf("refused with %q (%v), not with %q %q", refusal, err, one.Refusal, one.Fault)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	var expected object
	if err := json.Unmarshal(one.Expected, &expected); err != nil {
		t.Fatal(err)
	}
	// The platform alone decides which keys it admits.
	delete(expected, "admissible")
	if got, want := mustCanonical(result), mustCanonical(expected); !bytes.Equal(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func refusalOf(err error) (refusal, fault string) {
	var denial Denial
	if errors.As(err, &denial) {
		return denial.Denial, denial.Detail
	}
	if errors.Is(err, errNotCanonical) {
		return "no_canonical_form", ""
	}
	return "", ""
}

func TestCanonicalJSON(t *testing.T) {
	checkVectors(t, "canonical-json.json", map[string]operation{
		"canonicalize": run(func(input struct{ JSON string }) (any, error) {
			text, err := CanonicalText([]byte(input.JSON))
			sha, blake := sha256.Sum256(text), blake2b.Sum256(text)
			return object{"canonical": string(text), "utf8Hex": hex.EncodeToString(text),
				"sha256Hex": hex.EncodeToString(sha[:]), "blake2b256Hex": hex.EncodeToString(blake[:])}, err
		}),
		"version-hash": run(func(input struct{ Input, Output any }) (any, error) {
			digest := VersionDigest(input.Input, input.Output)
			return object{"digestHex": digest, "hash8": digest[:8], "hash16": digest[:16]}, nil
		}),
		"names-version": run(func(input struct{ Hash, DigestHex string }) (any, error) {
			return object{"names": NamesVersion(input.Hash, input.DigestHex)}, nil
		}),
	})
}

func TestKeysAndPrincipals(t *testing.T) {
	checkVectors(t, "keys-and-principals.json", map[string]operation{
		"decode-base64url": run(func(input struct{ Text string }) (any, error) {
			data, err := DecodeBase64URL(input.Text)
			return object{"hex": hex.EncodeToString(data)}, err
		}),
		"keypair": run(func(input struct{ SeedHex string }) (any, error) {
			key := keyOf(t, input.SeedHex)
			public, err := ParsePrincipal(key.Principal)
			return object{"publicKeyHex": hex.EncodeToString(public), "principal": key.Principal,
				"thumbprint": Thumbprint(key.Principal)}, err
		}),
		"sign": run(func(input struct{ SeedHex, MessageHex string }) (any, error) {
			return object{"signature": keyOf(t, input.SeedHex).Sign(bytesOf(t, input.MessageHex))}, nil
		}),
		"verify": run(func(input struct{ PublicKeyHex, MessageHex, SignatureHex string }) (any, error) {
			valid := Verify(bytesOf(t, input.PublicKeyHex), bytesOf(t, input.MessageHex), bytesOf(t, input.SignatureHex))
			return object{"valid": valid}, nil
		}),
		"principal": run(func(input struct{ Principal string }) (any, error) {
			public, err := ParsePrincipal(input.Principal)
			return object{"publicKeyHex": hex.EncodeToString(public)}, err
		}),
		"blake2b": run(func(input struct{ DataHex, KeyHex string }) (any, error) {
			keyed, err := blake2b.New256(bytesOf(t, input.KeyHex))
			if err != nil {
				return nil, err
			}
			keyed.Write(bytesOf(t, input.DataHex))
			unkeyed := blake2b.Sum256(bytesOf(t, input.DataHex))
			return object{"unkeyedHex": hex.EncodeToString(unkeyed[:]), "keyedHex": hex.EncodeToString(keyed.Sum(nil))}, nil
		}),
	})
}

func TestTokens(t *testing.T) {
	checkVectors(t, "tokens.json", map[string]operation{
		"mint": run(func(input struct {
			SeedHex   string
			Authority Authority
		}) (any, error) {
			token, err := MintToken(keyOf(t, input.SeedHex), input.Authority)
			if err != nil {
				return nil, err
			}
			signed := signedBy(token)
			signed["signedText"] = string(mustCanonical(token.signedValue()))
			return signed, nil
		}),
		"attenuate": run(func(input struct {
			Token, SeedHex string
			Block          Attenuation
		}) (any, error) {
			above, err := ParseToken(input.Token)
			if err != nil {
				return nil, err
			}
			token, err := above.Attenuate(keyOf(t, input.SeedHex), input.Block)
			if err != nil {
				return nil, err
			}
			return signedBy(token), nil
		}),
		"parse": run(func(input struct{ Token string }) (any, error) {
			_, err := ParseToken(input.Token)
			return object{}, err
		}),
		"match": run(func(input struct{ Namespace, Pattern, Resource string }) (any, error) {
			isMatch, err := matches(input.Pattern, input.Resource, input.Namespace)
			return object{"matches": isMatch}, err
		}),
		"subset": run(func(input struct{ Parent, Child Capability }) (any, error) {
			left := maxContainmentWork
			return object{"isSubset": isSubset(input.Child, input.Parent, &left)}, nil
		}),
		"verify": run(func(input struct {
			Token   string
			Context struct {
				Context
				Now int64
			}
		}) (any, error) {
			context := input.Context.Context
			context.Now = time.UnixMilli(input.Context.Now)
			scope, err := VerifyToken(input.Token, context)
			if err != nil {
				return nil, err
			}
			token, err := ParseToken(input.Token)
			return object{"scope": object{"capabilities": scope.Capabilities,
				"remainingBudgetMicrocents": scope.RemainingBudgetMicrocents, "chainDepth": scope.ChainDepth,
				"maxChainDepth": scope.MaxChainDepth, "contractId": scope.ContractID, "delegationId": scope.DelegationID,
				"issuer": scope.Issuer, "holder": scope.Holder, "expiresAt": scope.ExpiresAt.UnixMilli()},
				"revocationIds": token.RevocationIDs()}, err
		}),
	})
}

// signedBy returns a signed token with its last signature, the digest that this signature covers, and its
// revocation ids.
func signedBy(token *Token) object {
	digest := mustDigest(token.signedValue())
	return object{"digestHex": hex.EncodeToString(digest), "token": token.String(), "revocationIds": token.RevocationIDs(),
		"signature": token.Signatures[len(token.Attenuations)].Signature}
}

func TestHolderProofs(t *testing.T) {
	checkVectors(t, "holder-proofs.json", map[string]operation{
		"target": run(func(input struct{ PublicURL, Service, Method, Protocol, HTTPMethod, Path string }) (any, error) {
			method, path := "POST", "/"+input.Service+"/"+input.Method
			if input.Protocol == "connect-get" {
				method = "GET"
			}
			if input.Protocol == "http" {
				method, path = input.HTTPMethod, input.Path
			}
			return object{"htm": method, "htu": Target(input.PublicURL, path)}, nil
		}),
		"arguments-digest": run(func(input struct{ Arguments any }) (any, error) {
			digest, err := ArgumentsDigest(input.Arguments)
			return object{"ard": digest}, err
		}),
		"create": run(func(input struct {
			SeedHex, Htm, Htu, Jti, Token string
			Now                           int64
			Arguments                     any
		}) (any, error) {
			proof := Proof{Method: input.Htm, Target: input.Htu, Token: input.Token, ID: input.Jti,
				Now: time.UnixMilli(input.Now)}
			if input.Arguments != nil {
				proof.ArgumentsDigest, _ = ArgumentsDigest(input.Arguments)
			}
			text := proof.Sign(keyOf(t, input.SeedHex))
			parts := strings.Split(text, ".")
			header, errHeader := DecodeBase64URL(parts[0])
			payload, errPayload := DecodeBase64URL(parts[1])
			return object{"header": string(header), "payload": string(payload), "proof": text},
				errors.Join(errHeader, errPayload)
		}),
		"check": run(func(input struct {
			Proof    string
			Expected presentation
		}) (any, error) {
			input.Expected.Proof = input.Proof
			proof, err := input.Expected.verify()
			return object{"jti": proof.ID, "principal": proof.Principal, "thumbprint": proof.Thumbprint,
				"issuedAt": proof.IssuedAt.UnixMilli(), "expiresAt": proof.ExpiresAt.UnixMilli()}, err
		}),
		"check-in-order": run(func(input struct {
			Htm, Htu      string
			Presentations []presentation
		}) (any, error) {
			var memory ProofMemory
			answers := []string{}
			for _, one := range input.Presentations {
				one.Htm, one.Htu = input.Htm, input.Htu
				proof, err := one.verify()
				if err == nil {
					err = memory.Accept(proof, time.UnixMilli(one.Now))
				}
				answer, _ := refusalOf(err)
				answers = append(answers, cmp.Or(answer, "accepted"))
			}
			return object{"answers": answers}, nil
		}),
		"same-target": run(func(input struct{ Claimed, Htu string }) (any, error) {
			return object{"isSame": isSameTarget(input.Claimed, input.Htu)}, nil
		}),
	})
}

// presentation is a proof, together with the call that the proof authenticates.
type presentation struct {
	Proof, Htm, Htu, Principal, Token, Ard string
	Now                                    int64
}

func (p presentation) verify() (VerifiedProof, error) {
	return VerifyProof(p.Proof, Call{p.Htm, p.Htu, time.UnixMilli(p.Now), p.Principal, p.Token, p.Ard})
}

func keyOf(t *testing.T, seedHex string) *Key {
	key, err := NewKey(bytesOf(t, seedHex))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func bytesOf(t *testing.T, text string) []byte {
	data, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
