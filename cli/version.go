package cli

import (
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"
)

// Version is the program's version. Plans and manifests record it.
const Version = "0.1.0"

// release matches the version of a tagged build. In other builds, the go command adds a time and a commit to the
// version.
var release = regexp.MustCompile(`^v(\d+\.\d+\.\d+(?:-(?:alpha|beta|rc)\.\d+)?)$`)

// version returns this program's version, with the commit if known.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return described(info)
	}
	return Version
}

// described returns the version, and the commit and its date if the build recorded them. A tagged build, such as by
// go install MODULE@VERSION, has the tag's version.
func described(info *debug.BuildInfo) string {
	set := map[string]string{}
	for _, s := range info.Settings {
		set[s.Key] = s.Value
	}
	var parts []string
	if commit := set["vcs.revision"]; commit != "" {
		text := "commit " + commit[:min(12, len(commit))]
		if set["vcs.modified"] == "true" {
			text += ", modified"
		}
		parts = append(parts, text)
	}
	if date, _, ok := strings.Cut(set["vcs.time"], "T"); ok {
		parts = append(parts, date)
	}
	version := Version
	if tag := release.FindStringSubmatch(info.Main.Version); tag != nil {
		version = tag[1]
	}
	return fmt.Sprintf("%s (%s)", version, strings.Join(append(parts, info.GoVersion), ", "))
}
