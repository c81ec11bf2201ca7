package cli

import (
	"fmt"
	"runtime/debug"
	"strings"
)

// Version is the program's version, recorded in plans and manifests.
const Version = "0.1.0"

// described is the version with the commit and its date, as far as the build recorded them.
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
	return fmt.Sprintf("%s (%s)", Version, strings.Join(append(parts, info.GoVersion), ", "))
}
