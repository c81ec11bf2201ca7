package arch

import (
	"fmt"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
)

// UnclaimedGroup is one or several tensors of a checkpoint that the family does not know.
type UnclaimedGroup struct {
	// Name is the tensor's, or the common beginning of several names, such as "vision_tower". "N" stands
	// for numbers that differ.
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
// end stays: it marks a layer that the family does not have.
func numbered(name string) string {
	end := strings.LastIndex(name, ".") + 1
	return weights.Outline(name[:end]) + name[end:]
}
