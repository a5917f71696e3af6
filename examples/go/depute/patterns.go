package depute

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	maxResourceUnits = 1024
	// maxContainmentWork bounds the containment checks of one token, in steps.
	maxContainmentWork = 50_000
)

var (
	forbiddenInResource = regexp.MustCompile(`[\x00-\x1f\x7f\\]|(?i:%2e|%2f|%5c)`)
	origin              = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://[^/]*`)
)

// path is a pattern or a resource: two markers, and the segments between the slashes.
type path struct {
	text              string
	leading, trailing bool
	segments          []string
}

func parsePath(text, namespace string) (path, error) {
	denied := Denial{"invalid_resource", text}
	units := len(utf16.Encode([]rune(text)))
	if text == "" || units > maxResourceUnits || !utf8.ValidString(text) || forbiddenInResource.MatchString(text) ||
		text != strings.Trim(text, " ") {
		return path{}, denied
	}
	if text == "/" {
		return path{text: text, leading: true}, nil
	}
	first := ""
	if namespace == "web" || strings.Contains(namespace, ":") {
		first = origin.FindString(text)
	}
	if strings.HasSuffix(first, "://") {
		return path{}, denied
	}
	rest := text[len(first):]
	result := path{text: text, leading: first == "" && strings.HasPrefix(rest, "/")}
	rest = strings.TrimPrefix(rest, "/")
	result.trailing = strings.HasSuffix(rest, "/") || first != "" && rest == "" && strings.HasSuffix(text, "/")
	rest = strings.TrimSuffix(rest, "/")
	if first != "" {
		result.segments = append(result.segments, first)
	}
	if first == "" || rest != "" {
		result.segments = append(result.segments, strings.Split(rest, "/")...)
	}
	for _, segment := range result.segments {
		if segment == "" || segment == "." || segment == ".." {
			return path{}, denied
		}
	}
	return result, nil
}

func parsePattern(text, namespace string) (path, error) {
	pattern, err := parsePath(text, namespace)
	for _, segment := range pattern.segments {
		if strings.Contains(segment, "*") && segment != "*" && segment != "**" {
			return path{}, Denial{"invalid_resource", text}
		}
	}
	return pattern, err
}

func parseResource(text, namespace string) (path, error) {
	if strings.Contains(text, "*") && text != "*" {
		return path{}, Denial{"invalid_resource", text}
	}
	return parsePath(text, namespace)
}

func (p path) isEverything() bool { return p.text == "*" || p.text == "**" }

func (p path) hasMarkersOf(other path) bool {
	return p.leading == other.leading && p.trailing == other.trailing
}

// matches tells whether a pattern matches a resource.
func matches(pattern, resource, namespace string) (bool, error) {
	outer, err := parsePattern(pattern, namespace)
	if err != nil {
		return false, err
	}
	asked, err := parseResource(resource, namespace)
	if err != nil {
		return false, err
	}
	if outer.isEverything() || asked.isEverything() {
		return outer.isEverything(), nil
	}
	places := outer.start()
	for _, segment := range asked.segments {
		places = outer.step(places, segment)
	}
	return outer.hasMarkersOf(asked) && outer.mayEnd(places), nil
}

// isSubset reports whether a parent capability contains a child capability. The steps of the check are
// subtracted from left.
func isSubset(child, parent Capability, left *int) bool {
	outer, errOuter := parsePattern(parent.Resource, parent.Namespace)
	inner, errInner := parsePattern(child.Resource, child.Namespace)
	if child.Namespace != parent.Namespace || child.Action != parent.Action || errOuter != nil || errInner != nil {
		return false
	}
	if outer.isEverything() || inner.isEverything() {
		return outer.isEverything()
	}
	if !outer.hasMarkersOf(inner) {
		return false
	}
	type state struct {
		at      int
		places  string
		isTaken bool
	}
	mayBeEmpty := inner.leading && !inner.trailing
	seen := map[state]bool{}
	for todo := []state{{0, outer.start(), false}}; len(todo) > 0; {
		now := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[now] {
			continue
		}
		seen[now] = true
		if *left -= 1 + len(outer.segments); *left < 0 {
			return false
		}
		switch {
		case now.at == len(inner.segments):
			if (now.isTaken || mayBeEmpty) && !outer.mayEnd(now.places) {
				return false
			}
		case inner.segments[now.at] == "**":
			todo = append(todo, state{now.at + 1, now.places, now.isTaken},
				state{now.at, outer.step(now.places, unlikeAnySegment), true})
		case inner.segments[now.at] == "*":
			todo = append(todo, state{now.at + 1, outer.step(now.places, unlikeAnySegment), true})
		default:
			todo = append(todo, state{now.at + 1, outer.step(now.places, inner.segments[now.at]), true})
		}
	}
	return true
}

// unlikeAnySegment equals no literal segment, because segments have no slash.
const unlikeAnySegment = "/"

// The functions below represent a set of places between segments as a text with one byte for each place: 1 for a
// place of the set.

func (p path) start() string {
	places := make([]byte, len(p.segments)+1)
	places[0] = 1
	return p.closed(places)
}

func (p path) closed(places []byte) string {
	for at, segment := range p.segments {
		if places[at] == 1 && segment == "**" {
			places[at+1] = 1
		}
	}
	return string(places)
}

func (p path) step(places, literal string) string {
	after := make([]byte, len(places))
	for at, segment := range p.segments {
		if places[at] == 0 {
			continue
		}
		if segment == "**" {
			after[at] = 1
		} else if slices.Contains([]string{"*", literal}, segment) {
			after[at+1] = 1
		}
	}
	return p.closed(after)
}

func (p path) mayEnd(places string) bool { return places[len(p.segments)] == 1 }
