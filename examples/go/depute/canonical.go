package depute

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/crypto/blake2b"
)

const (
	maxDepth  = 64
	maxValues = 50_000
)

var errNotCanonical = errors.New("the text has no canonical form")

// Canonical returns the canonical JSON (RFC 8785) of a value that encoding/json can write.
func Canonical(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return CanonicalText(text.Bytes())
}

// CanonicalText returns the canonical form of a JSON text, which is read strictly.
func CanonicalText(text []byte) ([]byte, error) {
	value, err := parseStrict(text, maxDepth)
	if err != nil {
		return nil, err
	}
	return write(nil, value), nil
}

// Digest returns the 32-byte BLAKE2b hash of a value's canonical JSON. Signatures of tokens and documents cover
// this digest.
func Digest(value any) ([]byte, error) {
	text, err := Canonical(value)
	if err != nil {
		return nil, err
	}
	digest := blake2b.Sum256(text)
	return digest[:], nil
}

func mustDigest(value any) []byte {
	digest := blake2b.Sum256(mustCanonical(value))
	return digest[:]
}

// VersionDigest is the version of a capability with these JSON Schemas: SHA-256 of the canonical schemas, in hexadecimal.
func VersionDigest(input, output any) string {
	digest := sha256.Sum256(mustCanonical(map[string]any{"input": input, "output": output}))
	return hex.EncodeToString(digest[:])
}

var versionHash = regexp.MustCompile("^[0-9a-f]{8,64}$")

// NamesVersion reports whether a hash identifies a version: whether the hash equals the first 8 to 64
// hexadecimal digits of the version's digest.
func NamesVersion(hash, digest string) bool {
	hash = strings.ToLower(hash)
	return versionHash.MatchString(hash) && strings.HasPrefix(digest, hash)
}

func mustCanonical(value any) []byte {
	text, err := Canonical(value)
	if err != nil {
		panic(err) // Values of this package's own types have a canonical form.
	}
	return text
}

// parseStrict reads a JSON text: no repeated names, no lone surrogates, bounded depth and size.
func parseStrict(text []byte, depth int) (any, error) {
	if !utf8.Valid(text) || !json.Valid(text) || hasLoneSurrogate(text) {
		return nil, errNotCanonical
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	reader := &strictReader{decoder: decoder, left: maxValues}
	value, err := reader.value(depth)
	if err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errNotCanonical
	}
	return value, nil
}

type strictReader struct {
	decoder *json.Decoder
	// left is the number of values and names that may follow.
	left int
}

func (r *strictReader) value(depth int) (any, error) {
	token, err := r.decoder.Token()
	r.left--
	if err != nil || r.left < 0 {
		return nil, errNotCanonical
	}
	switch token := token.(type) {
	case json.Number:
		number, err := strconv.ParseFloat(token.String(), 64)
		if err != nil {
			return nil, errNotCanonical
		}
		return number, nil
	case json.Delim:
		if depth == 0 {
			return nil, errNotCanonical
		}
		if token == '[' {
			return r.array(depth - 1)
		}
		return r.object(depth - 1)
	}
	return token, nil
}

func (r *strictReader) array(depth int) (any, error) {
	values := []any{}
	for r.decoder.More() {
		value, err := r.value(depth)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	_, err := r.decoder.Token()
	return values, err
}

func (r *strictReader) object(depth int) (any, error) {
	members := map[string]any{}
	for r.decoder.More() {
		token, err := r.decoder.Token()
		r.left--
		if err != nil {
			return nil, err
		}
		name := token.(string)
		if _, isRepeated := members[name]; isRepeated {
			return nil, fmt.Errorf("%w: %q is a repeated name", errNotCanonical, name)
		}
		if members[name], err = r.value(depth); err != nil {
			return nil, err
		}
	}
	_, err := r.decoder.Token()
	return members, err
}

// hasLoneSurrogate looks for escapes, because encoding/json reads a lone surrogate as U+FFFD.
func hasLoneSurrogate(text []byte) bool {
	isHigh := false
	for at := 0; at < len(text); at++ {
		unit := uint64(0)
		if text[at] == '\\' {
			if at++; text[at] == 'u' {
				unit, _ = strconv.ParseUint(string(text[at+1:at+5]), 16, 16)
				at += 4
			}
		}
		isLow := unit >= 0xdc00 && unit < 0xe000
		if isHigh != isLow {
			return true
		}
		isHigh = unit >= 0xd800 && unit < 0xdc00
	}
	return false
}

func write(out []byte, value any) []byte {
	switch value := value.(type) {
	case nil:
		return append(out, "null"...)
	case bool:
		return strconv.AppendBool(out, value)
	case float64:
		return append(out, numberText(value)...)
	case string:
		return writeText(out, value)
	case []any:
		out = append(out, '[')
		for index, member := range value {
			if index > 0 {
				out = append(out, ',')
			}
			out = write(out, member)
		}
		return append(out, ']')
	case map[string]any:
		names := make([]string, 0, len(value))
		for name := range value {
			names = append(names, name)
		}
		slices.SortFunc(names, func(a, b string) int {
			return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
		})
		out = append(out, '{')
		for index, name := range names {
			if index > 0 {
				out = append(out, ',')
			}
			out = append(writeText(out, name), ':')
			out = write(out, value[name])
		}
		return append(out, '}')
	}
	panic(fmt.Sprintf("%T is not a value of parseStrict", value))
}

func writeText(out []byte, text string) []byte {
	out = append(out, '"')
	for _, char := range []byte(text) {
		switch {
		case char == '"' || char == '\\':
			out = append(out, '\\', char)
		case char >= 0x20:
			out = append(out, char)
		case strings.IndexByte("\b\t\n\f\r", char) >= 0:
			out = append(out, '\\', "btn-fr"[char-'\b'])
		default:
			out = fmt.Appendf(out, "\\u%04x", char)
		}
	}
	return append(out, '"')
}

// numberText writes a number as ECMAScript's Number.prototype.toString does.
func numberText(number float64) string {
	if number == 0 {
		return "0"
	}
	sign := ""
	if number < 0 {
		sign, number = "-", math.Abs(number)
	}
	mantissa, exponentText, _ := strings.Cut(strconv.FormatFloat(number, 'e', -1, 64), "e")
	digits := strings.Replace(mantissa, ".", "", 1)
	exponent, _ := strconv.Atoi(exponentText)
	point := exponent + 1
	switch {
	case len(digits) <= point && point <= 21:
		return sign + digits + strings.Repeat("0", point-len(digits))
	case 0 < point && point <= 21:
		return sign + digits[:point] + "." + digits[point:]
	case -6 < point && point <= 0:
		return sign + "0." + strings.Repeat("0", -point) + digits
	}
	return fmt.Sprintf("%s%se%+d", sign, mantissa, exponent)
}
