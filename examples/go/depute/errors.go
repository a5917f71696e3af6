package depute

import (
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ReasonOf is the platform's reason of an error, such as TOKEN_DENIED; empty for an error of another origin.
func ReasonOf(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.Domain == "depute.dev" {
			return info.Reason
		}
	}
	return ""
}

// ViolationsOf returns the invalid fields of a refused request, with the fault of each field.
func ViolationsOf(err error) map[string]string {
	violations := map[string]string{}
	for _, detail := range status.Convert(err).Details() {
		if request, ok := detail.(*errdetails.BadRequest); ok {
			for _, one := range request.FieldViolations {
				violations[one.Field] = one.Description
			}
		}
	}
	return violations
}

// endsLease tells whether another worker has the task, the task has ended, or the work is no longer allowed.
func endsLease(err error) bool {
	switch status.Code(err) {
	case codes.Aborted, codes.NotFound, codes.PermissionDenied:
		return true
	}
	return false
}
