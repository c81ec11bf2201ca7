package plan

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/internal/spelling"
)

// Selection names the weights that a conversion does not change, like quantization_config.ignore. A pattern is one
// of: the exact name of a module ("lm_head") or of a tensor; a glob ("*.mlp.down_proj"); "re:" and a regular
// expression that matches from the name's start ("re:.*layers\.[01]\."). A module's name is a tensor's name without
// the last part. The zero value names no weights.
type Selection struct {
	Ignore []string `json:"ignore,omitempty"` // weights that do not change
	Only   []string `json:"only,omitempty"`   // only these weights change; empty: all may change
}

// Empty reports whether the selection excludes no weights.
func (s Selection) Empty() bool { return len(s.Ignore)+len(s.Only) == 0 }

// Limits of a selection. A longer list or pattern is probably a mistake.
const (
	mostPatterns   = 10000
	longestPattern = 4096
)

// ErrPattern is the class of errors about patterns: malformed patterns, and patterns without a match.
var ErrPattern = errors.New("pattern")

// Selector is a compiled [Selection].
type Selector struct {
	ignore, only []namePattern
}

// namePattern matches names of modules and tensors.
type namePattern struct {
	list  string // ignore or only
	text  string
	match func(name string) bool
}

// Selector compiles the patterns. An error is an [ErrPattern].
func (s Selection) Selector() (*Selector, error) {
	if len(s.Ignore)+len(s.Only) > mostPatterns {
		return nil, fmt.Errorf("%w: there are %d patterns, and at most %d are allowed: combine several into one, such as *.down_proj", ErrPattern, len(s.Ignore)+len(s.Only), mostPatterns)
	}
	ignore, err := compilePatterns("ignore", s.Ignore)
	if err != nil {
		return nil, err
	}
	only, err := compilePatterns("only", s.Only)
	return &Selector{ignore, only}, err
}

func compilePatterns(list string, texts []string) (all []namePattern, err error) {
	for _, text := range texts {
		p := namePattern{list: list, text: text, match: func(name string) bool { return name == text }}
		expression, isExpression := strings.CutPrefix(text, "re:")
		switch {
		case len(text) > longestPattern:
			return nil, fmt.Errorf("%w %.40q…: is longer than %d bytes: shorten the pattern", ErrPattern, text, longestPattern)
		case text == "" || text == "re:":
			return nil, fmt.Errorf("%w %q: is empty: name a module, such as lm_head", ErrPattern, text)
		case isExpression:
			re, err := regexp.Compile(`^(?:` + expression + `)`)
			if err != nil {
				return nil, fmt.Errorf("%w %q: %w", ErrPattern, text, err)
			}
			p.match = re.MatchString
		case strings.ContainsAny(text, "*?["):
			re, err := regexp.Compile(globExpression(text))
			if err != nil {
				return nil, fmt.Errorf("%w %q: is not a valid glob: %w", ErrPattern, text, err)
			}
			p.match = re.MatchString
		}
		all = append(all, p)
	}
	return all, nil
}

