//go:build !unix

package atomicfile

import "os"

// open makes a temporary file with a random name, because these systems have no locks that end with their process.
func open(path string) (*os.File, error) { return anyName(path) }

// removeLeft removes nothing, because without locks it cannot know whether a process still writes the file.
func removeLeft(string) bool { return false }
