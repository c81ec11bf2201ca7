//go:build !unix

package lock

import "os"

// Acquire locks nothing here, and returns no file.
func Acquire(string) (*os.File, error) { return nil, nil }

// Check finds no locks here.
func Check(string) error { return nil }

// Folder locks nothing here, and returns no file: these systems do not rename an open folder.
func Folder(string) (*os.File, error) { return nil, nil }
