package depute

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"

	delegateosv0 "github.com/depute/depute/gen/go/delegateos/v0"
	registryv1 "github.com/depute/depute/gen/go/depute/registry/v1"
	tasksv1 "github.com/depute/depute/gen/go/depute/tasks/v1"
	tokensv1 "github.com/depute/depute/gen/go/depute/tokens/v1"
	verifierv1 "github.com/depute/depute/gen/go/depute/verifier/v1"
	nektev1 "github.com/depute/depute/gen/go/nekte/v1"
	"google.golang.org/grpc"
)

// LocalURL is the address of a platform that `npm start` runs on this machine.
const LocalURL = "http://127.0.0.1:8080"

// Client has the services of a platform over one connection. Close it in the end.
type Client struct {
	*grpc.ClientConn
	// Key signs the proofs of the calls, and documents. It is nil for a caller without a key.
	Key          *Key
	Agents       registryv1.AgentServiceClient
	Tasks        tasksv1.TaskServiceClient
	Workers      tasksv1.WorkerServiceClient
	Tokens       tokensv1.TokenServiceClient
	Revocations  tokensv1.RevocationServiceClient
	Contracts    verifierv1.ContractServiceClient
	Attestations verifierv1.AttestationServiceClient
}

// Connect opens a connection to the platform at a public URL. Each attempt of each call has a new proof of the key.
func Connect(publicURL string, key *Key) (*Client, error) {
	return connect(publicURL, key, grpc.WithPerRPCCredentials(proofs{key, publicURL}))
}

// ConnectWithSecret opens a connection of a caller without a key. The empty secret is for a platform on the loopback
// that is open.
func ConnectWithSecret(publicURL, text string) (*Client, error) {
	if text == "" {
		return connect(publicURL, nil)
	}
	return connect(publicURL, nil, grpc.WithPerRPCCredentials(secret(text)))
}

func connect(publicURL string, key *Key, options ...grpc.DialOption) (*Client, error) {
	conn, err := dial(publicURL, options...)
	if err != nil {
		return nil, err
	}
	return &Client{conn, key, registryv1.NewAgentServiceClient(conn), tasksv1.NewTaskServiceClient(conn),
		tasksv1.NewWorkerServiceClient(conn), tokensv1.NewTokenServiceClient(conn),
		tokensv1.NewRevocationServiceClient(conn), verifierv1.NewContractServiceClient(conn),
		verifierv1.NewAttestationServiceClient(conn)}, nil
}

// Register registers an agent of the client's key, and publishes its capabilities.
func (c *Client) Register(ctx context.Context, agent *registryv1.Agent, capabilities ...*nektev1.CapabilityFull) error {
	agent.Principal = c.Key.Principal
	register := &registryv1.RegisterAgentRequest{RequestId: rand.Text(), Agent: agent}
	if _, err := c.Agents.RegisterAgent(ctx, register); err != nil {
		return err
	}
	_, err := c.Agents.PublishCapabilities(ctx, &registryv1.PublishCapabilitiesRequest{
		RequestId: rand.Text(), AgentId: agent.Id, Capabilities: capabilities,
	})
	return err
}

// CreateContract signs and records a contract whose result has to match a JSON Schema. It returns the contract's id.
func (c *Client) CreateContract(ctx context.Context, title string, schema any, budget int64) (string, error) {
	contract, err := SignContract(c.Key, title, Document{"method": "schema_match", "schema": schema}, budget)
	if err != nil {
		return "", err
	}
	_, err = c.Contracts.CreateContract(ctx, &verifierv1.CreateContractRequest{Contract: contract})
	return contract.Id, err
}

// Mint returns a token of the platform's root for one contract. The caller has to be allowed to mint.
func (c *Client) Mint(ctx context.Context, delegatee, contractID string, budget int64, capabilities ...Capability) (
	*Token, error) {
	request := &tokensv1.MintTokenRequest{RequestId: rand.Text(), Delegatee: delegatee, ContractId: contractID,
		MaxBudgetMicrocents: budget, MaxChainDepth: 2}
	for _, one := range capabilities {
		request.Capabilities = append(request.Capabilities,
			&delegateosv0.Capability{Namespace: one.Namespace, Action: one.Action, Resource: one.Resource})
	}
	answer, err := c.Tokens.MintToken(ctx, request)
	if err != nil {
		return nil, err
	}
	return ParseToken(answer.Token.Token)
}

// Revoke revokes the last block of a token, and all blocks below it. It returns the number of the revocation.
func (c *Client) Revoke(ctx context.Context, token *Token) (int64, error) {
	entry, err := SignRevocation(c.Key, token)
	if err != nil {
		return 0, err
	}
	answer, err := c.Revocations.RevokeToken(ctx, &tokensv1.RevokeTokenRequest{Entry: entry, Token: token.Serialized()})
	return answer.GetRevocation().GetSequence(), err
}

// IsAttested tells whether a recorded attestation is valid.
func (c *Client) IsAttested(ctx context.Context, attestationID string) (bool, error) {
	subject := &verifierv1.VerifyAttestationRequest_AttestationId{AttestationId: attestationID}
	answer, err := c.Attestations.VerifyAttestation(ctx, &verifierv1.VerifyAttestationRequest{Subject: subject})
	return answer.GetValid(), err
}

// Must returns the value, or ends the program with the error and its reason.
func Must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, ReasonOf(err), err)
		os.Exit(1)
	}
	return value
}
