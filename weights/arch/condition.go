package arch

import "strings"

// condition is a conjunction of flags, some negated: "tied !headless". An empty one holds.
type condition []literal

type literal struct {
	flag string
	not  bool
}

// parseCondition reads a condition and names the flags in it that are not in known.
func parseCondition(s string, known map[string]bool) (c condition, unknown []string) {
	for _, word := range strings.Fields(s) {
		flag, not := strings.CutPrefix(word, "!")
		if !known[flag] {
			unknown = append(unknown, flag)
		}
		c = append(c, literal{flag, not})
	}
	return c, unknown
}

func (c condition) holds(flags map[string]bool) bool {
	for _, l := range c {
		if flags[l.flag] == l.not {
			return false
		}
	}
	return true
}
