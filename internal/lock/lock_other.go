//go:build !unix

package lock

import "os"

// Acquire locks nothing on these systems, and returns no file.
func Acquire(string) (*os.File, error) { return nil, nil }

// Check finds no locks on these systems.
func Check(string) error { return nil }

// Folder locks nothing and returns no file, because these systems cannot rename an open folder.
func Folder(string) (*os.File, error) { return nil, nil }
