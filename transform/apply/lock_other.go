//go:build !unix

package apply

import "os"

// lockFolder does nothing, because these systems do not rename an open folder.
func lockFolder(string) (*os.File, error) { return nil, nil }

// checkRoom does nothing on these systems.
func checkRoom(string, int64) error { return nil }
