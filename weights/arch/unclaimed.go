package arch

import (
	"fmt"
	"strings"
)

// UnclaimedGroup is one or several tensors of a checkpoint that the family does not know.
type UnclaimedGroup struct {
	// Name is that of the one tensor, or what the names of all begin with: a vision tower's, say. "N"
	// stands for numbers that differ.
	Name    string `json:"name"`
	Tensors int    `json:"tensors"`
}

// String names a tensor, or counts several.
func (s UnclaimedGroup) String() string {
	if s.Tensors == 1 {
		return s.Name
	}
	return fmt.Sprintf("%s (%d tensors)", s.Name, s.Tensors)
}

// UnclaimedGroups gathers the unclaimed tensors by the shortest beginning of their names that no claimed
// tensor shares, in the order of Unclaimed.
func (l *Layout) UnclaimedGroups() (list []UnclaimedGroup) {
	known := map[string]bool{}
	for name := range l.Claims {
		for at := name; at != "" && !known[at]; at = parent(at) {
			known[at] = true
		}
	}
	place := map[string]int{}
	only := map[string]string{} // the name of the first
	for _, name := range l.Unclaimed {
		key := numbered(beginning(known, name))
		i, seen := place[key]
		if !seen {
			i, only[key] = len(list), name
			place[key] = i
			list = append(list, UnclaimedGroup{Name: key})
		}
		list[i].Tensors++
	}
	for i, s := range list {
		if s.Tensors == 1 {
			list[i].Name = only[s.Name]
		}
	}
	return list
}

// beginning is the shortest beginning of a name, in whole words, that is not known.
func beginning(known map[string]bool, name string) string {
	for i, c := range name {
		if c == '.' && !known[name[:i]] {
			return name[:i]
		}
	}
	return name
}

// numbered writes N for the numbers within a name, so that layers count together. A number at its
// end stays: it tells a layer that is none of the family's.
func numbered(name string) string {
	words := strings.Split(name, ".")
	for i, w := range words[:len(words)-1] {
		if w != "" && strings.Trim(w, "0123456789") == "" {
			words[i] = "N"
		}
	}
	return strings.Join(words, ".")
}

// Blocked are indices that stay as they are for one reason, or for like ones in several layers.
type Blocked struct {
	Indices []string `json:"indices"`
	Why     string   `json:"why"` // of the first of them
}

// String says which indices are not changed, and why.
func (b Blocked) String() string {
	which := fmt.Sprintf("%d indices (%s, …) are not changed", len(b.Indices), b.Indices[0])
	switch len(b.Indices) {
	case 1:
		which = "index " + b.Indices[0] + " is not changed"
	case 2, 3:
		which = "indices " + strings.Join(b.Indices, ", ") + " are not changed"
	}
	return which + ": " + b.Why
}

// BlockedIndices gathers the blocked indices by their reasons, in the order of Indices.
func (l *Layout) BlockedIndices() (list []Blocked) {
	place := map[string]int{}
	for _, x := range l.Indices {
		if x.Blocked == "" {
			continue
		}
		reason := outline(x.Blocked)
		i, seen := place[reason]
		if !seen {
			i = len(list)
			place[reason] = i
			list = append(list, Blocked{Why: x.Blocked})
		}
		list[i].Indices = append(list[i].Indices, x.Name)
	}
	return list
}
