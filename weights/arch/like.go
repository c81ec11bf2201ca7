package arch

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
)

// readSpec reads a family file and adds the lists that it inherits by "like". bases holds the families that "like" may name.
func readSpec(data []byte, bases fs.FS) (*spec, error) {
	var s spec
	if err := decode(data, &s, true); err != nil {
		return nil, fmt.Errorf("family file: %w", err)
	}
	return &s, s.inherit(bases, nil)
}

// inherit takes over the lists of the family that s.Like names. above are the families on the chain of "like" that led to s.
func (s *spec) inherit(bases fs.FS, above []string) error {
	base := &spec{}
	if s.Like != "" {
		var err error
		if base, err = s.base(bases, above); err != nil {
			return err
		}
	}
	if s.Prefixes == nil {
		s.Prefixes = base.Prefixes
	}
	like := s.Like != ""
	for _, err := range []error{
		overlay("flags", like, base.Flags, &s.Flags), overlay("dims", like, base.Dims, &s.Dims),
		overlay("loops", like, base.Loops, &s.Loops), overlay("indices", like, base.Indices, &s.Indices),
		overlay("norms", like, base.Norms, &s.Norms), overlay("tensors", like, base.Tensors, &s.Tensors),
	} {
		if err != nil {
			return fmt.Errorf("family %q: %w", s.Family, err)
		}
	}
	return nil
}

// base reads the family that s.Like names, with the lists that the family itself inherits.
func (s *spec) base(bases fs.FS, above []string) (*spec, error) {
	if slices.Contains(above, s.Like) {
		return nil, fmt.Errorf("family %q: like is circular: %s", s.Family, strings.Join(append(above, s.Like), ", "))
	}
	if bases == fs.FS(files) && catalogued()[s.Like] != nil {
		base := *catalogued()[s.Like] // inherit changes the struct alone, not its slices
		return &base, base.inherit(bases, append(slices.Clone(above), s.Like))
	}
	data, err := fs.ReadFile(bases, path.Join("families", s.Like+".json"))
	if err != nil {
		return nil, fmt.Errorf("family %q: like: there is no embedded family %q: run lowtoggle families to list the families", s.Family, s.Like)
	}
	var base spec
	if err := decode(data, &base, true); err != nil {
		return nil, fmt.Errorf("family %q: like %q: %w", s.Family, s.Like, err)
	}
	return &base, base.inherit(bases, append(slices.Clone(above), s.Like))
}

// catalogued returns the embedded families by name, without inherited lists. The result is kept, because many families inherit
// from the same one.
var catalogued = sync.OnceValue(func() map[string]*spec {
	all := map[string]*spec{}
	names, _ := fs.Glob(files, "families/*.json") // the pattern is valid
	for _, name := range names {
		data, err := files.ReadFile(name)
		s := &spec{}
		if err == nil && decode(data, s, true) == nil { // base reports an error
			all[strings.TrimSuffix(path.Base(name), ".json")] = s
		}
	}
	return all
})

// listed is a pointer to a list's entry T, with access to the fields that all entries have.
type listed[T any] interface {
	*T
	common() *entry
}

// overlay merges a family's own list into its base's. All entries of one name stay together. They
// take the place of the base's entries of that name, follow the entry that "after" names, or come last.
func overlay[T any, E listed[T]](list string, like bool, base []T, own *[]T) error {
	if !like {
		return standsAlone[T, E](list, *own)
	}
	merged := slices.Clone(base)
	last := map[string]string{} // by "after": the last entry inserted there; the next entry follows it
	for rest := *own; len(rest) > 0; {
		first := *E(&rest[0]).common()
		var group []T
		group, rest = split[T, E](rest, first.Name)
		remove := slices.ContainsFunc(group, func(e T) bool { return E(&e).common().Remove })

		at := slices.IndexFunc(merged, func(e T) bool { return E(&e).common().Name == first.Name })
		if remove && (at < 0 || len(group) > 1) {
			return fmt.Errorf("%s: %q cannot be removed: the base has no entry of this name, or this list has two", list, first.Name)
		}
		_, merged = split[T, E](merged, first.Name)
		switch {
		case remove:
			continue
		case first.After != "":
			at = max(end[T, E](merged, first.After), end[T, E](merged, last[first.After]))
			if at < 0 {
				return fmt.Errorf("%s: %q cannot come after %q: neither the base nor an earlier entry has this name", list, first.Name, first.After)
			}
			last[first.After] = first.Name
		case at < 0:
			at = len(merged)
		}
		for i := range group {
			E(&group[i]).common().After = "" // the entry is in place now
		}
		merged = slices.Insert(merged, at, group...)
	}
	*own = merged
	return nil
}

// standsAlone refuses "remove" and "after" in a family without "like".
func standsAlone[T any, E listed[T]](list string, own []T) error {
	for i := range own {
		if e := E(&own[i]).common(); e.Remove || e.After != "" {
			return fmt.Errorf("%s: \"remove\" and \"after\" need \"like\"", place(list, i, e.Name))
		}
	}
	return nil
}

// split divides a list into the entries of a name and the others.
func split[T any, E listed[T]](list []T, name string) (named, others []T) {
	for _, e := range list {
		if E(&e).common().Name == name {
			named = append(named, e)
		} else {
			others = append(others, e)
		}
	}
	return named, others
}

// end returns the place after the last entry of a name; -1 if there is none.
func end[T any, E listed[T]](list []T, name string) int {
	for i := len(list) - 1; i >= 0; i-- {
		if E(&list[i]).common().Name == name {
			return i + 1
		}
	}
	return -1
}

// Complete returns a family file without "like": inherited entries are written out, so that tools and tests can edit the file.
func Complete(data []byte) ([]byte, error) {
	s, err := readSpec(data, files)
	if err != nil {
		return nil, err
	}
	s.Like = ""
	return json.MarshalIndent(s, "", "  ")
}
