package depute

import (
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

var (
	// address is scheme, host, port and path of an address; the host may be an IPv6 literal.
	address = regexp.MustCompile(`^(?i:(https?)://)(\[[^\]@/?#]*\]|[^:@\[\]/?#]+)(?::([0-9]*))?(/[^?#]*)?(?:[?#].*)?$`)
	// printable is ASCII without space and backslash.
	printable = regexp.MustCompile(`^[!-\[\]-~]*$`)
	escape    = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)
	plain     = regexp.MustCompile(`^[A-Za-z0-9._~-]$`)
)

// isSameTarget reports whether two addresses are the same target, even if they are spelled differently.
// (`same-target`)
func isSameTarget(claimed, target string) bool {
	if claimed == target {
		return true
	}
	one, isOne := normalTarget(claimed)
	other, isOther := normalTarget(target)
	return isOne && isOther && one == other
}

func normalTarget(text string) (normal string, ok bool) {
	parts := address.FindStringSubmatch(text)
	if parts == nil || !printable.MatchString(text) {
		return "", false
	}
	scheme, host, port := strings.ToLower(parts[1]), strings.ToLower(parts[2]), parts[3]
	if strings.HasPrefix(host, "[") {
		if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err != nil {
			return "", false
		}
	}
	if port != "" {
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return "", false
		}
		if scheme == "http" && number != 80 || scheme == "https" && number != 443 {
			host += ":" + strconv.FormatUint(number, 10)
		}
	}
	return scheme + "://" + host + withoutDots(escape.ReplaceAllStringFunc(parts[4], unescape)), true
}

// unescape undoes the escape of an unreserved character, and writes any other one in upper case.
func unescape(code string) string {
	value, err := strconv.ParseUint(code[1:], 16, 8)
	if character := string(rune(value)); err == nil && plain.MatchString(character) {
		return character
	}
	return strings.ToUpper(code)
}

// withoutDots removes dot segments. (RFC 3986, 5.2.4)
func withoutDots(path string) string {
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	kept := []string{}
	for index, segment := range segments {
		if segment == ".." && len(kept) > 0 {
			kept = kept[:len(kept)-1]
		}
		if segment != "." && segment != ".." {
			kept = append(kept, segment)
		} else if index == len(segments)-1 {
			kept = append(kept, "")
		}
	}
	return "/" + strings.Join(kept, "/")
}