// globExpression converts a glob to a regular expression. A star also matches dots.
func globExpression(glob string) string {
	var b strings.Builder
	b.WriteString(`^`)
	for rest := glob; rest != ""; {
		c := rest[0]
		end := strings.IndexByte(rest, ']')
		switch {
		case c == '*':
			b.WriteString(`.*`)
		case c == '?':
			b.WriteString(`.`)
		case c == '[' && end > 1:
			set := rest[1:end]
			if set[0] == '!' {
				set = "^" + set[1:]
			}
			b.WriteString("[" + strings.ReplaceAll(set, `\`, `\\`) + "]")
			rest = rest[end:]
		default:
			b.WriteString(regexp.QuoteMeta(rest[:1]))
		}
		rest = rest[1:]
	}
	return b.String() + `$`
}

// matches reports whether a pattern matches one of a weight's tensors, or the module of one of them.
func (p namePattern) matches(tensors []string) bool {
	return slices.ContainsFunc(tensors, func(t string) bool { return p.match(t) || p.match(moduleOf(t)) })
}

// Leaves reports whether the selection excludes a weight from all changes. tensors are the names of the weight and of
// the tensors that store it. A nil Selector excludes no weights.
func (s *Selector) Leaves(tensors ...string) bool {
	if s == nil {
		return false
	}
	matches := func(p namePattern) bool { return p.matches(tensors) }
	return slices.ContainsFunc(s.ignore, matches) || len(s.only) > 0 && !slices.ContainsFunc(s.only, matches)
}

// LeavesNone reports whether all weights may change.
func (s *Selector) LeavesNone() bool { return s == nil || len(s.ignore)+len(s.only) == 0 }

// Check returns an [ErrPattern] with all patterns that match nothing, and suggests similar names. weights has the
// names of each weight as arguments for [Selector.Leaves].
func (s *Selector) Check(weights [][]string) error {
	var errs []error
	for _, p := range slices.Concat(s.ignore, s.only) {
		if !slices.ContainsFunc(weights, p.matches) {
			errs = append(errs, fmt.Errorf("%s: %w %q: matches no module and no tensor of the model%s", p.list, ErrPattern, p.text, closeNames(p.text, weights)))
		}
	}
	return errors.Join(errs...)
}

// closeNames suggests modules for a pattern without a match.
func closeNames(pattern string, weights [][]string) string {
	var modules, parts []string
	seen := map[string]bool{}
	add := func(list *[]string, name string) {
		if name != "" && !seen[name] {
			seen[name] = true
			*list = append(*list, name)
		}
	}
	for _, tensors := range weights {
		for _, t := range tensors {
			module := moduleOf(t)
			add(&modules, module)
			for part := range strings.SplitSeq(module, ".") {
				add(&parts, part)
			}
		}
	}
	last := pattern[strings.LastIndexAny(pattern, ".:*")+1:]
	if last == "weight" || last == "bias" {
		last = moduleOf(pattern)[strings.LastIndexAny(moduleOf(pattern), ".:*")+1:]
	}
	if last = strings.Trim(last, "$()"); len(last) > 1 {
		var named []string
		for _, m := range modules {
			if strings.Contains(m, last) {
				named = append(named, m)
			}
		}
		switch {
		case len(named) > 3:
			return fmt.Sprintf(": there are %s, %s and %d others", named[0], named[1], len(named)-2)
		case len(named) > 1:
			return ": there are " + strings.Join(named, ", ")
		case len(named) > 0:
			return ": there is " + named[0]
		}
	}
	if near := spelling.DidYouMean("", pattern, modules); near != "" {
		return near
	}
	if near := closePattern(pattern, parts, weights); near != "" {
		return fmt.Sprintf(" (did you mean %s?)", near)
	}
	if near := spelling.DidYouMean("*.", last, parts); near != "" {
		return near
	}
	if len(modules) > 0 {
		return fmt.Sprintf(": the first module is %s; lowtoggle inspect MODEL --tensors lists all", modules[0])
	}
	return ""
}

// closePattern replaces a mistyped part of a pattern so that the pattern matches. The result is empty if no part is
// similar to a part of the model's names.
func closePattern(pattern string, parts []string, weights [][]string) string {
	const notInNames = `.:*?[]()|+{}^$\`
	for part := range strings.FieldsFuncSeq(pattern, func(c rune) bool { return strings.ContainsRune(notInNames, c) }) {
		close := spelling.Closest(part, parts)
		if close == "" || close == part {
			continue
		}
		near := strings.Replace(pattern, part, close, 1)
		if p, err := compilePatterns("", []string{near}); err == nil && slices.ContainsFunc(weights, p[0].matches) {
			return near
		}
	}
	return ""
}

// moduleOf returns a tensor's name without its last part; empty if there is one part only.
func moduleOf(tensor string) string { return tensor[:max(0, strings.LastIndexByte(tensor, '.'))] }
