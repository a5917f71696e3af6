package depute

import (
	"encoding/json"
	"strings"
	"time"

	delegateosv0 "github.com/depute/depute/gen/go/delegateos/v0"
	tasksv1 "github.com/depute/depute/gen/go/depute/tasks/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Document is a JSON object that its author signs as a whole: an Ed25519 signature over the Digest of the
// document without `signature`.
type Document map[string]any

// SignContract signs a contract: the check that the result has to pass, and its greatest cost.
func SignContract(key *Key, title string, verification Document, budget int64) (*delegateosv0.TaskContract, error) {
	now := time.Now().UTC()
	contract := &delegateosv0.TaskContract{}
	return contract, sign(key, contract, Document{
		"id":           NewID("ct"),
		"version":      "0.1",
		"issuer":       key.Principal,
		"createdAt":    now.Format(timeLayout),
		"task":         Document{"title": title, "description": "", "inputs": Document{}, "outputSchema": true},
		"verification": verification,
		"constraints": Document{
			"maxBudgetMicrocents":  budget,
			"deadline":             now.Add(time.Hour).Format(timeLayout),
			"maxChainDepth":        2,
			"requiredCapabilities": []string{},
		},
	})
}

// SignAttestation signs a worker's statement of its result.
func SignAttestation(key *Key, task *tasksv1.Task, result Result, took time.Duration) (
	*delegateosv0.Attestation, error) {
	attestation := &delegateosv0.Attestation{}
	return attestation, sign(key, attestation, Document{
		"id":           NewID("att"),
		"version":      "0.1",
		"contractId":   task.ContractId,
		"delegationId": task.DelegationId,
		"principal":    key.Principal,
		"createdAt":    time.Now().UTC().Format(timeLayout),
		"type":         "completion",
		"result": Document{
			"success":        true,
			"output":         result.Output,
			"costMicrocents": result.CostMicrocents,
			"durationMs":     took.Milliseconds(),
		},
		"childAttestations": []string{},
	})
}

// SignRevocation signs the revocation of a token's last block, and of all blocks below it in other tokens.
func SignRevocation(key *Key, token *Token) (*delegateosv0.RevocationEntry, error) {
	ids := token.RevocationIDs()
	entry := &delegateosv0.RevocationEntry{}
	return entry, sign(key, entry, Document{
		"revocationId": ids[len(ids)-1],
		"revokedBy":    key.Principal,
		"revokedAt":    time.Now().UTC().Format(timeLayout),
		"scope":        "chain",
	})
}

// sign adds the signature to a document, and reads the document into a message.
func sign(key *Key, message proto.Message, document Document) error {
	digest, err := Digest(document)
	if err != nil {
		return err
	}
	document["signature"] = key.Sign(digest)
	nameEnumValues(message.ProtoReflect().Descriptor(), document)
	text, err := json.Marshal(document)
	if err != nil {
		return err
	}
	return protojson.Unmarshal(text, message)
}

// nameEnumValues replaces the words of a document by the names of protobuf's JSON: `chain` by REVOCATION_SCOPE_CHAIN.
func nameEnumValues(descriptor protoreflect.MessageDescriptor, document Document) {
	for name, value := range document {
		field := descriptor.Fields().ByJSONName(name)
		switch value := value.(type) {
		case string:
			if enum := field.Enum(); enum != nil {
				prefix := strings.TrimSuffix(string(enum.Values().Get(0).Name()), "UNSPECIFIED")
				document[name] = prefix + strings.ToUpper(value)
			}
		case Document:
			if inner := field.Message(); inner.ParentFile().Package() == descriptor.ParentFile().Package() {
				nameEnumValues(inner, value)
			}
		}
	}
}
