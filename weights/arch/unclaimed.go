package arch

import (
	"fmt"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
)

// UnclaimedGroup is one or several tensors of a checkpoint that the family does not list.
type UnclaimedGroup struct {
	// Name is a tensor's name, or the common beginning of several names, such as "vision_tower". "N" stands
	// for numbers that differ.
	Name    string `json:"name"`
	Tensors int    `json:"tensors"`
}

// String returns a tensor's name, or the common beginning with the number of tensors.
func (s UnclaimedGroup) String() string {
	if s.Tensors == 1 {
		return s.Name
	}
	return fmt.Sprintf("%s (%d tensors)", s.Name, s.Tensors)
}

// UnclaimedGroups groups the unclaimed tensors by the shortest beginning of their names that no claimed tensor shares, in the
// order of Unclaimed.
func (l *Layout) UnclaimedGroups() (list []UnclaimedGroup) {
	known := map[string]bool{}
	for name := range l.Claims {
		for at := name; at != "" && !known[at]; at = parent(at) {
			known[at] = true
		}
	}
	place := map[string]int{}
	only := map[string]string{} // by beginning: the name of the first tensor
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

// beginning returns the shortest beginning of a name, in whole words, that is not in known.
func beginning(known map[string]bool, name string) string {
	for i, c := range name {
		if c == '.' && !known[name[:i]] {
			return name[:i]
		}
	}
	return name
}

// numbered replaces numbers within a name by N, so that equal tensors of all layers form one group. A number at the name's end
// stays: it marks a layer that the family does not have.
func numbered(name string) string {
	end := strings.LastIndex(name, ".") + 1
	return weights.Outline(name[:end]) + name[end:]
}
