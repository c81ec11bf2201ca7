//go:build !unix

package apply

// mounted returns false, because mounted disks cannot be detected on these systems.
func mounted(string) bool { return false }
